/* SPDX-License-Identifier: Apache-2.0 */

/* Names for a command: each address is asked for once, whatever the order. */

#include "cli/frame-names.h"

#include <string.h>
#include <unistd.h>

#include "base/unit.h"
#include "symbol/testing.h"

#define ADDRESSES 2000u
#define ROUNDS 5u

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
		(void)namer->find(namer, &place, names, NAMER_NAMES_MAX); /* most are nothing */
	}
	assert(frame_names_questions(made) == ADDRESSES);
	place.address = first;
	assert(namer->find(namer, &place, names, NAMER_NAMES_MAX) == 1);
	assert(strcmp(names[0].function, "plain") == 0 && names[0].line == TESTING_LINE_PLAIN);
	assert(frame_names_questions(made) == ADDRESSES);
	assert(!frame_names_free(made));
}
