/* SPDX-License-Identifier: Apache-2.0 */

/* Names from the symbolizer process, which really has no privileges. */

#include "daemon/symbols/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "symbol/jail.h"
#include "symbol/symbolizer-open.h"
#include "symbol/testing/symbol-testing.h"
#include "symbol/testing/testing-symbolizer.h"

#define PATIENCE 30000 /* ms; ends a hang */

static struct symbols *symbols;
static struct symbolizer_answer answer;

static void begin(const struct symbols_config *config)
{
	testing_sources();
	testing_run("gcc -g -O1 -Wl,--build-id=sha1 program.c -o program");
	assert(symbols_new(&symbols, config) == 0);
}

static void begin_plainly(void)
{
	static char folder[4096];
	struct symbols_config config = {
		.symbolizer = {.debug_folder = folder, .timeout_ms = 20000}};

	(void)snprintf(folder, sizeof(folder), "%s/debug", unit_dir());
	begin(&config);
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

static int find(const char *name, const char *with_symbols, const char *symbol)
{
	struct symbolizer_module module = testing_symbolizer_module(name);

	return symbols_resolve(symbols, &module, testing_address(with_symbols, symbol), PATIENCE,
			       &answer);
}

static bool is_frame(size_t i, const char *function, uint32_t line)
{
	return i < answer.count && strcmp(answer.frames[i].function, function) == 0 &&
	       answer.frames[i].line == line &&
	       (line == 0) == !strstr(answer.frames[i].file, "/program.c");
}

UNIT(names_by_way_of_the_process)
{
	begin_plainly();
	assert(counts().started == 0); /* no query yet */
	assert(find("program", "program", "at_inner") == 0 && answer.count == 3);
	assert(is_frame(0, "inner", TESTING_LINE_INNER));
	assert(is_frame(1, "middle", TESTING_LINE_MIDDLE));
	assert(is_frame(2, "outer", TESTING_LINE_OUTER));
	assert(find("program", "program", "at_plain") == 0);
	assert(is_frame(0, "plain", TESTING_LINE_PLAIN));
	assert(counts().started == 1 && counts().lost == 0 && counts().cached == 0);
	end();
}

UNIT(names_are_cached)
{
	pid_t pid;

	begin_plainly();
	assert(find("program", "program", "at_inner") == 0);
	pid = testing_symbolizer_pid();
	assert(kill(pid, SIGSTOP) == 0); /* it is not queried */
	memset(&answer, 0xff, sizeof(answer));
	assert(find("program", "program", "at_inner") == 0 && answer.count == 3);
	assert(is_frame(0, "inner", TESTING_LINE_INNER));
	assert(is_frame(2, "outer", TESTING_LINE_OUTER));
	assert(counts().cached == 1 && counts().asked == 2);
	end();
	assert(!testing_symbolizer_lives(pid));
}

UNIT(a_changed_file_is_looked_into_again)
{
	begin_plainly();
	assert(find("program", "program", "at_plain") == 0);
	testing_run("sed 's/plain/simple/g' program.c >new.c && gcc -g -O1 new.c -o program");
	assert(find("program", "program", "at_simple") == 0);
	assert(strcmp(answer.frames[0].function, "simple") == 0);
	end();
}

UNIT(the_symbol_worker_has_no_rights)
{
	pid_t pid;

	begin_plainly();
	assert(find("program", "program", "at_plain") == 0);
	pid = testing_symbolizer_pid();
	assert(testing_symbolizer_status(pid, "Seccomp", 10) == 2);
	assert(testing_symbolizer_status(pid, "NoNewPrivs", 10) == 1);
	assert(testing_symbolizer_status(pid, "CapPrm", 16) == 0);
	assert(testing_symbolizer_status(pid, "CapEff", 16) == 0);
	assert(testing_symbolizer_status(pid, "CapInh", 16) == 0);
	assert(testing_symbolizer_status(pid, "CapAmb", 16) == 0);
	if (geteuid() == 0) {
		assert(testing_symbolizer_status(pid, "Uid", 10) == JAIL_USER);
		assert(testing_symbolizer_status(pid, "Gid", 10) == JAIL_USER);
	}
	end();
}

/* The daemon probes every process that it starts; here the probed process is not confined. */
UNIT(the_jail_probe_notices_missing_restrictions)
{
	int status;
	pid_t pid = fork(); /* confinement cannot be undone */

	assert(pid >= 0);
	if (pid == 0) {
		if (!(jail_probe() & 1))
			_exit(1);
		if (jail_enter() < 0)
			_exit(2);
		/* A sanitizer's _exit() makes additional system calls, which are refused. */
		(void)syscall(SYS_exit_group, jail_probe() == 0 ? 0 : 3);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
}

UNIT(separate_debug_information)
{
	begin_plainly();
	testing_run("objcopy --only-keep-debug program whole.debug && strip -o bare program");
	assert(find("bare", "program", "at_hidden") == -ENOENT);
	testing_run("id=$(readelf -n bare | sed -n 's/.*Build ID: //p') && "
		    "two=$(printf %%.2s $id) && mkdir -p debug/.build-id/$two && "
		    "cp whole.debug debug/.build-id/$two/${id#??}.debug && cp bare bare-2");
	assert(find("bare-2", "program", "at_hidden") == 0);
	assert(is_frame(0, "hidden", TESTING_LINE_HIDDEN));
	/* A query for another address uses the same file again. */
	assert(find("bare-2", "program", "at_inner") == 0 && answer.count == 3);
	end();
}

UNIT(separate_debug_information_by_name)
{
	begin_plainly();
	testing_run("gcc -g -O1 -Wl,--build-id=none program.c -o whole && mkdir .debug && "
		    "objcopy --only-keep-debug whole .debug/my.debug && strip -o bare whole && "
		    "objcopy --add-gnu-debuglink=.debug/my.debug bare linked");
	assert(find("linked", "whole", "at_hidden") == 0);
	assert(is_frame(0, "hidden", TESTING_LINE_HIDDEN));
	end();
}

UNIT(the_build_must_be_the_one_that_ran)
{
	struct symbolizer_module module;
	uint64_t address;

	begin_plainly();
	module = testing_symbolizer_module("program");
	address = testing_address("program", "at_plain");
	testing_symbolizer_build_id("program", &module);
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	/* Rebuilt since: its names would be wrong. */
	testing_run("objcopy --only-keep-debug program old.debug");
	testing_run("sed 's/plain/simple/g' program.c >new.c && gcc -g -O1 new.c -o program");
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == -ESTALE);
	/* Unless its debug information was kept. */
	testing_run("id=$(readelf -n old.debug | sed -n 's/.*Build ID: //p') && "
		    "two=$(printf %%.2s $id) && mkdir -p debug/.build-id/$two && "
		    "cp old.debug debug/.build-id/$two/${id#??}.debug");
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	assert(is_frame(0, "plain", TESTING_LINE_PLAIN));
	testing_run("rm program");
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	module.build_id[3] ^= 1;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == -ENOENT);
	module.build_id_length = RESOLVE_BUILD_ID_MAX + 1;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == -EINVAL);
	end();
}

