/* SPDX-License-Identifier: Apache-2.0 */

/* Types. */

#include <string.h>

#include "legacy/debug-log/debug-log-demangle-private.h"

static const struct {
	const char *code, *name;
} demangle_builtins[] = {
	{"v", "void"},        {"w", "wchar_t"},
	{"b", "bool"},        {"c", "char"},
	{"a", "signed char"}, {"h", "unsigned char"},
	{"s", "short"},       {"t", "unsigned short"},
	{"i", "int"},         {"j", "unsigned int"},
	{"l", "long"},        {"m", "unsigned long"},
	{"x", "long long"},   {"y", "unsigned long long"},
	{"n", "__int128"},    {"o", "unsigned __int128"},
	{"f", "float"},       {"d", "double"},
	{"e", "long double"}, {"g", "__float128"},
	{"z", "..."},         {"Dn", "decltype(nullptr)"},
	{"Di", "char32_t"},   {"Ds", "char16_t"},
	{"Du", "char8_t"},
};

static const struct {
	char letter;
	const char *name;
} demangle_standard[] = {
	{'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
	{'i', "std::istream"},   {'o', "std::ostream"},      {'d', "std::iostream"},
};

bool debug_log_demangle_substitution(struct debug_log_demangle *d,
				     struct debug_log_demangle_piece *ret)
{
	uint32_t from = d->used, index;

	d->at++; /* "S" */
	if (*d->at == 't') {
		d->at++;
		if (!debug_log_demangle_put_text(d, "std"))
			return false;
		*ret = debug_log_demangle_since(d, from);
		return true;
	}
	for (size_t i = 0; i < sizeof(demangle_standard) / sizeof(demangle_standard[0]); i++) {
		if (demangle_standard[i].letter != *d->at)
			continue;
		d->at++;
		/* Those have another name in their constructors. */
		if ((*d->at == 'C' || *d->at == 'D') && strchr("siod", d->at[-1]))
			return false;
		if (*d->at == 'B' || !debug_log_demangle_put_text(d, demangle_standard[i].name))
			return false;
		*ret = debug_log_demangle_since(d, from);
		return true;
	}
	if (!debug_log_demangle_index(d, 36, &index) || index >= d->sub_count)
		return false;
	*ret = d->subs[index];
	return !ret->is_pack;
}

bool debug_log_demangle_parameter(struct debug_log_demangle *d,
				  struct debug_log_demangle_piece *ret)
{
	uint32_t index;

	d->at++; /* "T" */
	if (!d->has_args || !debug_log_demangle_index(d, 10, &index) || index >= d->arg_count)
		return false;
	if (d->dependent > d->sub_count)
		d->dependent = d->sub_count;
	*ret = d->packs[d->arg_first + index];
	if (!ret->is_pack)
		return true;
	if (d->pack_at < 0)
		return false;
	d->pack_size = ret->to - ret->from;
	if (d->pack_at >= d->pack_size)
		return false;
	*ret = d->packs[ret->from + d->pack_at];
	return true;
}

/* Puts @word where it belongs: after the type, or into the middle of a function's or an array's. */
static bool demangle_modify(struct debug_log_demangle *d, struct debug_log_demangle_piece *piece,
			    const char *word)
{
	struct debug_log_demangle_piece old = *piece;
	uint32_t from = d->used, middle = old.hole ? old.hole : old.to, hole = 0;

	if (!debug_log_demangle_put(d, d->text + old.from, middle - old.from) ||
	    !debug_log_demangle_put_text(d, old.is_bare ? "(" : "") ||
	    !debug_log_demangle_put_text(d, word))
		return false;
	if (old.hole)
		hole = d->used;
	if (!debug_log_demangle_put_text(d, !old.is_bare   ? ""
					    : old.is_array ? ") "
							   : ")") ||
	    !debug_log_demangle_put(d, d->text + middle, old.to - middle))
		return false;
	*piece = debug_log_demangle_since(d, from);
	piece->hole = (uint16_t)hole;
	return true;
}

/* "&" of "&&" is "&". */
static bool demangle_refer(struct debug_log_demangle *d, struct debug_log_demangle_piece *piece,
			   const char *word)
{
	uint32_t end = piece->hole ? piece->hole : piece->to;

	if (piece->is_bare || end == piece->from || d->text[end - 1] != '&')
		return demangle_modify(d, piece, word);
	if (piece->hole)
		return false;
	if (word[1] == '\0' && end - piece->from > 1 && d->text[end - 2] == '&')
		piece->to--;
	return true;
}

/* After "F": "int (char)", with the hole before the parameters. */
static bool demangle_function(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	struct debug_log_demangle_piece result, parameters;
	uint32_t from, hole;

	if (*d->at == 'Y' || !debug_log_demangle_type(d, &result) || result.hole ||
	    result.is_pack || !debug_log_demangle_parameters(d, &parameters) ||
	    !debug_log_demangle_take(d, "E"))
		return false;
	from = d->used;
	if (!debug_log_demangle_put_piece(d, result) || !debug_log_demangle_put_text(d, " "))
		return false;
	hole = d->used;
	if (!debug_log_demangle_put_piece(d, parameters))
		return false;
	*ret = debug_log_demangle_since(d, from);
	ret->hole = (uint16_t)hole;
	ret->is_bare = 1;
	return true;
}

/* After "A": "int [4]". */
static bool demangle_array(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	const char *digits = d->at;
	struct debug_log_demangle_piece element;
	uint32_t from, hole;
	size_t length;

	while (*d->at >= '0' && *d->at <= '9')
		d->at++;
	length = (size_t)(d->at - digits);
	if (!debug_log_demangle_take(d, "_") || !debug_log_demangle_type(d, &element) ||
	    element.hole || element.is_pack)
		return false;
	from = d->used;
	if (!debug_log_demangle_put_piece(d, element) || !debug_log_demangle_put_text(d, " "))
		return false;
	hole = d->used;
	if (!debug_log_demangle_put_text(d, "[") || !debug_log_demangle_put(d, digits, length) ||
	    !debug_log_demangle_put_text(d, "]"))
		return false;
	*ret = debug_log_demangle_since(d, from);
	ret->hole = (uint16_t)hole;
	ret->is_bare = ret->is_array = 1;
	return true;
}

/* After "Dp": the type once for each element of the pack that is in it. */
static bool demangle_expansion(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	const char *begin = d->at;
	uint32_t first = d->pack_count, subs = 0;
	struct debug_log_demangle_piece piece;

	if (d->pack_at >= 0)
		return false;
	d->pack_size = -1;
	for (d->pack_at = 0; d->pack_at == 0 || d->pack_at < d->pack_size; d->pack_at++) {
		uint32_t before = d->sub_count;

		d->at = begin;
		if (!debug_log_demangle_type(d, &piece) || d->pack_size < 1 ||
		    d->pack_count == DEBUG_LOG_DEMANGLE_PIECES)
			return false;
		/* Later references are to the pattern; one that cannot be told is refused. */
		subs = d->sub_count - before;
		if (d->pack_at > 0)
			d->sub_count = before;
		d->packs[d->pack_count++] = piece;
	}
	for (uint32_t i = 0; i < subs; i++)
		d->subs[d->sub_count - 1 - i] = (struct debug_log_demangle_piece){.is_pack = 1};
	d->pack_at = -1;
	*ret = (struct debug_log_demangle_piece){
		.is_pack = 1, .from = (uint16_t)first, .to = (uint16_t)d->pack_count};
	return true;
}

static bool demangle_ends_with(const struct debug_log_demangle *d,
			       const struct debug_log_demangle_piece *piece, const char *word)
{
	uint32_t end = piece->hole ? piece->hole : piece->to;
	size_t length = strlen(word);

	return end - piece->from >= length && memcmp(d->text + end - length, word, length) == 0;
}

static bool demangle_qualified(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	bool is_volatile = debug_log_demangle_take(d, "V"),
	     is_const = debug_log_demangle_take(d, "K");

	if (!debug_log_demangle_type(d, ret) || ret->is_pack || ret->is_bare)
		return false;
	/* An argument may be const already; that of a reference is not. */
	is_const = is_const && !demangle_ends_with(d, ret, " const");
	if (demangle_ends_with(d, ret, "&") || demangle_ends_with(d, ret, " volatile"))
		return false;
	return (!is_const || demangle_modify(d, ret, " const")) &&
	       (!is_volatile || demangle_modify(d, ret, " volatile"));
}

/* @ret_is_new: it can be referred to later. */
static bool demangle_any(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret,
			 bool *ret_is_new)
{
	const char *suffix, *begin = d->at;

	*ret_is_new = true;
	switch (*d->at) {
	case 'V':
	case 'K':
		return demangle_qualified(d, ret);
	case 'P':
		d->at++;
		return debug_log_demangle_type(d, ret) && !ret->is_pack &&
		       demangle_modify(d, ret, "*");
	case 'R':
	case 'O':
		d->at++;
		return debug_log_demangle_type(d, ret) && !ret->is_pack &&
		       demangle_refer(d, ret, *begin == 'R' ? "&" : "&&");
	case 'F':
		d->at++;
		return demangle_function(d, ret);
	case 'A':
		d->at++;
		return demangle_array(d, ret);
	case 'T':
		return debug_log_demangle_parameter(d, ret) && *d->at != 'I';
	case 'S':
		if (d->at[1] == 't')
			return debug_log_demangle_name(d, false, &suffix, ret);
		if (!debug_log_demangle_substitution(d, ret))
			return false;
		if (*d->at != 'I') {
			*ret_is_new = false;
			return true;
		}
		d->at = begin;
		return debug_log_demangle_name(d, false, &suffix, ret);
	default:
		return (*d->at == 'N' || *d->at == 'Z' || (*d->at >= '0' && *d->at <= '9')) &&
		       debug_log_demangle_name(d, false, &suffix, ret);
	}
}

bool debug_log_demangle_type(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret)
{
	uint32_t from = d->used;
	bool is_new, is_known;

	for (size_t i = 0; i < sizeof(demangle_builtins) / sizeof(demangle_builtins[0]); i++) {
		if (debug_log_demangle_take(d, demangle_builtins[i].code)) {
			is_known = debug_log_demangle_put_text(d, demangle_builtins[i].name);
			*ret = debug_log_demangle_since(d, from);
			return is_known;
		}
	}
	if (++d->depth > DEBUG_LOG_DEMANGLE_DEPTH)
		return false;
	if (debug_log_demangle_take(d, "Dp")) {
		is_known = demangle_expansion(d, ret);
		is_new = true;
	} else {
		is_known = demangle_any(d, ret, &is_new);
	}
	d->depth--;
	return is_known && (!is_new || debug_log_demangle_remember(d, *ret));
}
