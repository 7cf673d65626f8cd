/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a collector answers if it accepted only part of a message: {"partialSuccess":
 * {"rejected...": "3"}}.
 */

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "web/export/push-private.h"

/*
 * OTLP JSON has 64-bit numbers as strings; some collectors send numbers. Anything else counts as 0.
 */
static uint64_t answer_number(const json_t *value)
{
	const char *text = json_string_value(value);
	char *end;
	uintmax_t number;

	if (json_is_integer(value))
		return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
	if (!text || *text < '0' || *text > '9')
		return 0;
	number = strtoumax(text, &end, 10);
	return *end ? 0 : (uint64_t)number;
}

/*
 * How many points or records of a message were rejected; at most @sent, whatever the answer claims.
 */
uint64_t push_answer_rejected(const char *text, size_t length, uint64_t sent)
{
	static const char *const names[] = {"rejectedDataPoints", "rejectedLogRecords"};
	json_t *document = length > 0 ? json_loadb(text, length, 0, NULL) : NULL;
	const json_t *partial = json_object_get(document, "partialSuccess");
	uint64_t rejected = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		uint64_t number = answer_number(json_object_get(partial, names[i]));

		if (number > rejected)
			rejected = number;
	}
	json_decref(document);
	return rejected < sent ? rejected : sent;
}
