/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A name is read once, from left to right, as the Itanium C++ ABI writes it. Each part of it becomes a
 * piece of text, and a larger part is put together from the pieces of its parts; so what a later "S1_" or
 * "T_" refers to is there already, as text.
 */

#include "legacy/debug-log/debug-log-demangle.h"

#include <string.h>

#include "legacy/debug-log/debug-log-demangle-private.h"

bool debug_log_demangle_put(struct debug_log_demangle *d, const char *bytes, size_t length)
{
	if (length >= sizeof(d->text) - d->used)
		return false;
	memmove(d->text + d->used, bytes, length);
	d->used += (uint32_t)length;
	d->text[d->used] = '\0';
	return true;
}

bool debug_log_demangle_put_text(struct debug_log_demangle *d, const char *text)
{
	return debug_log_demangle_put(d, text, strlen(text));
}

bool debug_log_demangle_put_piece(struct debug_log_demangle *d,
				  struct debug_log_demangle_piece piece)
{
	return !piece.is_pack &&
	       debug_log_demangle_put(d, d->text + piece.from, (size_t)piece.to - piece.from);
}

struct debug_log_demangle_piece debug_log_demangle_since(const struct debug_log_demangle *d,
							 uint32_t from)
{
	return (struct debug_log_demangle_piece){.from = (uint16_t)from, .to = (uint16_t)d->used};
}

bool debug_log_demangle_remember(struct debug_log_demangle *d,
				 struct debug_log_demangle_piece piece)
{
	if (d->sub_count == DEBUG_LOG_DEMANGLE_PIECES)
		return false;
	d->subs[d->sub_count++] = piece;
	return true;
}

bool debug_log_demangle_push(struct debug_log_demangle *d, struct debug_log_demangle_piece piece)
{
	if (d->list_count == DEBUG_LOG_DEMANGLE_PIECES)
		return false;
	d->list[d->list_count++] = piece;
	return true;
}

bool debug_log_demangle_take(struct debug_log_demangle *d, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(d->at, word, length) != 0)
		return false;
	d->at += length;
	return true;
}

/* "_" is 0, "0_" is 1, and so on, with digits up to Z for @base 36. */
bool debug_log_demangle_index(struct debug_log_demangle *d, uint32_t base, uint32_t *ret_index)
{
	uint32_t value = 0;
	const char *begin = d->at;

	for (; *d->at && *d->at != '_'; d->at++) {
		uint32_t digit = *d->at >= '0' && *d->at <= '9'   ? (uint32_t)(*d->at - '0')
				 : *d->at >= 'A' && *d->at <= 'Z' ? (uint32_t)(*d->at - 'A') + 10
								  : base;

		if (digit >= base || value > 100000)
			return false;
		value = value * base + digit;
	}
	if (*d->at != '_')
		return false;
	*ret_index = begin == d->at ? 0 : value + 1;
	d->at++;
	return true;
}

/* "<A, B>" of what the list has from @first on; packs are spread out. */
static bool demangle_join(struct debug_log_demangle *d, uint32_t first)
{
	const char *comma = "";

	for (uint32_t i = first; i < d->list_count; i++) {
		struct debug_log_demangle_piece piece = d->list[i];
		uint32_t from = piece.is_pack ? piece.from : i,
			 to = piece.is_pack ? piece.to : i + 1;

		/* What the runtime makes of that is not a list. */
		if (from == to && i + 1 < d->list_count)
			return false;
		for (uint32_t k = from; k < to; k++) {
			if (!debug_log_demangle_put_text(d, comma) ||
			    !debug_log_demangle_put_piece(d, piece.is_pack ? d->packs[k] : piece))
				return false;
			comma = ", ";
		}
	}
	return true;
}

static const struct {
	char letter;
	const char *name, *suffix;
} demangle_numbers[] = {{'i', "", ""},
			{'j', "", "u"},
			{'l', "", "l"},
			{'m', "", "ul"},
			{'x', "", "ll"},
			{'y', "", "ull"},
			{'s', "(short)", ""},
			{'t', "(unsigned short)", ""},
			{'c', "(char)", ""},
			{'h', "(unsigned char)", ""},
			{'a', "(signed char)", ""}};

/* After "L": a constant, up to its E. */
static bool demangle_constant(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	const char *before = NULL, *after = "";
	struct debug_log_demangle_piece type;
	uint32_t from;

	if (debug_log_demangle_take(d, "b0E") || debug_log_demangle_take(d, "b1E")) {
		from = d->used;
		if (!debug_log_demangle_put_text(d, d->at[-2] == '1' ? "true" : "false"))
			return false;
		*ret = debug_log_demangle_since(d, from);
		return true;
	}
	for (size_t i = 0; i < sizeof(demangle_numbers) / sizeof(demangle_numbers[0]); i++) {
		if (demangle_numbers[i].letter == *d->at) {
			before = demangle_numbers[i].name;
			after = demangle_numbers[i].suffix;
		}
	}
	if (*d->at == '_')
		return false; /* the address of something */
	if (!debug_log_demangle_type(d, &type))
		return false;
	from = d->used;
	/* Of an enum: "(Color)2". */
	if (before ? !debug_log_demangle_put_text(d, before)
		   : !debug_log_demangle_put_text(d, "(") ||
			     !debug_log_demangle_put_piece(d, type) ||
			     !debug_log_demangle_put_text(d, ")"))
		return false;
	if (debug_log_demangle_take(d, "n") && !debug_log_demangle_put_text(d, "-"))
		return false;
	if (*d->at < '0' || *d->at > '9')
		return false;
	for (; *d->at >= '0' && *d->at <= '9'; d->at++) {
		if (!debug_log_demangle_put(d, d->at, 1))
			return false;
	}
	if (!debug_log_demangle_take(d, "E") || !debug_log_demangle_put_text(d, after))
		return false;
	*ret = debug_log_demangle_since(d, from);
	return true;
}

