/* SPDX-License-Identifier: Apache-2.0 */

/*
 * main() of every unit test program: selects cases, prints a line for each, and records the counts
 * for the totals of a suite.
 */

#include "base/testing/unit.h"

#include "base/testing/unit-run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct unit_case *unit_first;
static struct unit_case **unit_end = &unit_first;

void unit_register(struct unit_case *unit)
{
	*unit_end = unit;
	unit_end = &unit->next;
}

static struct unit_case *unit_find(const char *name)
{
	for (struct unit_case *unit = unit_first; unit; unit = unit->next)
		if (strcmp(unit->name, name) == 0)
			return unit;

	return NULL;
}

static unsigned int unit_patience(void)
{
	const char *text = getenv("TTMEM_UNIT_TIMEOUT");
	long factor = text ? strtol(text, NULL, 10) : 1;

	return factor < 1 ? 1 : factor > 1000 ? 1000 : (unsigned int)factor;
}

/*
 * Appends @line to the file named by TTMEM_RESULTS, in one write because the programs of a suite
 * run at the same time and share it. Return: 0, also if the variable is not set, or a negative
 * errno.
 */
static int unit_record(const char *line)
{
	const char *path = getenv("TTMEM_RESULTS");
	ssize_t length = (ssize_t)strlen(line), written;
	int fd;

	if (!path || !*path)
		return 0;

	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	written = write(fd, line, (size_t)length);
	close(fd);

	return written == length ? 0 : -EIO;
}

/* The line from which the totals of a suite are computed: "name passed failed skipped". */
static int unit_record_counts(const char *name, const unsigned int *counts)
{
	char line[512];
	int r;

	snprintf(line, sizeof(line), "%.400s %u %u %u\n", name, counts[UNIT_PASSED],
		 counts[UNIT_FAILED], counts[UNIT_SKIPPED]);
	r = unit_record(line);
	if (r < 0)
		fprintf(stderr, "%s: cannot write $TTMEM_RESULTS: %s\n", name, strerror(-r));

	return r;
}

/*
 * meson hides the output of a passing program, and the end of a long log may not show a failure, so
 * both are recorded here as well, as comments.
 */
static void unit_record_why(const char *word, const char *name, const char *why)
{
	char line[512];

	snprintf(line, sizeof(line), "# %s %.100s: %.300s\n", word, name, why);
	(void)unit_record(line); /* the counts will fail in the same way, and say so */
}

static void unit_one(const struct unit_case *unit, bool verbose, unsigned int *counts)
{
	static const char *const words[] = {
		[UNIT_PASSED] = "ok",
		[UNIT_FAILED] = "FAIL",
		[UNIT_SKIPPED] = "skip",
	};
	struct unit_result result;

	unit_run(unit, unit_patience(), verbose, &result);
	counts[result.outcome]++;
	if (result.outcome != UNIT_PASSED)
		unit_record_why(words[result.outcome], unit->name, result.why);
	printf("%-4s %-48s %8.3f s%s%s\n", words[result.outcome], unit->name, result.seconds,
	       *result.why ? "  " : "", result.why);
	(void)fflush(stdout); /* a failure could not be reported */
}

static int unit_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [-v] [NAME...]    run all cases, or these; -v: show what they print\n"
		"       %s --list            name the cases\n"
		"       %s --no-fork NAME    run one case in this process, for a debugger\n",
		name, name, name);
	return 2;
}

/* Looks up the names on the command line before the first case runs: a typo stops at once. */
static int unit_check_names(char **names)
{
	int r = 0;

	for (char **name = names; *name; name++) {
		if (**name != '-' && unit_find(*name))
			continue;
		fprintf(stderr, "no such case: %s (--list names them)\n", *name);
		r = 2;
	}

	return r;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];
	unsigned int counts[3] = {0};
	bool verbose = false;
	char **names = argv + 1;
	int r;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (struct unit_case *unit = unit_first; unit; unit = unit->next)
			puts(unit->name);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--no-fork") == 0) {
		if (argc != 3 || !unit_find(argv[2]))
			return unit_usage(name);
		unit_run_here(unit_find(argv[2]));
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "-v") == 0) {
		verbose = true;
		names++;
	}
	if (*names && (*names)[0] == '-')
		return unit_usage(name);

	r = unit_check_names(names);
	if (r)
		return r;

	r = unit_run_init();
	if (r < 0) {
		fprintf(stderr, "%s: cannot start: %s\n", name, strerror(-r));
		return 1;
	}

	if (*names)
		for (; *names; names++)
			unit_one(unit_find(*names), verbose, counts);
	else
		for (struct unit_case *unit = unit_first; unit; unit = unit->next)
			unit_one(unit, verbose, counts);

	printf("%s: %u passed, %u failed, %u skipped\n", name, counts[UNIT_PASSED],
	       counts[UNIT_FAILED], counts[UNIT_SKIPPED]);

	if (unit_record_counts(name, counts) < 0)
		return 1;

	return counts[UNIT_FAILED] ? 1 : 0;
}
