/* SPDX-License-Identifier: Apache-2.0 */

/* Spills, their memory, and files that are not a ledger. */

#include "legacy/server/legacy-ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"

static uint8_t bytes[LEGACY_READ_SIZE];
static struct legacy_ledger *ledger;
static int file = -1;

static void begin(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(1 + i % 251);
	assert(legacy_ledger_new(&ledger, &file) == 0 && file >= 0);
}

static void end(void)
{
	legacy_ledger_close(ledger);
	legacy_ledger_close(NULL);
	assert(close(file) == 0);
}

/* The memory of the file in bytes. */
static uint64_t taken(void)
{
	struct stat state;

	assert(fstat(file, &state) == 0);
	return (uint64_t)state.st_blocks * 512;
}

UNIT(a_spill_holds_the_bytes_of_its_slot)
{
	struct legacy_slot *slot, *last;

	begin();
	slot = &ledger->slots[1];
	last = &ledger->slots[LEGACY_CONNECTIONS_MAX - 1];
	slot->spill_begin = 3; /* of an earlier one that was partly used */
	assert(legacy_ledger_spill(ledger, file, slot, bytes, 72) == 0);
	assert(slot->spill_begin == 0 && slot->spill_end == 72);
	assert(legacy_ledger_spill(ledger, file, last, bytes + 1, LEGACY_READ_SIZE - 1) == 0);
	assert(last->spill_end == LEGACY_READ_SIZE - 1);
	assert(memcmp(legacy_ledger_spilled(ledger, slot), bytes, 72) == 0);
	assert(memcmp(legacy_ledger_spilled(ledger, last), bytes + 1, LEGACY_READ_SIZE - 1) == 0);
	assert(legacy_ledger_spilled(ledger, slot) == ledger->spills[1]);
	end();
}

UNIT(whole_pages_are_reserved_once)
{
	struct legacy_slot *slot;
	uint64_t before;

	begin();
	before = taken();
	slot = &ledger->slots[0];
	assert(legacy_ledger_spill(ledger, file, slot, bytes, 4096) == 0);
	assert(slot->spill_room == 4096 && taken() == before + 4096);
	assert(legacy_ledger_spill(ledger, file, slot, bytes, 1) == 0);
	assert(slot->spill_room == 4096 && taken() == before + 4096);
	assert(legacy_ledger_spill(ledger, file, slot, bytes, 4097) == 0);
	assert(slot->spill_room == 8192 && taken() == before + 8192);
	end();
}

UNIT(an_empty_spill_keeps_at_most_its_first_page)
{
	struct legacy_slot *slot;
	uint64_t before;

	begin();
	before = taken();
	slot = &ledger->slots[2];
	assert(legacy_ledger_spill(ledger, file, slot, bytes, 3 * 4096) == 0);
	slot->spill_begin = 5;
	legacy_ledger_unspill(ledger, file, slot, false);
	assert(slot->spill_begin == 0 && slot->spill_end == 0);
	assert(slot->spill_room == 4096 && taken() == before + 4096);
	assert(*legacy_ledger_spilled(ledger, slot) == bytes[0]);
	legacy_ledger_unspill(ledger, file, slot, false); /* nothing is left to give back */
	assert(slot->spill_room == 4096 && taken() == before + 4096);
	legacy_ledger_unspill(ledger, file, slot, true);
	assert(slot->spill_room == 0 && taken() == before);
	end();
}

UNIT(the_next_slot_keeps_its_spill)
{
	begin();
	for (size_t i = 0; i < 3; i++)
		assert(legacy_ledger_spill(ledger, file, &ledger->slots[i], bytes,
					   LEGACY_READ_SIZE) == 0);
	legacy_ledger_unspill(ledger, file, &ledger->slots[1], true);
	assert(memcmp(ledger->spills[0], bytes, LEGACY_READ_SIZE) == 0);
	assert(ledger->spills[1][0] == 0 && ledger->spills[1][LEGACY_READ_SIZE - 1] == 0);
	assert(memcmp(ledger->spills[2], bytes, LEGACY_READ_SIZE) == 0);
	end();
}

UNIT(without_memory_nothing_is_spilled)
{
	struct legacy_slot *slot;

	begin();
	slot = &ledger->slots[0];
	assert(legacy_ledger_spill(ledger, -1, slot, bytes, 1) == -ENOSPC);
	assert(slot->spill_end == 0 && slot->spill_room == 0);
	end();
}

UNIT(a_new_ledger_is_opened_by_the_next_daemon)
{
	struct legacy_ledger *other;
	uint64_t device = 1, inode = 1;

	begin();
	ledger->listener_device = 11;
	ledger->listener_inode = 12;
	assert(legacy_ledger_spill(ledger, file, &ledger->slots[0], bytes, LEGACY_READ_SIZE) == 0);
	ledger->slots[0].spill_begin = LEGACY_READ_SIZE; /* all used */
	ledger->owner = LEGACY_CONNECTIONS_MAX;
	ledger->wanted = ledger->length = ledger->position = LEGACY_READ_SIZE;
	assert(legacy_ledger_open(&other, file) == 0);
	assert(other->slots[0].spill_end == LEGACY_READ_SIZE);
	legacy_ledger_close(other);
	assert(legacy_ledger_listener(file, &device, &inode) == 0 && device == 11 && inode == 12);
	end();
}

UNIT(a_spill_that_begins_behind_its_end_is_refused)
{
	struct legacy_ledger *other = NULL;

	begin();
	ledger->slots[LEGACY_CONNECTIONS_MAX - 1].spill_end = 7;
	ledger->slots[LEGACY_CONNECTIONS_MAX - 1].spill_begin = 8;
	assert(legacy_ledger_open(&other, file) == -EBADMSG && !other);
	ledger->slots[LEGACY_CONNECTIONS_MAX - 1].spill_begin = 7;
	assert(legacy_ledger_open(&other, file) == 0);
	legacy_ledger_close(other);
	/* Without bytes, where they begin does not matter. */
	ledger->slots[LEGACY_CONNECTIONS_MAX - 1].spill_end = 0;
	assert(legacy_ledger_open(&other, file) == 0);
	legacy_ledger_close(other);
	end();
}

UNIT(other_files_are_refused)
{
	struct legacy_ledger *other = NULL;
	uint64_t device, inode;
	int ends[2];

	begin();
	assert(legacy_ledger_open(&other, -1) == -EBADF);
	assert(pipe2(ends, O_CLOEXEC) == 0);
	assert(legacy_ledger_open(&other, ends[0]) == -EBADMSG);
	assert(close(ends[0]) == 0 && close(ends[1]) == 0);
	assert(ftruncate(file, (off_t)sizeof(*ledger) + 1) == 0);
	assert(legacy_ledger_open(&other, file) == -EBADMSG && !other);
	/* The listener is found in a ledger of any size. */
	assert(legacy_ledger_listener(file, &device, &inode) == 0);
	ledger->magic++;
	assert(legacy_ledger_listener(file, &device, &inode) == -EBADMSG);
	ledger->magic--;
	assert(ftruncate(file, 23) == 0);
	assert(legacy_ledger_listener(file, &device, &inode) == -EBADMSG);
	assert(ftruncate(file, 24) == 0 && legacy_ledger_listener(file, &device, &inode) == 0);
	end();
}
