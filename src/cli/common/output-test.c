/* SPDX-License-Identifier: Apache-2.0 */

/* Output to files, pipes and a terminal. */

#include "cli/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/small-file.h"
#include "base/testing/unit.h"
#include "cli/common/command.h"
#include "cli/common/testing/testing-printed.h"

static int saved_output = -1;

/* A terminal as standard output, with so many columns and rows. Return: its other end. */
static int open_terminal(unsigned short columns, unsigned short rows)
{
	struct winsize size = {.ws_col = columns, .ws_row = rows};
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0)
		unit_skip("no terminal can be made here");
	assert(grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
	saved_output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	assert(saved_output >= 0 && fflush(stdout) == 0);
	assert(dup2(slave, STDOUT_FILENO) == STDOUT_FILENO && close(slave) == 0);
	return master;
}

static void close_terminal(int master)
{
	assert(dup2(saved_output, STDOUT_FILENO) == STDOUT_FILENO);
	assert(close(saved_output) == 0 && close(master) == 0);
}

static void set(const char *name, const char *value)
{
	assert((value ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

UNIT(the_first_variable_that_is_set_decides_the_encoding)
{
	set("LC_ALL", NULL);
	set("LC_CTYPE", NULL);
	set("LANG", NULL);
	assert(!output_is_utf8());
	set("LANG", "de_DE.UTF-8");
	assert(output_is_utf8());
	set("LC_CTYPE", "C");
	assert(!output_is_utf8());
	set("LC_CTYPE", "");
	assert(output_is_utf8());
	set("LC_ALL", "en_US.utf8");
	set("LC_CTYPE", "C");
	assert(output_is_utf8());
	set("LC_ALL", "POSIX");
	assert(!output_is_utf8());
}

static void put(void *context)
{
	assert(!output_is_terminal() && !output_has_colours() && output_width() == 0);
	assert(output_rows() == 24);
	set("COLUMNS", NULL);
	assert(output_columns() == 80);
	set("COLUMNS", "132");
	assert(output_columns() == 132);
	set("COLUMNS", "1");
	assert(output_columns() == 1);
	set("COLUMNS", "65535");
	assert(output_columns() == 65535);
	set("COLUMNS", "65536");
	assert(output_columns() == 80);
	set("COLUMNS", "0");
	assert(output_columns() == 80);
	set("COLUMNS", "x");
	assert(output_columns() == 80);
	output_put_wrapped(context, 4);
}

UNIT(a_file_has_no_width)
{
	static char text[] = "a sentence of a few words that nobody breaks, however long it may be";

	assert(strcmp(testing_printed(STDOUT_FILENO, put, text), text) == 0);
}

UNIT(on_a_terminal_sentences_are_broken_between_words)
{
	char text[256] = "";
	int terminal = open_terminal(20, 5);

	assert(output_is_terminal() && output_width() == 20 && output_columns() == 20);
	assert(output_rows() == 5);
	printf("    ");
	/* "one two three four" has 18 columns, "five six seven eight" 20. */
	output_put_wrapped("two three four! five six seven", 4);
	putchar('\n');
	assert(fflush(stdout) == 0 && read(terminal, text, sizeof(text)) > 0);
	assert(strcmp(text, "    two three four!\r\n    five six seven\r\n") == 0);
	memset(text, 0, sizeof(text));
	output_put_wrapped("one two three four x y", 0);
	putchar('\n');
	assert(fflush(stdout) == 0 && read(terminal, text, sizeof(text)) > 0);
	assert(strcmp(text, "one two three four x\r\ny\r\n") == 0);
	close_terminal(terminal);
}

UNIT(a_terminal_without_a_size_has_the_usual_one)
{
	int terminal = open_terminal(0, 1);

	set("COLUMNS", "77");
	assert(output_rows() == 24 && output_columns() == 77 && output_width() == 77);
	close_terminal(terminal);
}

UNIT(colours_are_for_terminals_that_have_them)
{
	int terminal = open_terminal(80, 2);

	assert(output_rows() == 2);
	set("TERM", "xterm");
	set("NO_COLOR", NULL);
	assert(output_has_colours());
	set("NO_COLOR", "1");
	assert(!output_has_colours());
	set("NO_COLOR", "");
	assert(output_has_colours());
	set("TERM", "dumb");
	assert(!output_has_colours());
	set("TERM", NULL);
	assert(!output_has_colours());
	close_terminal(terminal);
}

static void put_text(const void *context, FILE *out)
{
	fputs(context, out);
}

struct writing {
	const char *path;
	int result;
};

static void write_file(void *context)
{
	struct writing *writing = context;

	writing->result = output_write_file("try", writing->path, put_text, "text");
}

UNIT(a_file_is_written_or_the_reason_told)
{
	struct writing writing = {unit_path("file"), 7};
	char text[8], path[256];

	assert(strcmp(testing_printed(STDERR_FILENO, write_file, &writing), "") == 0);
	assert(writing.result == 0);
	assert(small_file_read(AT_FDCWD, unit_path("file"), text, sizeof(text)) == 4);
	assert(strcmp(text, "text") == 0);
	writing.path = "-";
	assert(strcmp(testing_printed(STDOUT_FILENO, write_file, &writing), "text") == 0);
	assert(writing.result == 0);
	snprintf(path, sizeof(path), "%s", unit_path("no/file"));
	writing.path = path;
	assert(strstr(testing_printed(STDERR_FILENO, write_file, &writing),
		      "no/file: No such file or directory\n"));
	assert(writing.result == -1);
	writing.path = "/dev/full";
	assert(strcmp(testing_printed(STDERR_FILENO, write_file, &writing),
		      "ttmem try: /dev/full: cannot be written\n") == 0);
	assert(writing.result == -1);
}

static void fail(void *context)
{
	assert(output_fail("try", "it", *(int *)context) == COMMAND_FAILED);
}

UNIT(a_failure_is_told_with_its_reason)
{
	int error = -ENOENT;

	assert(strcmp(testing_printed(STDERR_FILENO, fail, &error),
		      "ttmem try: it: No such file or directory\n") == 0);
	error = EACCES;
	assert(strcmp(testing_printed(STDERR_FILENO, fail, &error),
		      "ttmem try: it: Permission denied\n") == 0);
}

/* Finishes with that descriptor as standard output, after a line was written. Return: exit code. */
static int finish(int fd)
{
	int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), code;

	output_start();
	assert(saved >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	assert(close(fd) == 0);
	printf("line\n");
	code = output_finish();
	clearerr(stdout);
	assert(dup2(saved, STDOUT_FILENO) == STDOUT_FILENO && close(saved) == 0);
	return code;
}

UNIT(a_full_disk_is_a_failure_and_a_closed_pipe_is_not)
{
	int ends[2];

	assert(finish(open("/dev/null", O_WRONLY | O_CLOEXEC)) == COMMAND_OK);
	assert(finish(open("/dev/full", O_WRONLY | O_CLOEXEC)) == COMMAND_FAILED);
	assert(pipe2(ends, O_CLOEXEC) == 0 && close(ends[0]) == 0);
	assert(finish(ends[1]) == COMMAND_OK);
}

UNIT(a_broken_output_is_noticed)
{
	int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert(!output_is_broken() && dup2(full, STDOUT_FILENO) == STDOUT_FILENO);
	printf("line\n");
	assert(fflush(stdout) != 0 && output_is_broken());
	clearerr(stdout);
	assert(dup2(saved, STDOUT_FILENO) == STDOUT_FILENO);
	assert(close(saved) == 0 && close(full) == 0);
}

UNIT(stop_signals_are_remembered)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	output_catch_stop();
	assert(!output_is_stopped());
	for (size_t i = 0; i < 3; i++)
		assert(raise(signals[i]) == 0 && output_is_stopped());
	output_sleep(1000000); /* not at all */
}
