/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Accept: media ranges with parameters and weights. Of several ranges that match, the most specific
 * one counts; among equally specific ones the largest weight, because a client may list several
 * versions.
 */

#include "web/server/accept-header.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#define ACCEPT_HEADER_WHOLE 1000 /* weights are in thousandths */
#define ACCEPT_HEADER_NONE (-1)

/* A piece of the header, without surrounding white space. */
struct accept_header_piece {
	const char *text;
	size_t length;
};

struct accept_header_score {
	int specific; /* 0 = nothing matched, 1 = any type, 2 = any subtype, 3 = this one */
	int weight;
};

static bool accept_header_is(struct accept_header_piece piece, const char *text)
{
	return piece.length == strlen(text) && strncasecmp(piece.text, text, piece.length) == 0;
}

static struct accept_header_piece accept_header_trim(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	return (struct accept_header_piece){from, (size_t)(to - from)};
}

/* The next piece up to @separator, ignoring separators in quotes. False: no more. */
static bool accept_header_cut(const char **at, const char *end, char separator,
			      struct accept_header_piece *ret_piece)
{
	const char *from = *at, *to;
	bool quoted = false;

	if (!from)
		return false;
	for (to = from; to < end && (quoted || *to != separator); to++) {
		if (*to == '"')
			quoted = !quoted;
		else if (quoted && *to == '\\' && to + 1 < end)
			to++;
	}
	*ret_piece = accept_header_trim(from, to);
	*at = to < end ? to + 1 : NULL;
	return true;
}

/* "0.75" in thousandths; an invalid weight counts as 0. */
static int accept_header_weight(struct accept_header_piece value)
{
	int weight = 0, scale = ACCEPT_HEADER_WHOLE;

	for (size_t i = 0; i < value.length; i++) {
		char c = value.text[i];

		if (i == 1 && c == '.')
			continue;
		if (c < '0' || c > '9' || (i == 0 && c > '1') || i > 4)
			return 0;
		weight += (c - '0') * scale;
		scale /= 10;
	}
	return value.length == 0 || weight > ACCEPT_HEADER_WHOLE ? 0 : weight;
}

/* One media range: its type, the version it asks for, and its weight. */
struct accept_header_range {
	struct accept_header_piece type;
	struct accept_header_piece version; /* length 0 = any */
	int weight;
};

static struct accept_header_range accept_header_range(struct accept_header_piece piece)
{
	struct accept_header_range range = {.weight = ACCEPT_HEADER_WHOLE};
	const char *at = piece.text, *end = piece.text + piece.length;
	struct accept_header_piece part;

	(void)accept_header_cut(&at, end, ';', &range.type); /* always present, perhaps empty */
	while (accept_header_cut(&at, end, ';', &part)) {
		const char *equals = memchr(part.text, '=', part.length);
		struct accept_header_piece key, value;

		if (!equals)
			continue;
		key = accept_header_trim(part.text, equals);
		value = accept_header_trim(equals + 1, part.text + part.length);
		if (value.length >= 2 && *value.text == '"' && value.text[value.length - 1] == '"')
			value = (struct accept_header_piece){value.text + 1, value.length - 2};
		if (accept_header_is(key, "q"))
			range.weight = accept_header_weight(value);
		else if (accept_header_is(key, "version"))
			range.version = value;
	}
	return range;
}

static void accept_header_score(struct accept_header_score *score, int specific, int weight)
{
	if (specific > score->specific)
		*score = (struct accept_header_score){specific, weight};
	else if (specific == score->specific && weight > score->weight)
		score->weight = weight;
}

bool accept_header_prefers_openmetrics(const char *accept)
{
	struct accept_header_score open = {0, ACCEPT_HEADER_NONE}, plain = {0, ACCEPT_HEADER_NONE};
	const char *at = accept, *end = accept ? accept + strlen(accept) : NULL;
	struct accept_header_piece piece;

	while (at && accept_header_cut(&at, end, ',', &piece)) {
		struct accept_header_range range = accept_header_range(piece);
		bool any_version = range.version.length == 0;

		if (accept_header_is(range.type, "*/*")) {
			accept_header_score(&open, 1, range.weight);
			accept_header_score(&plain, 1, range.weight);
		} else if (accept_header_is(range.type, "application/*")) {
			accept_header_score(&open, 2, range.weight);
		} else if (accept_header_is(range.type, "text/*")) {
			accept_header_score(&plain, 2, range.weight);
		} else if (accept_header_is(range.type, "application/openmetrics-text")) {
			if (any_version || accept_header_is(range.version, "1.0.0"))
				accept_header_score(&open, 3, range.weight);
		} else if (accept_header_is(range.type, "text/plain")) {
			if (any_version || accept_header_is(range.version, "0.0.4"))
				accept_header_score(&plain, 3, range.weight);
		}
	}
	/* "application/ *" and the like do not ask for metrics; the format must be named. */
	return open.specific == 3 && open.weight > 0 && open.weight > plain.weight;
}

bool accept_header_takes_gzip(const char *accept_encoding)
{
	struct accept_header_score gzip = {0, ACCEPT_HEADER_NONE};
	const char *at = accept_encoding, *end = at ? at + strlen(at) : NULL;
	struct accept_header_piece piece;

	while (at && accept_header_cut(&at, end, ',', &piece)) {
		struct accept_header_range range = accept_header_range(piece);

		if (accept_header_is(range.type, "*"))
			accept_header_score(&gzip, 1, range.weight);
		else if (accept_header_is(range.type, "gzip") ||
			 accept_header_is(range.type, "x-gzip"))
			accept_header_score(&gzip, 2, range.weight);
	}
	return gzip.weight > 0;
}

bool accept_header_has_tag(const char *if_none_match, const char *tag)
{
	if (!if_none_match)
		return false;
	return strcmp(if_none_match, "*") == 0 || strstr(if_none_match, tag) != NULL;
}
