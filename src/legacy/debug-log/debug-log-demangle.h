/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of C++ functions as people wrote them, for the buffer log, which had them. The C++ runtime's own
 * function allocates, and recurses as deeply as a name is nested: neither is allowed inside a program that
 * only wanted to report a buffer. This one uses memory that the caller has, and refuses what it does not
 * know: decltype and other expressions, member pointers, conversions. What it does decode is exactly what
 * the runtime says; a test compares all names of several libraries.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_LOG_DEMANGLE_TEXT 32768u /* all that is put together on the way */
#define DEBUG_LOG_DEMANGLE_PIECES 256u
#define DEBUG_LOG_DEMANGLE_DEPTH \
	48u /* of nested types; each takes some hundred bytes of the stack */

/* A part of the text. Pointers to functions and arrays have their "*" in the middle. */
struct debug_log_demangle_piece {
	uint16_t from, to;
	uint16_t hole;   /* where a "*" goes; 0 = at the end */
	uint8_t is_bare; /* a function or array: its first "*" needs parentheses */
	uint8_t is_array;
	uint8_t is_pack; /* arguments that a template parameter stands for: list[from] to list[to] */
	uint8_t is_template;
	uint8_t has_no_return; /* a constructor or destructor */
};

struct debug_log_demangle {
	/* Private. */
	const char *at;
	uint32_t depth;
	uint32_t used, sub_count, list_count, pack_count;
	uint32_t arg_first, arg_count; /* template arguments of the function, in packs */
	bool has_args;
	uint32_t dependent; /* the first of @subs that may contain one of them */
	int32_t pack_at;    /* which element of a pack is meant; -1 = all */
	int32_t pack_size;  /* of the pack that was met; -1 = none was */
	struct debug_log_demangle_piece subs[DEBUG_LOG_DEMANGLE_PIECES];
	struct debug_log_demangle_piece list[DEBUG_LOG_DEMANGLE_PIECES];
	struct debug_log_demangle_piece packs[DEBUG_LOG_DEMANGLE_PIECES];
	char text[DEBUG_LOG_DEMANGLE_TEXT];
};

/*
 * Decodes @name. @state: any memory. Return: NULL if it is not the name of a C++ function, or of a kind
 * that is not known; else the text, which lies in @state.
 */
const char *debug_log_demangle(struct debug_log_demangle *state, const char *name);
