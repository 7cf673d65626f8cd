/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel module's file, and how it is with the module. */

#include "source/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/cleanup.h"
#include "source/proc.h"

#define KERNEL_FOLDER "driver/ttmem"
#define KERNEL_FILE KERNEL_FOLDER "/totals"
#define KERNEL_STEP 65536u

/* All of the file. 0, -ENOENT, -EFBIG or another negative errno. */
static int kernel_slurp(const struct proc *proc, char **ret_text, size_t *ret_length)
{
	CLEANUP_CLOSE int fd = openat(proc->root, KERNEL_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0, room = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n > 0) {
		if (room - length < KERNEL_STEP) {
			char *more = NULL;

			room = room * 2 + KERNEL_STEP;
			if (room > KERNEL_TEXT_MAX)
				return -EFBIG;
			more = realloc(text, room);
			if (!more)
				return -ENOMEM;
			text = more;
		}
		n = read(fd, text + length, room - length);
		if (n < 0)
			return -errno;
		length += (size_t)n;
	}
	*ret_text = cleanup_steal(text);
	*ret_length = length;
	return 0;
}

int kernel_read(const struct proc *proc, const struct kernel_parser *parser)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	int r = kernel_slurp(proc, &text, &length);

	return r < 0 ? r : kernel_parse(text, length, parser);
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
		return "the kernel module is loaded: every process with the library is tracked";
	}
	return "";
}
