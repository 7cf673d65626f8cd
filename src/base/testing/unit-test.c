/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The test runner, tested by itself: the samples below are registered only when this program starts
 * itself again with UNIT_SAMPLE set, and the cases check what the runner reports about them.
 */

#include "base/testing/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void sample_passes(void)
{
	puts("nobody sees this");
}

static void sample_asserts(void)
{
	assert(!"as it should");
}

static void sample_exits(void)
{
	exit(3);
}

static void sample_skips(void)
{
	unit_skip("no such luck");
}

static void sample_leaks(void)
{
	assert(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
}

static void sample_leaks_expected(void)
{
	sample_leaks();
	unit_expect_fds(1);
}

static void sample_closes(void)
{
	close(STDIN_FILENO);
}

static void sample_hangs(void)
{
	for (;;)
		pause();
}

/* Leaves one child in its group and one outside; both write their pids for the case to check. */
static void sample_strays(void)
{
	FILE *file = fopen(getenv("UNIT_SAMPLE"), "we");

	assert(file);
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (i == 1)
				setsid();
			sample_hangs();
		}
		fprintf(file, "%d\n", (int)pid);
	}
	fclose(file);
}

static void sample_looks_around(void)
{
	const char *tmp = getenv("TMPDIR"), *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	assert(tmp && strcmp(tmp, unit_dir()) == 0);
	assert(runtime && strcmp(runtime, unit_dir()) == 0);
	assert(stat(unit_dir(), &st) == 0 && S_ISDIR(st.st_mode));
	assert((st.st_mode & 0777) == 0700);
	assert(!getenv("TTMEM_RESULTS") && !getenv("TTMEM") && getenv("TTMEM_SOAK"));
	assert(getpgrp() == getpid());
	puts(unit_dir());
	exit(4); /* so that the folder's name is shown */
}

static struct unit_case samples[] = {
	{.name = "passes", .run = sample_passes, .seconds = UNIT_SECONDS},
	{.name = "asserts", .run = sample_asserts, .seconds = UNIT_SECONDS},
	{.name = "must_abort", .run = sample_asserts, .must_abort = true, .seconds = 60},
	{.name = "does_not_abort", .run = sample_passes, .must_abort = true, .seconds = 60},
	{.name = "exits", .run = sample_exits, .seconds = UNIT_SECONDS},
	{.name = "skips", .run = sample_skips, .seconds = UNIT_SECONDS},
	{.name = "leaks", .run = sample_leaks, .seconds = UNIT_SECONDS},
	{.name = "leaks_expected", .run = sample_leaks_expected, .seconds = UNIT_SECONDS},
	{.name = "closes", .run = sample_closes, .seconds = UNIT_SECONDS},
	{.name = "hangs", .run = sample_hangs, .seconds = 1},
	{.name = "strays", .run = sample_strays, .seconds = UNIT_SECONDS},
	{.name = "looks_around", .run = sample_looks_around, .seconds = UNIT_SECONDS},
};

__attribute__((constructor)) static void sample_register(void)
{
	if (!getenv("UNIT_SAMPLE"))
		return;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		unit_register(&samples[i]);
}

static char said[65536];

/*
 * Runs this program with @arg and the samples, and TTMEM_RESULTS at @results.
 * Return: its exit status; @said is what it printed.
 */
