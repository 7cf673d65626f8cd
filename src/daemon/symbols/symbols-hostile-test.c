/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Malicious files, and a process that is killed at work: each query gets an answer, and the next
 * one works.
 */

#include "daemon/symbols/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "symbol/symbolizer.h"
#include "symbol/testing/symbol-testing.h"
#include "symbol/testing/testing-symbolizer.h"

#define PATIENCE 30000 /* ms; ends a hang */
#define FLIPS 600u

static struct symbols *symbols;
static struct symbolizer_answer answer;
static uint64_t plain; /* address of at_plain */

static void begin(uint32_t timeout_ms)
{
	const struct symbols_config config = {
		.symbolizer = {.debug_folder = "/nowhere", .timeout_ms = timeout_ms}};

	testing_sources();
	testing_let_in();
	testing_run("gcc -g -O1 program.c -o program && cp program other");
	plain = testing_address("program", "at_plain");
	assert(symbols_new(&symbols, &config) == 0);
}

static void end(void)
{
	symbols = symbols_free(symbols);
}

static struct symbols_counts counts(void)
{
	struct symbols_counts now;

	symbols_counts(symbols, &now);
	return now;
}

static int find_at(const char *path, uint32_t user, uint64_t address)
{
	struct symbolizer_module module = {.path = path, .user = user};

	return symbols_resolve(symbols, &module, address, PATIENCE, &answer);
}

static int find(const char *name)
{
	return find_at(testing_path(name), geteuid(), plain);
}

static void assert_works(const char *name, uint32_t user)
{
	memset(&answer, 0, sizeof(answer));
	assert(find_at(testing_path(name), user, plain) == 0);
	assert(strcmp(answer.frames[0].function, "plain") == 0);
	assert(answer.frames[0].line == TESTING_LINE_PLAIN);
}

UNIT(files_that_are_not_regular_are_refused)
{
	begin(20000);
	testing_run("mkfifo fifo && mkdir folder && ln -s fifo link && ln -s program good");
	assert(find("fifo") == -EINVAL); /* not opened: without a writer that would block */
	assert(find("link") == -EINVAL);
	assert(find("folder") == -EINVAL);
	assert(find("missing") == -ENOENT);
	assert(find_at("/dev/zero", 0, 1) == -EINVAL);
	assert(find_at("/dev/tty", 0, 1) == -EINVAL);
	assert(find_at("program", 0, 1) == -EINVAL); /* a relative path */
	assert(find_at("", 0, 1) == -EINVAL);
	assert(find_at("/proc/self/exe", 0, 1) == -ELOOP); /* would be our own program */
	assert(counts().started == 0);
	assert_works("good", geteuid());
	end();
}

UNIT(an_unterminated_symbol_name_is_cut)
{
	static char path[8192];

	begin(20000);
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	assert(find_at(path, 0, 1) == -ENAMETOOLONG);
	end();
}

UNIT(too_large_files_are_refused)
{
	begin(20000);
	testing_run("cp program large && truncate -s 2G large && truncate -s 2G holes");
	testing_run("cp program huge && truncate -s 5G huge");
	assert_works("large", geteuid()); /* more than the process may map, so it reads */
	assert(find("holes") == -EINVAL);
	assert(find("huge") == -EFBIG);
	assert(counts().lost == 0);
	end();
}

/* A deterministic sequence, so that failures can be reproduced. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void flip(uint8_t *bytes, size_t size, uint64_t *random)
{
	uint64_t times = 1 + next_random(random) % 8;

	while (times-- > 0)
		bytes[next_random(random) % size] ^= (uint8_t)(1u << next_random(random) % 8);
}

/* The file has no C library parts, so nearly all of it is headers and debug information. */
UNIT_LONG(damaged_elf_files_do_no_harm, 300)
{
	CLEANUP_FREE uint8_t *good = NULL;
	CLEANUP_FREE uint8_t *bad = NULL;
	uint64_t random = 1, unlike = 0;
	size_t size;

	begin(2000);
	testing_run("gcc -g -O1 -shared -fPIC -nostdlib program.c -o base.so");
	plain = testing_address("base.so", "at_plain");
	good = testing_read("base.so", &size);
	bad = malloc(size);
	assert(bad);
	for (uint32_t i = 0; i < FLIPS; i++) {
		/*
		 * Each failure is charged to another user, so that it does not affect the next one.
		 */
		uint32_t user = 1000 + (uint32_t)counts().lost;
		int r;

		memcpy(bad, good, size);
		flip(bad, size, &random);
		testing_write("damaged", bad, size);
		r = find_at(testing_path("damaged"), user, plain);
		assert(r == 0 || r == -ENOENT || r == -EINVAL || r == -EPIPE || r == -ETIMEDOUT);
		unlike += r != 0 || strcmp(answer.frames[0].function, "plain") != 0 ||
			  answer.frames[0].line != TESTING_LINE_PLAIN;
	}
	printf("%u damaged files: %" PRIu64 " told otherwise, %" PRIu64 " cost a process\n", FLIPS,
	       unlike, counts().lost);
	assert(unlike > FLIPS / 50); /* the damage was where it matters */
	assert_works("base.so", geteuid());
	end();
}

