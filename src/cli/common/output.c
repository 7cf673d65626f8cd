/* SPDX-License-Identifier: Apache-2.0 */

/* Output of commands: buffering, the terminal's properties, stop signals. */

#include "cli/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/pager.h"

#define OUTPUT_BUFFER 65536

static char output_buffer[OUTPUT_BUFFER]; /* without one, glibc ignores the size */
static volatile sig_atomic_t output_stopped;
static unsigned int output_paged; /* columns of the terminal that the pager uses; 0 = no pager */

void output_start(void)
{
	signal(SIGPIPE, SIG_IGN);
	/* Lists can have millions of lines, and only one thread writes. */
	(void)__fsetlocking(stdout, FSETLOCKING_BYCALLER); /* returns the old mode */
	if (!output_is_terminal())
		(void)setvbuf(stdout, output_buffer, _IOFBF,
			      OUTPUT_BUFFER); /* else a smaller one */
}

bool output_is_broken(void)
{
	return ferror(stdout) != 0;
}

static const char *output_setting(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

void output_page(void)
{
	const char *term = output_setting("TERM");
	unsigned int width = output_width();

	if (width && term && strcmp(term, "dumb") != 0 && pager_open()) {
		output_paged = width;
		(void)setvbuf(stdout, output_buffer, _IOFBF,
			      OUTPUT_BUFFER); /* else a smaller one */
	}
}

int output_finish(void)
{
	struct stat st;
	int code = COMMAND_OK;

	/* A reader that closes its pipe early is not an error. */
	if ((fflush(stdout) != 0 || ferror(stdout)) &&
	    !(fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))) {
		fprintf(stderr, "ttmem: the output could not be written\n");
		code = COMMAND_FAILED;
	}
	pager_close();
	return code;
}

int output_write_file(const char *command, const char *path,
		      void (*put)(const void *context, FILE *out), const void *context)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	FILE *out = stdout;

	if (strcmp(path, "-") != 0) {
		int fd = user_file_open(path, O_TRUNC, 0666);

		file = fd < 0 ? NULL : fdopen(fd, "w");
		if (!file) {
			fprintf(stderr, "ttmem %s: %s: %s\n", command, path,
				user_file_error(fd < 0 ? fd : -errno));
			return -1;
		}
		out = file;
	}
	put(context, out);
	if (fflush(out) != 0 || ferror(out)) {
		fprintf(stderr, "ttmem %s: %s: cannot be written\n", command, path);
		return -1;
	}
	return 0;
}

int output_fail(const char *command, const char *text, int error)
{
	fprintf(stderr, "ttmem %s: %s: %s\n", command, text,
		user_file_error(error < 0 ? error : -error));
	return COMMAND_FAILED;
}

bool output_is_terminal(void)
{
	return isatty(STDOUT_FILENO) == 1;
}

bool output_has_colours(void)
{
	const char *term = output_setting("TERM");

	return output_is_terminal() && !output_setting("NO_COLOR") && term &&
	       strcmp(term, "dumb") != 0;
}

bool output_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	/* The first one that is set decides. */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = output_setting(names[i]);

		if (value)
			return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
	}
	return false;
}

unsigned int output_rows(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < 2)
		return 24;
	return size.ws_row;
}

unsigned int output_columns(void)
{
	const char *told = output_setting("COLUMNS");
	struct winsize size;
	uint64_t columns;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	if (!told || text_parse_u64(told, &columns) < 0 || columns == 0 || columns > UINT16_MAX)
		return 80;
	return (unsigned int)columns;
}

unsigned int output_width(void)
{
	if (output_paged)
		return output_paged;
	return output_is_terminal() ? output_columns() : 0;
}

void output_put_wrapped(const char *text, unsigned int indent)
{
	unsigned int width = output_width(), column = indent;
	bool is_first = true;

	while (*text) {
		char word[512];
		size_t length = bits_min(strcspn(text, " "), sizeof(word) - 1);
		unsigned int columns;

		memcpy(word, text, length);
		word[length] = '\0';
		columns = (unsigned int)text_width(word);
		if (!is_first && width && column + 1 + columns > width) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!is_first) {
			putchar(' ');
			column++;
		}
		fputs(word, stdout);
		column += columns;
		is_first = false;
		text += length;
		text += *text == ' ';
	}
}

static void output_stop(int number)
{
	(void)number;
	output_stopped = 1;
}

void output_catch_stop(void)
{
	/* Without SA_RESTART, so that a signal ends a sleep at once. */
	struct sigaction action = {.sa_handler = output_stop};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool output_is_stopped(void)
{
	return output_stopped != 0;
}

void output_sleep(unsigned int ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	if (!output_stopped)
		(void)nanosleep(&pause, NULL); /* may end early */
}
