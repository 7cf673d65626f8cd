/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A loaded file's unwind tables (.eh_frame_hdr and .eh_frame), as far as rules need them
 * (lib/stack/rules.h). Nothing is allocated, locked, called or cached, so a stack can be walked
 * anywhere: in constructors, in callbacks of the loader, while another thread holds its locks.
 *
 * The tables are the application's memory and may be damaged: every read is checked against the
 * parts of the file that are mapped readable, and what a rule cannot express is RULE_LOST.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stack/rules.h"

/* Bytes still to be read. Once something was beyond the end, everything read is 0. */
struct eh_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

uint64_t eh_read(struct eh_cursor *cursor, size_t size); /* of 1, 2, 4 or 8 bytes */
uint64_t eh_read_uleb(struct eh_cursor *cursor);
int64_t eh_read_sleb(struct eh_cursor *cursor);
void eh_skip(struct eh_cursor *cursor, uint64_t length);

/* Which instructions apply to an address: those of its CIE, then those of its FDE. */
struct eh_entry {
	uintptr_t pc;    /* the address itself */
	uintptr_t start; /* of the code that the FDE describes */
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	bool is_signal; /* the frame of a handler's return */
	struct eh_cursor common;
	struct eh_cursor own;
};

/* The rule that follows from the entry's instructions. */
void eh_program_rule(const struct eh_entry *entry, struct rule *ret_rule);

/* The readable parts of a file in memory. */
#define EH_PARTS 16u /* any more are ignored */
struct eh_parts {
	struct {
		uintptr_t low;
		uintptr_t high;
	} list[EH_PARTS];
	size_t count;
};

/* The rule for the instruction at @pc, from the .eh_frame_hdr at @tables. */
void eh_parts_rule(const struct eh_parts *parts, uintptr_t tables, uintptr_t pc,
		   struct rule *ret_rule);

/* The rule for a call that returns to @address; at least RULE_LOST. */
void eh_frame_rule(uintptr_t address, struct rule *ret_rule);

/* Whether files and their tables can be found at all. */
bool eh_frame_works(void);