UNIT(truncated_elf_files_do_no_harm)
{
	CLEANUP_FREE uint8_t *good = NULL;
	size_t size;

	begin(20000);
	good = testing_read("program", &size);
	for (size_t length = 0; length < size; length += size / 64) {
		int r;

		testing_write("cut", good, length);
		r = find("cut");
		assert(r == 0 || r == -ENOENT || r == -EINVAL);
	}
	assert_works("program", geteuid());
	end();
}

/* Stops the process before the first query. */
static pid_t begin_stopped(uint32_t timeout_ms)
{
	pid_t pid;

	begin(timeout_ms);
	assert_works("program", geteuid());
	pid = testing_symbolizer_pid();
	assert(kill(pid, SIGSTOP) == 0);
	return pid;
}

UNIT(a_symbol_worker_that_hangs_is_killed)
{
	uint64_t before;
	pid_t pid = begin_stopped(2000);

	before = clock_ns(CLOCK_MONOTONIC);
	assert(find("other") == -ETIMEDOUT);
	assert(clock_ns(CLOCK_MONOTONIC) - before >= UINT64_C(2000000000));
	assert(!testing_symbolizer_lives(pid) && counts().lost == 1);
	/* That file is not tried again for now; others are. */
	assert(find("other") == -EBUSY);
	testing_run("cp program third");
	assert_works("third", geteuid());
	assert(counts().started == 2);
	end();
}

UNIT(a_caller_may_give_up_waiting)
{
	struct symbolizer_module module;

	(void)begin_stopped(20000);
	module = testing_symbolizer_module("other");
	assert(symbols_resolve(symbols, &module, plain, 50, &answer) == -ETIMEDOUT);
	end(); /* which does not wait for the process either */
}

static void *kill_process(void *context)
{
	const pid_t *pid = context;

	(void)usleep(50000); /* a query is probably in progress; it must work either way */
	assert(kill(*pid, SIGKILL) == 0);
	return NULL;
}

UNIT(a_symbol_worker_killed_at_work_is_replaced)
{
	pid_t pid = begin_stopped(20000);
	pthread_t thread;

	assert(pthread_create(&thread, NULL, kill_process, &pid) == 0);
	assert(find("other") == -EPIPE);
	assert(pthread_join(thread, NULL) == 0);
	testing_run("cp program third");
	assert_works("third", geteuid());
	end();
}

UNIT(a_symbol_worker_killed_while_idle_is_replaced)
{
	begin(20000);
	for (int i = 0; i < 3; i++) {
		pid_t pid;

		testing_run("cp program copy-%d", i);
		if (i > 0)
			assert(find(i == 1 ? "copy-1" : "copy-2") == -EPIPE);
		assert_works(i == 0 ? "program" : i == 1 ? "other" : "copy-0", geteuid());
		pid = testing_symbolizer_pid();
		assert(kill(pid, SIGKILL) == 0);
	}
	end();
}

/* A user with many bad files is refused for a while; others are served. */
UNIT(a_user_with_many_bad_files_is_refused_for_a_while)
{
	uint32_t user = geteuid();

	begin(20000);
	for (uint32_t i = 0; i < SYMBOLIZER_BAD_USER; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "bad-%u", i);
		testing_run("cp program good-%u && cp program %s", i, name);
		(void)snprintf(name, sizeof(name), "good-%u", i);
		assert_works(name, user);
		assert(kill(testing_symbolizer_pid(), SIGKILL) == 0);
		(void)snprintf(name, sizeof(name), "bad-%u", i);
		assert(find(name) == -EPIPE);
	}
	testing_run("cp program fine");
	assert(find("fine") == -EBUSY);
	testing_run("chmod 755 fine");
	assert_works("fine", user + 1);
	/* Known names are still returned. */
	assert_works("good-0", user);
	end();
}

UNIT(symbol_worker_restarts_are_limited)
{
	int r = 0;

	begin(20000);
	testing_run("chmod 755 program");
	for (uint32_t i = 0; i < SYMBOLIZER_STARTS_MAX && r == 0; i++)
		r = find_at(testing_path("program"), 1000 + i, plain);
	assert(r == 0 && counts().started == SYMBOLIZER_STARTS_MAX);
	/* On a very slow machine one more may have been started. */
	r = find_at(testing_path("program"), 999, plain);
	assert(r == -EBUSY || (r == 0 && counts().started == SYMBOLIZER_STARTS_MAX + 1));
	end();
}

UNIT(a_symbol_worker_that_cannot_start_is_an_error)
{
	const struct symbols_config config = {.symbolizer.program = "/nowhere/program"};
	const struct symbols_config wrong = {.symbolizer.program = "/bin/true"};

	begin(20000);
	end();
	assert(symbols_new(&symbols, &config) == 0);
	assert(find("program") == -EBUSY);
	end();
	assert(symbols_new(&symbols, &wrong) == 0);
	assert(find("program") == -EBUSY && counts().lost == 1);
	end();
}
