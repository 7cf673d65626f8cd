/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Accept: media ranges with parameters and weights. Of several ranges that match, the most specific one
 * counts; among those of one kind the largest weight, because a client may list several versions.
 */

#include "web/server/accept-header.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#define MEDIA_WHOLE 1000 /* weights are counted in thousandths */
#define MEDIA_NONE (-1)

/* A piece of the header, without blanks around it. */
struct media_piece {
	const char *text;
	size_t length;
};

struct media_score {
	int specific; /* 0 = nothing matched, 1 = any type, 2 = any subtype, 3 = this one */
	int weight;
};

static bool media_is(struct media_piece piece, const char *text)
{
	return piece.length == strlen(text) && strncasecmp(piece.text, text, piece.length) == 0;
}

static struct media_piece media_trim(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	return (struct media_piece){from, (size_t)(to - from)};
}

/* The next piece up to @separator; quotes hide separators. False: there is none. */
static bool media_cut(const char **at, const char *end, char separator,
		      struct media_piece *ret_piece)
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
	*ret_piece = media_trim(from, to);
	*at = to < end ? to + 1 : NULL;
	return true;
}

/* "0.75" in thousandths; what is no weight counts as none at all. */
static int media_weight(struct media_piece value)
{
	int weight = 0, scale = MEDIA_WHOLE;

	for (size_t i = 0; i < value.length; i++) {
		char c = value.text[i];

		if (i == 1 && c == '.')
			continue;
		if (c < '0' || c > '9' || (i == 0 && c > '1') || i > 4)
			return 0;
		weight += (c - '0') * scale;
		scale /= 10;
	}
	return value.length == 0 || weight > MEDIA_WHOLE ? 0 : weight;
}

/* One media range: its type, the version it asks for, and its weight. */
struct media_range {
	struct media_piece type;
	struct media_piece version; /* length 0 = any */
	int weight;
};

static struct media_range media_range(struct media_piece piece)
{
	struct media_range range = {.weight = MEDIA_WHOLE};
	const char *at = piece.text, *end = piece.text + piece.length;
	struct media_piece part;

	(void)media_cut(&at, end, ';', &range.type); /* is there, if only an empty one */
	while (media_cut(&at, end, ';', &part)) {
		const char *equals = memchr(part.text, '=', part.length);
		struct media_piece key, value;

		if (!equals)
			continue;
		key = media_trim(part.text, equals);
		value = media_trim(equals + 1, part.text + part.length);
		if (value.length >= 2 && *value.text == '"' && value.text[value.length - 1] == '"')
			value = (struct media_piece){value.text + 1, value.length - 2};
		if (media_is(key, "q"))
			range.weight = media_weight(value);
		else if (media_is(key, "version"))
			range.version = value;
	}
	return range;
}

static void media_score(struct media_score *score, int specific, int weight)
{
	if (specific > score->specific)
		*score = (struct media_score){specific, weight};
	else if (specific == score->specific && weight > score->weight)
		score->weight = weight;
}

bool media_prefers_openmetrics(const char *accept)
{
	struct media_score open = {0, MEDIA_NONE}, plain = {0, MEDIA_NONE};
	const char *at = accept, *end = accept ? accept + strlen(accept) : NULL;
	struct media_piece piece;

	while (at && media_cut(&at, end, ',', &piece)) {
		struct media_range range = media_range(piece);
		bool any_version = range.version.length == 0;

		if (media_is(range.type, "*/*")) {
			media_score(&open, 1, range.weight);
			media_score(&plain, 1, range.weight);
		} else if (media_is(range.type, "application/*")) {
			media_score(&open, 2, range.weight);
		} else if (media_is(range.type, "text/*")) {
			media_score(&plain, 2, range.weight);
		} else if (media_is(range.type, "application/openmetrics-text")) {
			if (any_version || media_is(range.version, "1.0.0"))
				media_score(&open, 3, range.weight);
		} else if (media_is(range.type, "text/plain")) {
			if (any_version || media_is(range.version, "0.0.4"))
				media_score(&plain, 3, range.weight);
		}
	}
	/* "application/ *" and the like do not ask for metrics; only who names the format gets it. */
	return open.specific == 3 && open.weight > 0 && open.weight > plain.weight;
}

bool media_takes_gzip(const char *accept_encoding)
{
	struct media_score gzip = {0, MEDIA_NONE};
	const char *at = accept_encoding, *end = at ? at + strlen(at) : NULL;
	struct media_piece piece;

	while (at && media_cut(&at, end, ',', &piece)) {
		struct media_range range = media_range(piece);

		if (media_is(range.type, "*"))
			media_score(&gzip, 1, range.weight);
		else if (media_is(range.type, "gzip") || media_is(range.type, "x-gzip"))
			media_score(&gzip, 2, range.weight);
	}
	return gzip.weight > 0;
}