/* Each user has a separate process, and names from one user's file are not given to another. */
UNIT(users_are_kept_apart)
{
	struct symbolizer_module module;
	uint64_t address;
	pid_t first;

	begin_plainly();
	module = testing_symbolizer_module("program");
	address = testing_address("program", "at_plain");
	testing_let_in();
	testing_run("chmod 755 program");
	module.user = 1001;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	first = testing_symbolizer_pid();
	module.user = 1002;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	assert(counts().cached == 0 && counts().started == 2);
	assert(!testing_symbolizer_lives(first));
	end();
}

UNIT(files_are_read_with_the_rights_of_the_user)
{
	struct symbolizer_module module;
	uint64_t address;

	begin_plainly();
	module = testing_symbolizer_module("program");
	address = testing_address("program", "at_plain");
	testing_let_in();
	testing_run("chmod 700 program");
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	module.user = geteuid() + 1001;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == -EACCES);
	end();
}

UNIT(files_in_closed_folders_have_no_names)
{
	struct symbolizer_module module;
	uint64_t address;

	begin_plainly();
	testing_let_in();
	testing_run("mkdir closed && cp program closed && chmod 755 closed/program && chmod 755 "
		    "closed");
	module = testing_symbolizer_module("closed/program");
	address = testing_address("program", "at_plain");
	module.user = geteuid() + 1001;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == 0);
	testing_run("chmod 700 closed");
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == -EACCES);
	/* Nor for a process that does not have it mapped, or is not this user's. */
	module.process.pid = (uint32_t)getpid();
	module.process.start_ticks = 1;
	assert(symbols_resolve(symbols, &module, address, PATIENCE, &answer) == -EACCES);
	end();
}

UNIT(an_idle_symbol_worker_ends)
{
	const struct symbols_config config = {.symbolizer.timeout_ms = 20000, .idle_s = 1};
	pid_t pid;

	begin(&config);
	assert(find("program", "program", "at_plain") == 0);
	pid = testing_symbolizer_pid();
	while (testing_symbolizer_lives(pid)) /* the test runner's limit is the deadline */
		(void)usleep(10000);
	assert(find("program", "program", "at_hidden") == 0 && counts().started == 2);
	assert(counts().lost == 0);
	end();
}

static void *ask_often(void *context)
{
	struct symbolizer_module module = {.path = context, .user = geteuid()};
	struct symbolizer_answer mine;

	for (uint64_t i = 0; i < 300; i++) {
		int r = symbols_resolve(symbols, &module, 0x1000 + i * 8 % 0x400, PATIENCE, &mine);

		assert(r == 0 || r == -ENOENT);
	}
	return NULL;
}

UNIT(many_threads_get_their_own_answers)
{
	pthread_t threads[8];
	char path[4096];

	begin_plainly();
	(void)snprintf(path, sizeof(path), "%s", testing_path("program"));
	for (size_t i = 0; i < 8; i++)
		assert(pthread_create(&threads[i], NULL, ask_often, path) == 0);
	for (size_t i = 0; i < 8; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	assert(counts().asked == 2400 && counts().cached >= 2000 && counts().lost == 0);
	end();
}
