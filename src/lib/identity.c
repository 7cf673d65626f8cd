/* SPDX-License-Identifier: Apache-2.0 */

/* Reading one's own identity from /proc; nothing here depends on what the application did to libc. */

#include "lib/identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#define IDENTITY_TEXT(x) #x
#define IDENTITY_VERSION(major, minor, patch) \
	IDENTITY_TEXT(major) "." IDENTITY_TEXT(minor) "." IDENTITY_TEXT(patch)

static size_t identity_slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return 0;
	n = read(fd, text, size - 1);
	(void)close(fd); /* opened for reading: nothing to lose */
	if (n < 0)
		n = 0;
	text[n] = '\0';
	return (size_t)n;
}

uint64_t identity_start_ticks(const char *stat_line)
{
	const char *p = strrchr(stat_line, ')');

	/* Behind the name come state (field 3), then numbers; the start time is field 22. */
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

static int identity_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* "d3b07384-d9a0-4c9b-8f3a-0c6b1f2e4a5d" as 16 bytes. */
static void identity_boot_id(uint8_t boot_id[16])
{
	char text[64];
	size_t length = identity_slurp("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	size_t digits = 0;

	for (size_t i = 0; i < length && digits < 32; i++) {
		int digit = identity_hex(text[i]);

		if (digit < 0)
			continue;
		boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | digit);
		digits++;
	}
}

void identity_read(struct writer_identity *ret_identity, char cmdline[IDENTITY_CMDLINE])
{
	struct stat st;
	char line[1024];

	*ret_identity = (struct writer_identity){
		.pid = (uint32_t)getpid(),
		.uid = getuid(),
		.euid = geteuid(),
		.source = BOOK_SOURCE_LIBRARY,
		.library = IDENTITY_VERSION(TTMEM_VERSION_MAJOR, TTMEM_VERSION_MINOR,
					    TTMEM_VERSION_PATCH),
		.cmdline = cmdline,
	};
	if (identity_slurp("/proc/self/stat", line, sizeof(line)))
		ret_identity->start_ticks = identity_start_ticks(line);
	if (stat("/proc/self/ns/pid", &st) == 0)
		ret_identity->pid_namespace = st.st_ino;
	identity_boot_id(ret_identity->boot_id);
	(void)prctl(PR_GET_NAME, ret_identity->comm); /* fails only for a bad pointer */
	ret_identity->cmdline_length =
		identity_slurp("/proc/self/cmdline", cmdline, IDENTITY_CMDLINE);
}