static int run(const char *arg, const char *sample, const char *results)
{
	char path[4096], self[4096] = "";
	int fd, status;
	pid_t pid;
	ssize_t n;

	/* Under valgrind the link itself leads to valgrind, but its text names this program. */
	assert(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%s/said", unit_dir());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		assert(setenv("UNIT_SAMPLE", sample, 1) == 0);
		assert(setenv("TTMEM", "1", 1) == 0 && setenv("TTMEM_SOAK", "1", 1) == 0);
		assert(setenv("TTMEM_UNIT_TIMEOUT", "1", 1) == 0);
		if (results)
			assert(setenv("TTMEM_RESULTS", results, 1) == 0);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execl(self, "sample", arg, NULL);
		_exit(127);
	}
	assert(waitpid(pid, &status, 0) == pid);
	n = pread(fd, said, sizeof(said) - 1, 0);
	assert(n >= 0);
	said[n] = '\0';
	close(fd);
	assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Whether some line of @said starts with @word and names the case @name. */
static bool says(const char *word, const char *name)
{
	char start[128];

	snprintf(start, sizeof(start), "%-4s %s ", word, name);
	return strstr(said, start);
}

UNIT(pass_is_quiet)
{
	assert(run("passes", "1", NULL) == 0);
	assert(says("ok", "passes"));
	assert(!strstr(said, "nobody sees this"));
}

UNIT(assert_fails_and_shows_why)
{
	assert(run("asserts", "1", NULL) == 1);
	assert(says("FAIL", "asserts"));
	assert(strstr(said, "as it should"));
}

UNIT(abort_can_be_demanded)
{
	assert(run("must_abort", "1", NULL) == 0);
	assert(says("ok", "must_abort"));
	assert(run("does_not_abort", "1", NULL) == 1);
	assert(strstr(said, "should have aborted"));
}

UNIT(early_exit_is_a_failure)
{
	assert(run("exits", "1", NULL) == 1);
	assert(strstr(said, "exited with 3"));
}

UNIT(skip_gives_its_reason)
{
	assert(run("skips", "1", NULL) == 0);
	assert(says("skip", "skips"));
	assert(strstr(said, "no such luck"));
}

UNIT(descriptors_are_compared)
{
	assert(run("leaks", "1", NULL) == 1);
	assert(strstr(said, "left open: descriptor"));
	assert(run("leaks_expected", "1", NULL) == 0);
	assert(run("closes", "1", NULL) == 1);
	assert(strstr(said, "closed, but not ours: descriptor 0"));
}

UNIT(hang_is_ended)
{
	assert(run("hangs", "1", NULL) == 1);
	assert(strstr(said, "not done after 1 s"));
}

UNIT(strays_are_killed)
{
	char path[4096];
	FILE *file;
	int pid, n = 0;

	snprintf(path, sizeof(path), "%s/pids", unit_dir());
	assert(run("strays", path, NULL) == 0);
	file = fopen(path, "re");
	assert(file);
	for (; fscanf(file, "%d", &pid) == 1; n++)
		assert(kill(pid, 0) < 0);
	assert(n == 2);
	fclose(file);
}

UNIT(surroundings_are_clean_and_removed)
{
	char *folder, *end;

	assert(run("looks_around", "1", "/dev/null") == 1);
	assert(strstr(said, "exited with 4"));
	folder = strstr(said, "| /");
	assert(folder);
	folder += 2;
	end = strchr(folder, '\n');
	assert(end);
	*end = '\0';
	assert(access(folder, F_OK) < 0);
}

UNIT(counts_are_recorded)
{
	char path[4096], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/results", unit_dir());
	assert(run("skips", "1", path) == 0);
	assert(run("exits", "1", path) == 1);
	file = fopen(path, "re");
	assert(file);
	assert(fgets(line, sizeof(line), file) &&
	       strcmp(line, "# skip skips: no such luck\n") == 0);
	assert(fgets(line, sizeof(line), file) && strcmp(line, "sample 0 0 1\n") == 0);
	assert(fgets(line, sizeof(line), file) &&
	       strncmp(line, "# FAIL exits: exited with ", 26) == 0);
	assert(fgets(line, sizeof(line), file) && strcmp(line, "sample 0 1 0\n") == 0);
	fclose(file);

	/* If counts were lost, a run of nothing would be green. */
	assert(run("passes", "1", "/nowhere/at/all") == 1);
}

UNIT(names_are_checked)
{
	assert(run("--list", "1", NULL) == 0);
	assert(strstr(said, "pass_is_quiet\n") && strstr(said, "\nlooks_around\n"));
	assert(run("no_such_case", "1", NULL) == 2);
	assert(run("--nonsense", "1", NULL) == 2);
	assert(run("--no-fork", "1", NULL) == 2);
}

UNIT_FAIL(assert_is_compiled_in)
{
	/* Nothing here defines NDEBUG, but a release build does. */
	assert(unit_dir() == NULL);
}