static bool demangle_argument(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	uint32_t first = d->list_count;

	if (debug_log_demangle_take(d, "L"))
		return demangle_constant(d, ret);
	if (*d->at == 'X')
		return false;
	if (!debug_log_demangle_take(d, "J"))
		return debug_log_demangle_type(d, ret);
	while (!debug_log_demangle_take(d, "E")) {
		if (*d->at == 'J' || !demangle_argument(d, ret) || ret->is_pack ||
		    !debug_log_demangle_push(d, *ret))
			return false;
	}
	*ret = (struct debug_log_demangle_piece){.is_pack = 1, .from = (uint16_t)d->pack_count};
	for (uint32_t i = first; i < d->list_count; i++) {
		if (d->pack_count == DEBUG_LOG_DEMANGLE_PIECES)
			return false;
		d->packs[d->pack_count++] = d->list[i];
	}
	ret->to = (uint16_t)d->pack_count;
	d->list_count = first;
	return true;
}

bool debug_log_demangle_arguments(struct debug_log_demangle *d, bool is_function,
				  struct debug_log_demangle_piece *ret)
{
	uint32_t first = d->list_count, from;
	struct debug_log_demangle_piece piece;

	while (!debug_log_demangle_take(d, "E")) {
		if (!demangle_argument(d, &piece) || !debug_log_demangle_push(d, piece))
			return false;
	}
	if (d->list_count == first)
		return false;
	from = d->used;
	if (!debug_log_demangle_put_text(d, "<") || !demangle_join(d, first))
		return false;
	/* Two ">" are kept apart, unless the runtime has just thought better of a ", " in between. */
	piece = d->list[d->list_count - 1];
	if (d->text[d->used - 1] == '>' && !(piece.is_pack && piece.from == piece.to) &&
	    !debug_log_demangle_put_text(d, " "))
		return false;
	if (!debug_log_demangle_put_text(d, ">"))
		return false;
	*ret = debug_log_demangle_since(d, from);
	if (is_function) {
		d->has_args = true;
		d->arg_first = d->pack_count;
		d->arg_count = d->list_count - first;
		if (d->pack_count + d->arg_count > DEBUG_LOG_DEMANGLE_PIECES)
			return false;
		memcpy(d->packs + d->pack_count, d->list + first,
		       d->arg_count * sizeof(d->list[0]));
		d->pack_count += d->arg_count;
	}
	d->list_count = first;
	return true;
}

bool debug_log_demangle_parameters(struct debug_log_demangle *d,
				   struct debug_log_demangle_piece *ret)
{
	uint32_t first = d->list_count, from;
	struct debug_log_demangle_piece piece;

	if (*d->at == 'v' && (d->at[1] == 'E' || d->at[1] == '\0')) {
		d->at++;
	} else {
		do {
			if (!debug_log_demangle_type(d, &piece) ||
			    !debug_log_demangle_push(d, piece))
				return false;
		} while (*d->at && *d->at != 'E' && *d->at != '.' &&
			 !(*d->at == 'R' && d->at[1] == 'E') &&
			 !(*d->at == 'O' && d->at[1] == 'E'));
	}
	from = d->used;
	if (!debug_log_demangle_put_text(d, "(") || !demangle_join(d, first) ||
	    !debug_log_demangle_put_text(d, ")"))
		return false;
	*ret = debug_log_demangle_since(d, from);
	d->list_count = first;
	return true;
}

/* A function: "int f<A>(B) const". One inside of which something else is named has no "int". */
bool debug_log_demangle_encoding(struct debug_log_demangle *d, bool is_outermost,
				 struct debug_log_demangle_piece *ret)
{
	struct debug_log_demangle_piece name, result = {0}, parameters;
	const char *suffix = "";
	bool has_result;
	uint32_t from;

	d->has_args = false;
	if (!debug_log_demangle_name(d, true, &suffix, &name) || !*d->at || *d->at == 'E')
		return false;
	has_result = name.is_template && !name.has_no_return;
	if (has_result && !debug_log_demangle_type(d, &result))
		return false;
	if (result.hole || result.is_pack || !debug_log_demangle_parameters(d, &parameters))
		return false;
	from = d->used;
	if (has_result && is_outermost &&
	    (!debug_log_demangle_put_piece(d, result) || !debug_log_demangle_put_text(d, " ")))
		return false;
	if (!debug_log_demangle_put_piece(d, name) ||
	    !debug_log_demangle_put_piece(d, parameters) || !debug_log_demangle_put_text(d, suffix))
		return false;
	*ret = debug_log_demangle_since(d, from);
	return true;
}

const char *debug_log_demangle(struct debug_log_demangle *state, const char *name)
{
	struct debug_log_demangle_piece whole;
	struct debug_log_demangle *d = state;

	if (name[0] != '_' || name[1] != 'Z')
		return NULL;
	d->at = name + 2;
	d->depth = d->sub_count = d->list_count = d->pack_count = 0;
	d->used = 1; /* so that a hole is never at 0 */
	d->dependent = UINT32_MAX;
	d->pack_at = d->pack_size = -1;
	if (!debug_log_demangle_encoding(d, true, &whole) || *d->at)
		return NULL;
	d->text[whole.to] = '\0';
	return d->text + whole.from;
}
