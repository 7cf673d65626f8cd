/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel module's files, and the state of the module. */

#include "source/host/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "source/proc/proc.h"

#define KERNEL_FOLDER "driver/ttmem"
#define KERNEL_FILE KERNEL_FOLDER "/totals"
#define KERNEL_STATS KERNEL_FOLDER "/stats"
#define KERNEL_STATS_LINE 256

/*
 * Read as a stream: the file has a line for whatever anybody claims to hold, so no fixed size is
 * both large enough and small enough to keep in memory.
 */
int kernel_read(const struct proc *proc, const struct kernel_parser *parser)
{
	CLEANUP_CLOSE int fd = openat(proc->root, KERNEL_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP_FREE char *text = NULL;
	struct kernel_text state = {0};
	size_t length = 0, used = 0;
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	text = malloc(KERNEL_LINE_MAX);
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + length, KERNEL_LINE_MAX - length)) > 0) {
		length += (size_t)n;
		r = kernel_parse_more(&state, text, length, parser, &used);
		if (r != 0)
			return r;
		length -= used;
		memmove(text, text + used, length);
		if (length == KERNEL_LINE_MAX)
			return -EBADMSG; /* a line without a newline */
	}
	if (n < 0)
		return -errno;
	return length == 0 && state.has_version ? 0 : -EBADMSG;
}

void kernel_read_shares(const struct proc *proc,
			void (*used_up)(void *context, const struct kernel_share *share),
			void *context)
{
	CLEANUP_FCLOSE FILE *file = small_file_stream(proc->root, KERNEL_STATS);
	char line[KERNEL_STATS_LINE];
	struct kernel_share share = {0};

	while (file && fgets(line, sizeof(line), file)) {
		if (kernel_parse_share(line, strcspn(line, "\n"), &share) &&
		    (share.bytes >= share.limit || share.limit - share.bytes < KERNEL_SHARE_LEAST))
			used_up(context, &share);
	}
}

enum kernel_state kernel_look(const struct proc *proc, const char *node)
{
	struct stat st;

	if (!node)
		node = TTMEM_NODE;
	if (fstatat(proc->root, KERNEL_FOLDER, &st, 0) < 0)
		return KERNEL_NOT_LOADED;
	if (stat(node, &st) < 0 || !S_ISCHR(st.st_mode))
		return KERNEL_NO_NODE;
	return access(node, R_OK | W_OK) < 0 ? KERNEL_NO_RIGHTS : KERNEL_READY;
}

const char *kernel_explain(enum kernel_state state)
{
	switch (state) {
	case KERNEL_NOT_LOADED:
		return "the kernel module is not loaded; processes are tracked where TTMEM=1 is "
		       "set";
	case KERNEL_NO_NODE:
		return "the kernel module is loaded, but /dev/ttmem is not there; in a container "
		       "it must "
		       "be handed in";
	case KERNEL_NO_RIGHTS:
		return "the kernel module is loaded, but this user may not open /dev/ttmem; see "
		       "its udev "
		       "rule";
	case KERNEL_READY:
		return "the kernel module is loaded: processes with the library are tracked "
		       "without any setting";
	}
	return "";
}
