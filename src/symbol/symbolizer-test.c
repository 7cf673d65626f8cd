/* SPDX-License-Identifier: Apache-2.0 */

/* Several processes, and which request goes to which. */

#include "symbol/symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "symbol/demangle.h"
#include "symbol/testing/symbol-testing.h"
#include "symbol/testing/testing-symbolizer.h"

#define TIMEOUT_MS 20000 /* ends a hang */
#define ROUNDS 20u

static struct symbolizer *symbolizer;
static struct symbolizer_answer answer;
static uint64_t plain; /* address of at_plain */

static void begin(struct symbolizer_config config)
{
	testing_sources();
	testing_run("gcc -g -O1 -Wl,--build-id=sha1 program.c -o program && chmod 755 program");
	plain = testing_address("program", "at_plain");
	config.stop_fd = -1;
	config.timeout_ms = TIMEOUT_MS;
	if (!config.debug_folder)
		config.debug_folder = "/nowhere";
	assert(symbolizer_new(&symbolizer, &config) == 0);
}

static void end(void)
{
	symbolizer = symbolizer_free(symbolizer);
}

static struct symbolizer_counts counts(void)
{
	struct symbolizer_counts now;

	symbolizer_counts(symbolizer, &now);
	return now;
}

/* Never the same address twice in a row, so that the answer is not cached. */
static int find(const struct symbolizer_module *module)
{
	static uint64_t offset;

	memset(&answer, 0, sizeof(answer));
	return symbolizer_find(symbolizer, module, plain + (offset++ & 1), &answer);
}

static bool is_plain(void)
{
	return answer.count == 1 && strcmp(answer.frames[0].function, "plain") == 0;
}

UNIT(users_have_a_process_each)
{
	struct symbolizer_module module;

	begin((struct symbolizer_config){.processes = 4, .own_rights = true});
	module = testing_symbolizer_module("program");
	for (uint32_t i = 0; i < ROUNDS; i++) {
		module.user = 1000 + i % 3;
		assert(symbolizer_find(symbolizer, &module, plain + i, &answer) <= 0);
	}
	/* With only one process, it would be restarted for each user. */
	assert(counts().started == 3 && counts().lost == 0 && counts().cached == 0);
	end();
}

UNIT(a_fifth_file_has_another_process)
{
	static const char *const names[] = {"program", "copy-1", "copy-2", "copy-3", "copy-4"};
	struct symbolizer_module module;

	begin((struct symbolizer_config){.processes = 4});
	for (size_t i = 1; i <= SYMBOLIZER_FILES; i++)
		testing_run("cp program %s", names[i]);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		for (size_t k = 0; k < SYMBOLIZER_FILES; k++) {
			module = testing_symbolizer_module(names[k]);
			assert(symbolizer_find(symbolizer, &module, plain + i, &answer) <= 0);
		}
	}
	assert(counts().started == 1);
	module = testing_symbolizer_module(names[SYMBOLIZER_FILES]);
	assert(find(&module) == 0 && is_plain());
	assert(counts().started == 2);
	end();
}

UNIT(a_lost_process_costs_its_own_file)
{
	struct symbolizer_module module, other;

	begin((struct symbolizer_config){.processes = 2});
	testing_run("cp program other && truncate -s 300M program");
	module = testing_symbolizer_module("program");
	other = testing_symbolizer_module("other");
	assert(find(&module) == 0 && is_plain());
	assert(kill(testing_symbolizer_pid(), SIGKILL) == 0);
	assert(find(&module) == -EPIPE && counts().lost == 1);
	assert(symbolizer_find(symbolizer, &module, plain + 2, &answer) == -EBUSY);
	assert(find(&other) == 0 && is_plain());
	end();
}

UNIT(own_rights_are_enough)
{
	struct symbolizer_module module;

	begin((struct symbolizer_config){.own_rights = true});
	testing_run("chmod 700 program");
	module = testing_symbolizer_module("program");
	module.user = geteuid() + 1001;
	assert(find(&module) == 0 && is_plain());
	end();
}

UNIT(files_that_are_kept_open_are_told_apart)
{
	begin((struct symbolizer_config){.keeps_files = true});
	testing_run("strip -o bare program; for i in $(seq 0 19); do cp program p$i; done");
	/* More than are kept; of the second round some are. */
	for (uint64_t i = 0; i < 40; i++) {
		char name[8];
		struct symbolizer_module module, bare, none;

		snprintf(name, sizeof(name), "p%u", (unsigned int)(i % 20));
		module = testing_symbolizer_module(name);
		assert(symbolizer_find(symbolizer, &module, plain + i / 20, &answer) == 0 &&
		       is_plain());
		bare = testing_symbolizer_module("bare");
		assert(find(&bare) == -ENOENT);
		none = testing_symbolizer_module("none");
		assert(find(&none) == -ENOENT);
	}
	end();
}

