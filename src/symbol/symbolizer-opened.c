/* SPDX-License-Identifier: Apache-2.0 */

/* A few slots, used in turn. */

#include "symbol/symbolizer-opened.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/symbolizer.h"

static void opened_drop(struct symbolizer_opened_file *file)
{
	if (file->kind && file->fd >= 0)
		(void)close(file->fd); /* open for reading only */
	free(file->path);
	*file = (struct symbolizer_opened_file){.fd = -1};
}

void symbolizer_opened_close(struct symbolizer_opened *opened)
{
	for (size_t i = 0; i < SYMBOLIZER_OPENED; i++)
		opened_drop(&opened->files[i]);
}

static bool opened_is(const struct symbolizer_opened_file *file, enum symbolizer_opened_kind kind,
		      const struct symbolizer_module *module)
{
	return file->kind == kind && process_id_equal(file->process, module->process) &&
	       file->user == module->user && file->base == module->base &&
	       strcmp(file->path, module->path) == 0;
}

/* Without memory for its path a file is only kept until the next one. */
static struct symbolizer_opened_file *opened_add(struct symbolizer_opened *opened,
						 const struct symbolizer_config *config,
						 enum symbolizer_opened_kind kind,
						 const struct symbolizer_module *module)
{
	struct symbolizer_opened_file *file = &opened->files[opened->next++ % SYMBOLIZER_OPENED];

	opened_drop(file);
	*file = (struct symbolizer_opened_file){
		.kind = kind,
		.path = strdup(module->path),
		.process = module->process,
		.user = module->user,
		.base = module->base,
		.fd = -1,
	};
	if (kind == SYMBOLIZER_OPENED_NAMED)
		file->result = symbolizer_open_module(config, module, &file->fd, &file->identity);
	else
		file->result = symbolizer_open_loaded(config, module, &file->fd, &file->identity);
	if (file->path && config->keeps_files)
		file->until_ns = clock_ns(CLOCK_MONOTONIC) + SYMBOLIZER_OPENED_NS;
	return file;
}

int symbolizer_opened_find(struct symbolizer_opened *opened, const struct symbolizer_config *config,
			   enum symbolizer_opened_kind kind, const struct symbolizer_module *module,
			   int *ret_fd, struct symbolizer_identity *ret_identity)
{
	struct symbolizer_opened_file *file = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < SYMBOLIZER_OPENED; i++) {
		struct symbolizer_opened_file *known = &opened->files[i];

		if (known->kind && now >= known->until_ns)
			opened_drop(known);
		else if (known->kind && opened_is(known, kind, module))
			file = known;
	}
	if (!file)
		file = opened_add(opened, config, kind, module);
	*ret_fd = file->result < 0 ? -1 : file->fd;
	if (file->result == 0)
		*ret_identity = file->identity;
	return file->result;
}
