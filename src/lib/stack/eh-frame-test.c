/* SPDX-License-Identifier: Apache-2.0 */

/* Rules from unwind tables: instruction by instruction, and from tables that are damaged. */

#include "lib/stack/eh-frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"

#define START UINT64_C(0x1000)

/* Every function begins with the return address at the stack pointer, or in a register. */
#if defined(__x86_64__)
#define RETURN_REGISTER 16
#define COMMON 0x0c, 7, FIRST_CFA, 0x90, 1
#define FIRST_CFA 8
#else
#define RETURN_REGISTER 30
#define COMMON 0x0c, 31, FIRST_CFA, 0, 0
#define FIRST_CFA 0
#endif

static const uint8_t common[] = {COMMON};

/* The rule @pc bytes into a function with these instructions. */
static struct rule rule_of(const uint8_t *bytes, size_t length, uintptr_t pc)
{
	struct eh_entry entry = {
		.pc = START + pc,
		.start = START,
		.code_align = 1,
		.data_align = -8,
		.return_register = RETURN_REGISTER,
		.common = {common, common + sizeof(common), false},
		.own = {bytes, bytes + length, false},
	};
	struct rule rule;

	eh_program_rule(&entry, &rule);
	return rule;
}

struct row {
	const char *what;
	uint8_t bytes[24];
	uint8_t length;
	uint8_t pc;
	struct rule rule;
};

#if defined(__x86_64__)

