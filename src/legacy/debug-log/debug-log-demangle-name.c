/* SPDX-License-Identifier: Apache-2.0 */

/* Names: of functions and classes, in namespaces, classes and functions. */

#include <string.h>

#include "legacy/debug-log/debug-log-demangle-private.h"

/* With a blank where the word would run into "operator". */
static const char demangle_operators[][2][12] = {
	{"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"ng", "-"},
	{"ad", "&"},    {"de", "*"},      {"co", "~"},       {"pl", "+"},         {"mi", "-"},
	{"ml", "*"},    {"dv", "/"},      {"rm", "%"},       {"an", "&"},         {"or", "|"},
	{"eo", "^"},    {"aS", "="},      {"pL", "+="},      {"mI", "-="},        {"mL", "*="},
	{"dV", "/="},   {"rM", "%="},     {"aN", "&="},      {"oR", "|="},        {"eO", "^="},
	{"ls", "<<"},   {"rs", ">>"},     {"lS", "<<="},     {"rS", ">>="},       {"eq", "=="},
	{"ne", "!="},   {"lt", "<"},      {"gt", ">"},       {"le", "<="},        {"ge", ">="},
	{"ss", "<=>"},  {"nt", "!"},      {"aa", "&&"},      {"oo", "||"},        {"pp", "++"},
	{"mm", "--"},   {"cm", ","},      {"pm", "->*"},     {"pt", "->"},        {"cl", "()"},
	{"ix", "[]"},
};

static bool demangle_source(struct debug_log_demangle *d)
{
	static const char nameless[] = "_GLOBAL__N_";
	size_t length = 0;

	for (; *d->at >= '0' && *d->at <= '9'; d->at++) {
		length = length * 10 + (size_t)(*d->at - '0');
		if (length > DEBUG_LOG_DEMANGLE_TEXT)
			return false;
	}
	if (length == 0 || strnlen(d->at, length) < length)
		return false;
	d->at += length;
	if (length >= sizeof(nameless) - 1 &&
	    memcmp(d->at - length, nameless, sizeof(nameless) - 1) == 0)
		return debug_log_demangle_put_text(d, "(anonymous namespace)");
	return debug_log_demangle_put(d, d->at - length, length);
}

static bool demangle_operator(struct debug_log_demangle *d)
{
	for (size_t i = 0; i < sizeof(demangle_operators) / sizeof(demangle_operators[0]); i++) {
		if (debug_log_demangle_take(d, demangle_operators[i][0]))
			return debug_log_demangle_put_text(d, "operator") &&
			       debug_log_demangle_put_text(d, demangle_operators[i][1]);
	}
	return false;
}

static bool demangle_put_number(struct debug_log_demangle *d, uint32_t number)
{
	char digits[12], *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return debug_log_demangle_put_text(d, at);
}

/* "{lambda(int)#1}" after "Ul", "{unnamed type#1}" after "Ut". */
static bool demangle_unnamed(struct debug_log_demangle *d, bool is_lambda, uint32_t *from)
{
	struct debug_log_demangle_piece parameters = {0};
	bool had_args = d->has_args;
	uint32_t index;

	/* "T_" is an "auto" of the lambda's own. */
	d->has_args = false;
	if (is_lambda &&
	    (!debug_log_demangle_parameters(d, &parameters) || !debug_log_demangle_take(d, "E")))
		return false;
	d->has_args = had_args;
	if (!debug_log_demangle_index(d, 10, &index))
		return false;
	*from = d->used;
	return debug_log_demangle_put_text(d, is_lambda ? "{lambda" : "{unnamed type") &&
	       debug_log_demangle_put_piece(d, parameters) && debug_log_demangle_put_text(d, "#") &&
	       demangle_put_number(d, index + 1) && debug_log_demangle_put_text(d, "}");
}

/* The last name of a class, without its arguments: that of its constructors. */
static bool demangle_put_last(struct debug_log_demangle *d, struct debug_log_demangle_piece class)
{
	uint32_t from = class.from, depth = 0;

	for (uint32_t i = class.from; i < class.to; i++) {
		char c = d->text[i];

		if (strchr("<([{", c))
			depth++;
		else if (strchr(">)]}", c))
			depth--;
		else if (c == ':' && depth == 0)
			from = i + 1;
	}
	class.from = (uint16_t)from;
	for (uint32_t i = class.to; i > from; i--) {
		if (d->text[i - 1] == '<' || d->text[i - 1] == '[')
			class.to = (uint16_t)(i - 1);
	}
	return class.to > class.from && d->text[class.from] != '{' &&
	       debug_log_demangle_put_piece(d, class);
}

/* One name, without its arguments. @class: what it is in; for constructors. */
static bool demangle_unqualified(struct debug_log_demangle *d,
				 struct debug_log_demangle_piece class,
				 struct debug_log_demangle_piece *ret)
{
	uint32_t from = d->used;
	bool is_special =
		(d->at[0] == 'C' || d->at[0] == 'D') && d->at[1] >= '0' && d->at[1] <= '5';
	bool is_known;

	if (is_special) {
		bool is_end = *d->at == 'D';

		d->at += 2;
		is_known = class.to > class.from &&
			   debug_log_demangle_put_text(d, is_end ? "~" : "") &&
			   demangle_put_last(d, class);
	} else if (debug_log_demangle_take(d, "Ul")) {
		is_known = demangle_unnamed(d, true, &from);
	} else if (debug_log_demangle_take(d, "Ut")) {
		is_known = demangle_unnamed(d, false, &from);
	} else if (*d->at >= '0' && *d->at <= '9') {
		is_known = demangle_source(d);
	} else {
		is_known = demangle_operator(d);
	}
	while (is_known && debug_log_demangle_take(d, "B"))
		is_known = debug_log_demangle_put_text(d, "[abi:") && demangle_source(d) &&
			   debug_log_demangle_put_text(d, "]");
	*ret = debug_log_demangle_since(d, from);
	ret->has_no_return = is_special;
	return is_known;
}

/* "A::b" or "Ab". */
static bool demangle_combine(struct debug_log_demangle *d, struct debug_log_demangle_piece *piece,
			     const char *between, struct debug_log_demangle_piece more)
{
	uint32_t from = d->used;
	bool has_no_return = *between ? more.has_no_return : piece->has_no_return;

	if (piece->to > piece->from &&
	    (!debug_log_demangle_put_piece(d, *piece) || !debug_log_demangle_put_text(d, between)))
		return false;
	/* "operator< <int>" */
	if (!*between && d->text[d->used - 1] == '<' && !debug_log_demangle_put_text(d, " "))
		return false;
	if (!debug_log_demangle_put_piece(d, more))
		return false;
	*piece = debug_log_demangle_since(d, from);
	piece->has_no_return = has_no_return;
	return true;
}

/* One step of a nested name; what it has become can be referred to, unless it is complete. */
static bool demangle_step(struct debug_log_demangle *d, bool is_function,
			  struct debug_log_demangle_piece *piece)
{
	struct debug_log_demangle_piece more;
	bool is_first = piece->to == piece->from;

	/* The runtime takes another name for that of a constructor there. */
	if (*d->at == 'S')
		return is_first && debug_log_demangle_substitution(d, piece) && !piece->hole &&
		       *d->at != 'C' && *d->at != 'D';
	if (*d->at == 'T') {
		if (!is_first || !debug_log_demangle_parameter(d, piece) || piece->is_pack ||
		    piece->hole)
			return false;
	} else if (debug_log_demangle_take(d, "I")) {
		if (is_first || !debug_log_demangle_arguments(d, is_function, &more) ||
		    !demangle_combine(d, piece, "", more))
			return false;
		piece->is_template = 1;
	} else if (!demangle_unqualified(d, *piece, &more) ||
		   !demangle_combine(d, piece, is_first ? "" : "::", more)) {
		return false;
	}
	return *d->at == 'E' || debug_log_demangle_remember(d, *piece);
}

/* After "N". */
static bool demangle_nested(struct debug_log_demangle *d, bool is_function, const char **ret_suffix,
			    struct debug_log_demangle_piece *ret)
{
	static const char *const suffixes[2][3] = {{"", " &", " &&"},
						   {" const", " const &", " const &&"}};
	bool is_const;
	int reference = 0;

	if (*d->at == 'r' || *d->at == 'V')
		return false;
	is_const = debug_log_demangle_take(d, "K");
	if (debug_log_demangle_take(d, "R"))
		reference = 1;
	else if (debug_log_demangle_take(d, "O"))
		reference = 2;
	*ret_suffix = suffixes[is_const][reference];
	*ret = (struct debug_log_demangle_piece){0};
	while (!debug_log_demangle_take(d, "E")) {
		if (!*d->at || !demangle_step(d, is_function, ret))
			return false;
	}
	return ret->to > ret->from;
}

/*
 * The function around a local name. Its "T_" are its own arguments, and what was made of them means
 * something else outside: it cannot be referred to from there.
 */
static bool demangle_around(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	uint32_t first = d->arg_first, count = d->arg_count, dependent = d->dependent;
	bool has_args = d->has_args;

	d->dependent = UINT32_MAX;
	if (++d->depth > DEBUG_LOG_DEMANGLE_DEPTH || !debug_log_demangle_encoding(d, false, ret))
		return false;
	d->depth--;
	for (uint32_t i = d->dependent; i < d->sub_count; i++)
		d->subs[i] = (struct debug_log_demangle_piece){.is_pack = 1};
	d->arg_first = first;
	d->arg_count = count;
	d->dependent = dependent;
	d->has_args = has_args;
	return true;
}

/* After "Z": something inside of a function. */
static bool demangle_local(struct debug_log_demangle *d, bool is_function, const char **ret_suffix,
			   struct debug_log_demangle_piece *ret)
{
	struct debug_log_demangle_piece function, entity;
	uint32_t from, index;

	if (!demangle_around(d, &function) || !debug_log_demangle_take(d, "E") || *d->at == 's' ||
	    *d->at == 'd')
		return false;
	if (!debug_log_demangle_name(d, is_function, ret_suffix, &entity))
		return false;
	/* Which of several with this name: not shown. */
	if (debug_log_demangle_take(d, "__")) {
		if (!debug_log_demangle_index(d, 10, &index))
			return false;
	} else if (debug_log_demangle_take(d, "_")) {
		if (*d->at < '0' || *d->at > '9')
			return false;
		d->at++;
	}
	from = d->used;
	if (!debug_log_demangle_put_piece(d, function) || !debug_log_demangle_put_text(d, "::") ||
	    !debug_log_demangle_put_piece(d, entity))
		return false;
	*ret = debug_log_demangle_since(d, from);
	ret->is_template = entity.is_template;
	ret->has_no_return = entity.has_no_return;
	return true;
}

bool debug_log_demangle_name(struct debug_log_demangle *d, bool is_function,
			     const char **ret_suffix, struct debug_log_demangle_piece *ret)
{
	struct debug_log_demangle_piece none = {0}, more;
	bool is_known = true, is_new = true;

	if (debug_log_demangle_take(d, "N"))
		return demangle_nested(d, is_function, ret_suffix, ret);
	if (debug_log_demangle_take(d, "Z"))
		return demangle_local(d, is_function, ret_suffix, ret);
	if (*d->at == 'S' && d->at[1] != 't') {
		is_new = false;
		is_known = debug_log_demangle_substitution(d, ret) && !ret->hole;
	} else if (debug_log_demangle_take(d, "St")) {
		uint32_t from = d->used;

		is_known = debug_log_demangle_put_text(d, "std");
		*ret = debug_log_demangle_since(d, from);
		is_known = is_known && demangle_unqualified(d, none, &more) &&
			   demangle_combine(d, ret, "::", more);
	} else {
		if (*d->at == 'L')
			d->at++; /* static in its file */
		is_known = demangle_unqualified(d, none, ret);
	}
	if (!is_known || *d->at != 'I')
		return is_known && is_new;
	d->at++;
	if ((is_new && !debug_log_demangle_remember(d, *ret)) ||
	    !debug_log_demangle_arguments(d, is_function, &more) ||
	    !demangle_combine(d, ret, "", more))
		return false;
	ret->is_template = 1;
	return true;
}