static uint32_t fetched;

static int fetch_nothing(struct symbolizer_fetcher *fetcher, const struct symbolizer_module *module,
			 int *ret_fd)
{
	fetched++;
	return -ENOENT;
}

static int fetch_debug(struct symbolizer_fetcher *fetcher, const struct symbolizer_module *module,
		       int *ret_fd)
{
	fetched++;
	*ret_fd = testing_open("whole.debug");
	return 0;
}

static void begin_stripped(struct symbolizer_fetcher *fetcher, struct symbolizer_module *ret_module)
{
	begin((struct symbolizer_config){.fetcher = fetcher});
	testing_run("objcopy --only-keep-debug program whole.debug && strip -o bare program");
	*ret_module = testing_symbolizer_module("bare");
	testing_symbolizer_build_id("bare", ret_module);
	fetched = 0;
}

UNIT(what_was_fetched_is_used_for_all_addresses)
{
	struct symbolizer_fetcher fetcher = {.fetch = fetch_debug};
	struct symbolizer_module module;

	begin_stripped(&fetcher, &module);
	for (uint64_t i = 0; i < 2; i++) {
		assert(symbolizer_find(symbolizer, &module, plain + i, &answer) == 0 && is_plain());
		assert(answer.frames[0].line != 0);
	}
	assert(fetched == 1);
	/* The file itself is not needed. */
	testing_run("rm bare");
	assert(symbolizer_find(symbolizer, &module, plain, &answer) == 0 && is_plain());
	assert(symbolizer_find(symbolizer, &module, plain + 1, &answer) == 0 && is_plain());
	assert(fetched == 2);
	end();
}

UNIT(what_cannot_be_fetched_is_asked_for_once)
{
	struct symbolizer_fetcher fetcher = {.fetch = fetch_nothing};
	struct symbolizer_module module;

	begin_stripped(&fetcher, &module);
	for (uint64_t i = 0; i < 5; i++)
		assert(symbolizer_find(symbolizer, &module, plain + i, &answer) == -ENOENT);
	assert(fetched == 1);
	/* Without a build id there is nothing to fetch. */
	testing_run("cp bare unknown");
	module = testing_symbolizer_module("unknown");
	assert(find(&module) == -ENOENT && fetched == 1);
	end();
}

/* Its root is gone too; the build id proves that the file below our root is the right one. */
UNIT(a_process_that_has_just_ended)
{
	struct symbolizer_module module;
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert(waitpid(pid, NULL, 0) == pid);
	begin((struct symbolizer_config){.processes = 1});
	module = testing_symbolizer_module("program");
	module.process.pid = (uint32_t)pid;
	assert(find(&module) == -ENOENT);
	testing_symbolizer_build_id("program", &module);
	assert(find(&module) == 0 && is_plain());
	module.build_id[0] ^= 1;
	assert(find(&module) == -ESTALE);
	end();
}

/* The demangler is trusted no more than the rest. */
UNIT(names_are_decoded_by_the_process)
{
	static char name[DEMANGLE_NAME_MAX + 1], text[DEMANGLE_NAME_MAX];

	begin((struct symbolizer_config){.processes = 1});
	assert(symbolizer_demangle(symbolizer, "_ZN1a1bEv", text) == 0);
	assert(strcmp(text, "a::b()") == 0);
	assert(symbolizer_demangle(symbolizer, "main", text) == 0 && strcmp(text, "main") == 0);
	assert(symbolizer_demangle(symbolizer, "", text) == 0 && strcmp(text, "") == 0);
	memset(name, 'x', DEMANGLE_NAME_MAX);
	assert(symbolizer_demangle(symbolizer, name, text) == -ENAMETOOLONG);
	name[DEMANGLE_NAME_MAX - 1] = 0;
	assert(symbolizer_demangle(symbolizer, name, text) == 0 && strcmp(text, name) == 0);
	assert(counts().started == 1);
	assert(kill(testing_symbolizer_pid(), SIGKILL) == 0);
	assert(symbolizer_demangle(symbolizer, "_ZN1a1bEv", text) == -EPIPE);
	assert(symbolizer_demangle(symbolizer, "_ZN1a1bEv", text) == 0);
	assert(counts().lost == 1 && counts().started == 2);
	end();
}