static const struct row rows[] = {
	{"before the first instruction", {0}, 0, 0, {RULE_SP, 8, RULE_KEPT}},
	{"after push", {0x41, 0x0e, 16, 0x86, 2}, 5, 1, {RULE_SP, 16, -16}},
	{"not yet there", {0x41, 0x0e, 16, 0x86, 2}, 5, 0, {RULE_SP, 8, RULE_KEPT}},
	{"with a frame", {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}, 8, 9, {RULE_FP, 16, -16}},
	{"back to the stack pointer",
	 {0x0d, 6, 0x41, 0x0c, 7, 8, 0xc6},
	 7,
	 1,
	 {RULE_SP, 8, RULE_KEPT}},
	{"another branch of code",
	 {0x0e, 16, 0x0a, 0x0e, 64, 0x0b},
	 6,
	 0,
	 {RULE_SP, 16, RULE_KEPT}},
	{"advances of two and four bytes",
	 {0x03, 0x00, 0x01, 0x0e, 16, 0x04, 1, 0, 0, 0, 0x0e, 24},
	 12,
	 255,
	 {RULE_SP, 8, RULE_KEPT}},
	{"a register that does not matter",
	 {0x83, 2, 0x8f, 3, 0x05, 12, 4},
	 7,
	 0,
	 {RULE_SP, 8, RULE_KEPT}},
	{"offsets with a sign", {0x12, 7, 0x7e, 0x11, 6, 2, 0x13, 0x7c}, 8, 0, {RULE_SP, 32, -16}},
	{"no caller", {0x07, 16}, 2, 0, {RULE_END, 0, 0}},
	{"a stack realigned by the caller's pointer",
	 {0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0},
	 10,
	 0,
	 {RULE_SAVED, -8, 0}},
	{"a number of one byte",
	 {0x0f, 5, 0x77, 0, 0x08, 0x88, 0x22},
	 7,
	 0,
	 {RULE_SP, 0x88, RULE_KEPT}},
	{"... with a sign", {0x0f, 5, 0x77, 32, 0x09, 0xf0, 0x22}, 7, 0, {RULE_SP, 16, RULE_KEPT}},
	{"a number of two bytes",
	 {0x0f, 6, 0x77, 0, 0x0a, 0x08, 0x80, 0x22},
	 8,
	 0,
	 {RULE_SP, 0x8008, RULE_KEPT}},
	{"... with a sign",
	 {0x0f, 6, 0x77, 32, 0x0b, 0xf0, 0xff, 0x22},
	 8,
	 0,
	 {RULE_SP, 16, RULE_KEPT}},
	{"a number of four bytes",
	 {0x0f, 8, 0x77, 0, 0x0c, 0x08, 0, 0x80, 0, 0x22},
	 10,
	 0,
	 {RULE_SP, 0x800008, RULE_KEPT}},
	{"... with a sign",
	 {0x0f, 8, 0x77, 32, 0x0d, 0xf0, 0xff, 0xff, 0xff, 0x22},
	 10,
	 0,
	 {RULE_SP, 16, RULE_KEPT}},
	{"a number of eight bytes",
	 {0x0f, 12, 0x77, 0, 0x0e, 0x88, 0, 0, 0, 0, 0, 0, 0, 0x22},
	 14,
	 0,
	 {RULE_SP, 0x88, RULE_KEPT}},
	{"... with a sign",
	 {0x0f, 12, 0x77, 32, 0x0f, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x22},
	 14,
	 0,
	 {RULE_SP, 16, RULE_KEPT}},
	{"a number of any length",
	 {0x0f, 6, 0x77, 0, 0x10, 0xc8, 0x00, 0x22},
	 8,
	 0,
	 {RULE_SP, 72, RULE_KEPT}},
	{"... with a sign", {0x0f, 5, 0x77, 32, 0x11, 0x70, 0x22}, 7, 0, {RULE_SP, 16, RULE_KEPT}},
	{"a linkage table, before the push",
	 {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
	 13,
	 10,
	 {RULE_SP, 8, RULE_KEPT}},
	{"a linkage table, after the push",
	 {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
	 13,
	 11,
	 {RULE_SP, 16, RULE_KEPT}},
	{"the frame is found by another register", {0x0d, 10}, 2, 0, {RULE_LOST, 0, 0}},
	{"and again by the stack pointer",
	 {0x0e, 48, 0x0d, 10, 0x0d, 7},
	 6,
	 0,
	 {RULE_SP, 48, RULE_KEPT}},
	{"the return address is elsewhere", {0x90, 3}, 2, 0, {RULE_LOST, 0, 0}},
	{"... in a register", {0x09, 16, 2}, 3, 0, {RULE_LOST, 0, 0}},
	{"the frame pointer is calculated", {0x16, 6, 2, 0x77, 0}, 5, 0, {RULE_LOST, 0, 0}},
	{"an unknown instruction", {0x3f}, 1, 0, {RULE_LOST, 0, 0}},
	{"states that were never saved", {0x0b}, 1, 0, {RULE_LOST, 0, 0}},
	{"cut in an operand", {0x0e}, 1, 0, {RULE_LOST, 0, 0}},
	{"cut in an expression", {0x0f, 40, 0x77, 8}, 4, 0, {RULE_LOST, 0, 0}},
	{"an expression of nothing", {0x0f, 0}, 2, 0, {RULE_LOST, 0, 0}},
	{"an expression that takes too much", {0x0f, 1, 0x22}, 3, 0, {RULE_LOST, 0, 0}},
	{"an endless number",
	 {0x0e, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
	 12,
	 0,
	 {RULE_LOST, 0, 0}},
	{"a frame too large for a rule", {0x0e, 255, 255, 255, 255, 127}, 6, 0, {RULE_LOST, 0, 0}},
};

#else

static const struct row rows[] = {
	{"before the first instruction", {0}, 0, 0, {RULE_SP, 0, RULE_KEPT, RULE_KEPT}},
	{"with both registers saved",
	 {0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3},
	 7,
	 1,
	 {RULE_SP, 32, -32, -24}},
	{"not yet there",
	 {0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3},
	 7,
	 0,
	 {RULE_SP, 0, RULE_KEPT, RULE_KEPT}},
	{"with a frame", {0x0c, 29, 16, 0x9d, 2, 0x9e, 1}, 7, 0, {RULE_FP, 16, -16, -8}},
	{"with the return address alone", {0x0e, 16, 0x9e, 2}, 4, 0, {RULE_SP, 16, RULE_KEPT, -16}},
	{"with the return address first",
	 {0x0e, 32, 0x9e, 4, 0x9d, 1},
	 6,
	 0,
	 {RULE_SP, 32, -8, -32}},
	{"signed", {0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3}, 9, 2, {RULE_SP, 32, -32, -24}},
	{"signed no longer",
	 {0x2d, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0xde, 0xdd, 0x0e, 0, 0x2d},
	 13,
	 1,
	 {RULE_SP, 0, RULE_KEPT, RULE_KEPT}},
	{"no caller", {0x07, 30}, 2, 0, {RULE_END, 0, 0, 0}},
	{"the return address is in another register", {0x09, 30, 17}, 3, 0, {RULE_LOST, 0, 0, 0}},
	{"... above the frame", {0x11, 30, 0x7f}, 3, 0, {RULE_LOST, 0, 0, 0}},
	{"the frame is found by another register", {0x0d, 17}, 2, 0, {RULE_LOST, 0, 0, 0}},
	{"the frame depends on the length of vectors",
	 {0x0f, 7, 0x8f, 0, 0x92, 46, 0, 0x40, 0x1e},
	 9,
	 0,
	 {RULE_LOST, 0, 0, 0}},
	{"a frame that is not aligned", {0x0e, 12}, 2, 0, {RULE_LOST, 0, 0, 0}},
	{"a frame too large for a rule",
	 {0x0e, 255, 255, 255, 255, 127},
	 6,
	 0,
	 {RULE_LOST, 0, 0, 0}},
};

#endif

UNIT(instructions_give_rules)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rule rule = rule_of(rows[i].bytes, rows[i].length, rows[i].pc);
		bool is_move = rows[i].rule.kind > RULE_LOST;

		fprintf(stderr, "%s: %d %d %d\n", rows[i].what, (int)rule.kind, rule.cfa, rule.fp);
		assert(rule.kind == rows[i].rule.kind);
		assert(!is_move || rule.cfa == rows[i].rule.cfa);
		assert(!is_move || rule.fp == rows[i].rule.fp);
		assert(!is_move || rules_ra(&rule) == rules_ra(&rows[i].rule));
	}
}

/* As many states as can be saved, and one more. */
UNIT(states_are_saved_to_a_depth)
{
	uint8_t bytes[32];

	memset(bytes, 0x0a, sizeof(bytes));
	memset(bytes + 8, 0x0b, 8);
	assert(rule_of(bytes, 16, 0).kind == RULE_SP);
	assert(rule_of(bytes, 8, 0).kind == RULE_SP);
	memset(bytes, 0x0a, sizeof(bytes));
	assert(rule_of(bytes, 9, 0).kind == RULE_LOST);
}

/* A table of one function, as linkers write it. Addresses are relative to where they are. */
struct tables {
	uint8_t head[4];
	int32_t frame;
	uint32_t count;
	struct {
		int32_t start;
		int32_t entry;
	} row;
	struct {
		uint32_t length;
		uint32_t id;
		uint8_t bytes[16];
	} common;
	struct {
		uint32_t length;
		uint32_t back;
		int32_t start;
		uint32_t size;
		uint8_t bytes[8];
	} own;
	uint8_t code[64];
} __attribute__((packed));

static void tables_make(struct tables *t)
{
	/* Version, "zR", alignment 1 and -8, the register, one byte of data: the form. */
	static const uint8_t cie[16] = {1, 'z', 'R', 0, 1, 0x78, RETURN_REGISTER, 1, 0x1b, COMMON};

	*t = (struct tables){
		.head = {1, 0x1b, 0x03, 0x3b},
		.count = 1,
		.row = {offsetof(struct tables, code), offsetof(struct tables, own)},
		.common = {.length = sizeof(t->common) - 4},
		.own = {.length = sizeof(t->own) - 4,
			.back = offsetof(struct tables, own.back) - offsetof(struct tables, common),
			.start = offsetof(struct tables, code) - offsetof(struct tables, own.start),
			.size = sizeof(t->code),
			.bytes = {0, 0x44, 0x0e, 32}},
	};
	memcpy(t->common.bytes, cie, sizeof(cie));
}

static struct rule tables_rule(const struct tables *t, size_t pc)
{
	struct eh_parts parts = {.list = {{(uintptr_t)t, (uintptr_t)(t + 1)}}, .count = 1};
	struct rule rule;

	eh_parts_rule(&parts, (uintptr_t)t, (uintptr_t)t->code + pc, &rule);
	return rule;
}

UNIT(a_function_is_found_by_its_address)
{
	struct tables t;

	tables_make(&t);
	assert(tables_rule(&t, 0).cfa == FIRST_CFA && tables_rule(&t, 3).cfa == FIRST_CFA);
	assert(tables_rule(&t, 4).cfa == 32 && tables_rule(&t, 63).cfa == 32);
	assert(tables_rule(&t, 64).kind == RULE_LOST);
	assert(tables_rule(&t, (size_t)-1).kind == RULE_LOST);
}

/* Any damage gives some rule or none. ASan watches that nothing outside is read. */
UNIT(damaged_tables_are_survived)
{
	struct tables *t = malloc(sizeof(*t));
	uint32_t rules = 0;

	assert(t);
	for (size_t byte = 0; byte < sizeof(*t) - sizeof(t->code); byte++) {
		for (unsigned int value = 0; value < 256; value++) {
			tables_make(t);
			((uint8_t *)t)[byte] = (uint8_t)value;
			for (size_t pc = 0; pc < 64; pc += 21)
				rules += tables_rule(t, pc).kind > RULE_LOST;
		}
	}
	assert(rules > 0);
	free(t);
}

static __attribute__((noinline)) uintptr_t here(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

UNIT(our_own_code_has_rules)
{
	struct rule rule;

	if (!eh_frame_works())
		unit_skip("the C library has no _dl_find_object()");
	eh_frame_rule(here(), &rule);
	assert(rule.kind > RULE_LOST);
	eh_frame_rule((uintptr_t)&rule, &rule);
	assert(rule.kind == RULE_LOST);
	eh_frame_rule(0, &rule);
	assert(rule.kind == RULE_LOST);
}

/* What handlers return to is recognized by its code, wherever that is. */
static void trampoline(void)
{
#if defined(__x86_64__)
	__asm__ volatile(".globl trampoline_code\ntrampoline_code: movq $15, %rax\n\tsyscall");
#else
	__asm__ volatile(".globl trampoline_code\ntrampoline_code: mov x8, #139\n\tsvc #0");
#endif
}

extern const uint8_t trampoline_code[];

UNIT(the_return_from_a_handler_is_recognized)
{
	void (*volatile code)(void) = trampoline; /* not to be called, but to be there */
	struct rule rule;

	if (!eh_frame_works())
		unit_skip("the C library has no _dl_find_object()");
	assert(code);
	eh_frame_rule((uintptr_t)trampoline_code, &rule);
	assert(rule.kind == RULE_SIGNAL);
	eh_frame_rule((uintptr_t)trampoline_code + 1, &rule);
	assert(rule.kind != RULE_SIGNAL);
}
