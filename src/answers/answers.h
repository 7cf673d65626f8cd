/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What can be asked: each answer with its path over HTTP, and the fields of a query that it honours. Every
 * other field is refused, as parameter of a URL and as option of the command of that name: a filter that
 * nobody reads would be a wrong answer.
 */

#include <stddef.h>
#include <stdint.h>

struct field;

enum answers_id {
	ANSWERS_HEALTH,
	ANSWERS_METRICS,
	ANSWERS_METRICS_SITES,
	ANSWERS_SMI,
	ANSWERS_HOST,
	ANSWERS_FLEET,
	ANSWERS_PS,
	ANSWERS_BUFFERS,
	ANSWERS_MAP,
	ANSWERS_FIT,
	ANSWERS_LEAKS,
	ANSWERS_ENDED,
	ANSWERS_PEAK,
	ANSWERS_GROWTH,
	ANSWERS_COMMANDS,
	ANSWERS_INCIDENTS,
	ANSWERS_HISTORY,
	ANSWERS_SERIES,
	ANSWERS_MOMENTS,
	ANSWERS_STREAM,
	ANSWERS_DEVICES,
	ANSWERS_SIGN_IN,
	ANSWERS_SIGN_OUT,
	ANSWERS_OPEN,
	ANSWERS_STATUS,
	ANSWERS_CARDS,
	ANSWERS_DUMP,
	/* Of many paths: */
	ANSWERS_STATS,
	ANSWERS_ASSET,
	ANSWERS_COUNT,
};

struct answer {
	const char *path; /* NULL: many */
	uint32_t honours; /* enum query_field */
	uint32_t options; /* further ones, which only the command of that name takes */
	/* Of one that comes in pages: */
	uint32_t page;              /* rows that a command asks for at a time; each may be large */
	const char *list;           /* the member that goes on on the next page */
	const char *sublist;        /* of its last row, a member that may go on too; NULL = none */
	const struct field *fields; /* of a row of that list, and the size of its struct */
	size_t size;
};

extern const struct answer answers[ANSWERS_COUNT];
