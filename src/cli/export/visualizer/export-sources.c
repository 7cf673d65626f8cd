/* SPDX-License-Identifier: Apache-2.0 */

/* Opens files as the symbolizer does for code, with the rights of the process's owner. */

#include "cli/export/visualizer/export-sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "cli/common/must.h"
#include "model/snapshot.h"
#include "symbol/symbolizer-open.h"
#include "symbol/symbolizer.h"

void export_sources_init(struct export_sources *sources, const struct snapshot_process *process)
{
	*sources = (struct export_sources){
		.process = process->id,
		/* The books of old clients are made by the daemon. */
		.user = strcmp(process->source, "socket") == 0 ? process->user_id
							       : process->maker_id,
		.left = EXPORT_SOURCES_MAX,
	};
}

int export_sources_read(struct export_sources *sources, const char *path, char **ret_text)
{
	const struct symbolizer_config config = {.own_rights = false};
	const struct symbolizer_module file = {
		.path = path,
		.process = sources->process,
		.user = sources->user,
	};
	CLEANUP_FREE char *bytes = NULL;
	CLEANUP_CLOSE int fd = -1;
	struct symbolizer_identity identity;
	ssize_t length;
	int r = sources->process.pid ? symbolizer_open_module(&config, &file, &fd, &identity)
				     : -EACCES;

	if (r < 0)
		return r;
	if (identity.size > EXPORT_SOURCE_MAX || identity.size > sources->left)
		return -EFBIG;
	bytes = must_alloc(identity.size + 1, 1);
	length = small_file_read_fd(fd, bytes, identity.size + 1);
	if (length < 0)
		return (int)length;
	*ret_text = must_alloc(TEXT_CLEAN_SIZE((size_t)length), 1);
	(void)text_clean(bytes, (size_t)length, *ret_text); /* its length is not needed */
	sources->left -= identity.size;
	return 0;
}
