/* SPDX-License-Identifier: Apache-2.0 */

/* Names for a command, from processes that may crash or hang. */

#include "cli/common/frame-names.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "symbol/testing/symbol-testing.h"
#include "symbol/testing/testing-symbolizer.h"

#define ADDRESSES 2000u
#define ROUNDS 5u
#define FLIPS 200u

UNIT(each_address_is_asked_for_once)
{
	struct frame_names *made = NULL;
	struct namer_name names[NAMER_NAMES_MAX];
	struct namer_place place = {.build_id = (const uint8_t *)"", .book = 1};
	struct namer *namer;
	uint64_t first;

	testing_sources();
	testing_run("gcc -g -O1 program.c -o program");
	first = testing_address("program", "at_plain");
	place.path = testing_path("program");
	assert(frame_names_new(&made) == 0 && frame_names_questions(made) == 0);
	namer = frame_names_namer(made);
	for (uint32_t i = 0; i < ROUNDS * ADDRESSES; i++) {
		place.address = first + (uint64_t)i * 7919 % ADDRESSES;
		(void)namer->find(namer, &place, names, NAMER_NAMES_MAX); /* most have no name */
	}
	assert(frame_names_questions(made) == ADDRESSES);
	place.address = first;
	assert(namer->find(namer, &place, names, NAMER_NAMES_MAX) == 1);
	assert(strcmp(names[0].function, "plain") == 0 && names[0].line == TESTING_LINE_PLAIN);
	assert(frame_names_questions(made) == ADDRESSES);
	assert(!frame_names_free(made));
}

static struct frame_names *made;
static struct namer_name names[NAMER_NAMES_MAX];
static uint64_t plain; /* address of at_plain */

static void begin(void)
{
	testing_sources();
	testing_run("gcc -g -O1 -shared -fPIC -nostdlib program.c -o program && cp program other");
	plain = testing_address("program", "at_plain");
	assert(frame_names_new(&made) == 0);
}

static void end(void)
{
	made = frame_names_free(made);
}

static size_t find(const char *name, uint64_t address)
{
	struct namer_place place = {
		.path = testing_path(name),
		.build_id = (const uint8_t *)"",
		.book = 1,
		.user = geteuid(),
		.address = address,
	};
	struct namer *namer = frame_names_namer(made);

	return namer->find(namer, &place, names, NAMER_NAMES_MAX);
}

static bool is_plain(const char *name)
{
	return find(name, plain) == 1 && strcmp(names[0].function, "plain") == 0 &&
	       names[0].line == TESTING_LINE_PLAIN;
}

UNIT(the_process_has_no_rights)
{
	pid_t pid;

	begin();
	assert(is_plain("program"));
	pid = testing_symbolizer_pid();
	assert(testing_symbolizer_status(pid, "Seccomp", 10) == 2);
	assert(testing_symbolizer_status(pid, "NoNewPrivs", 10) == 1);
	assert(testing_symbolizer_status(pid, "CapPrm", 16) == 0);
	end();
	assert(!testing_symbolizer_lives(pid));
}

UNIT(a_file_that_costs_the_process_costs_its_own_names)
{
	pid_t pid;

	begin();
	assert(is_plain("program"));
	pid = testing_symbolizer_pid();
	assert(kill(pid, SIGSTOP) == 0); /* as if it looped while parsing the file */
	assert(find("program", plain + 1) == 0);
	assert(!testing_symbolizer_lives(pid));
	assert(is_plain("other"));
	assert(is_plain("program")); /* already known */
	assert(find("program", plain + 1) == 0);
	end();
}

UNIT_LONG(damaged_files_cost_at_most_their_own_names, 300)
{
	CLEANUP_FREE uint8_t *bytes = NULL;
	uint64_t random = 1;
	char name[32];
	size_t size;

	begin();
	bytes = testing_read("program", &size);
	for (uint32_t i = 0; i < FLIPS; i++) {
		/* A deterministic sequence, so that a failure can be reproduced. */
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		bytes[(random >> 33) % size] ^= 0xff;
		(void)snprintf(name, sizeof(name), "damaged-%u", i % 8);
		testing_write(name, bytes, size);
		bytes[(random >> 33) % size] ^= 0xff;
		(void)find(name, plain + i); /* any answer will do */
	}
	assert(is_plain("other"));
	end();
}
