/* SPDX-License-Identifier: Apache-2.0 */

/* Naming frames in JSON. Without memory they stay as they are. */

#include "cli/common/stored-names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "base/text.h"
#include "cli/common/frame-names.h"
#include "model/sites/namer.h"

#define STORED_NAMES_ID_MAX 32u /* bytes of a build id, as in a book */

struct stored_names {
	struct frame_names *names; /* NULL until a frame needs a name */
};

struct stored_names *stored_names_new(void)
{
	return calloc(1, sizeof(struct stored_names));
}

struct stored_names *stored_names_free(struct stored_names *names)
{
	if (names)
		frame_names_free(names->names);
	free(names);
	return NULL;
}

static struct frame stored_names_frame(const json_t *row)
{
	struct frame frame;

	(void)fields_take(row, call_stack_frame_fields, &frame, NULL); /* has nothing in a pool */
	return frame;
}

static int stored_names_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the bytes; 0 if it is no build id. */
static uint32_t stored_names_id(const char *text, uint8_t ret_id[STORED_NAMES_ID_MAX])
{
	size_t length = text ? strlen(text) : 0;

	if (length % 2 || length / 2 > STORED_NAMES_ID_MAX)
		return 0;
	for (size_t i = 0; i < length; i += 2) {
		int high = stored_names_digit(text[i]), low = stored_names_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return 0;
		ret_id[i / 2] = (uint8_t)(high << 4 | low);
	}
	return (uint32_t)(length / 2);
}

/* The address in "module+0xaddress". */
static bool stored_names_address(const char *function, uint64_t *ret_address)
{
	const char *plus = function ? strrchr(function, '+') : NULL;

	return plus && text_parse_u64(plus + 1, ret_address) == 0 && *ret_address > 0;
}

/* As src/answers/call-stack.c describes it; without memory, members are missing. */
static json_t *stored_names_place(const struct frame *frame)
{
	return json_pack("{s:s?, s:s?, s:o, s:s?}", "function", frame->function, "file",
			 frame->file, "line", frame->line ? json_integer(frame->line) : json_null(),
			 "module", frame->module);
}

/* Adds the functions of a frame to @to, the innermost first. False: it is not known. */
static bool stored_names_add(struct stored_names *self, const struct frame *frame, json_t *to)
{
	struct namer_name names[NAMER_NAMES_MAX];
	uint8_t id[STORED_NAMES_ID_MAX];
	/* No path: a file of that name here is another one. */
	struct namer_place place = {.path = "", .build_id = id};
	struct namer *namer;
	size_t count;

	place.build_id_length = stored_names_id(frame->build_id, id);
	if (place.build_id_length == 0 || !stored_names_address(frame->function, &place.address))
		return false;
	/* The return address may already belong to another line. */
	place.address--;
	if (!self->names && frame_names_new(&self->names) < 0)
		return false;
	namer = frame_names_namer(self->names);
	count = namer->find(namer, &place, names, NAMER_NAMES_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct frame named = {
			.function = names[i].function,
			.file = names[i].file,
			.line = names[i].line,
			.module = frame->module,
		};
		json_t *row = stored_names_place(&named);

		(void)json_object_set_new(row, "python", json_false());
		if (frame->is_skipped)
			(void)json_object_set_new(row, "skipped", json_true());
		/* Of inlined functions the last is the outermost. */
		if (i + 1 == count && frame->is_cut)
			(void)json_object_set_new(row, "cut", json_true());
		if (json_array_append_new(to, row) < 0)
			return false;
	}
	return count > 0;
}

/* The frame that stands for the stack. */
static void stored_names_choose(json_t *owner, const json_t *stack)
{
	struct site site = SITE_NULL;
	json_t *row, *callers = json_array();

	for (size_t i = 0; i < json_array_size(stack); i++) {
		const struct frame frame = stored_names_frame(json_array_get(stack, i));

		site_consider(&site, &frame);
	}
	for (unsigned int i = 0; i < site.caller_count; i++)
		(void)json_array_append_new(callers, stored_names_place(&site.callers[i]));
	row = stored_names_place(&site.frame);
	(void)json_object_set_new(row, "user",
				  site.user_rank ? stored_names_place(&site.user) : json_null());
	(void)json_object_set_new(row, "via",
				  site.has_via ? stored_names_place(&site.via) : json_null());
	(void)json_object_set_new(row, "callers", callers);
	if (site.rank)
		(void)json_object_set(owner, "site", row);
	json_decref(row);
}

/* The stack of a row. */
static bool stored_names_stack(struct stored_names *self, json_t *owner, const json_t *stack)
{
	json_t *named = json_array();
	bool has_changed = false;

	for (size_t i = 0; i < json_array_size(stack); i++) {
		json_t *row = json_array_get(stack, i);
		const struct frame frame = stored_names_frame(row);

		if (stored_names_add(self, &frame, named))
			has_changed = true;
		else
			(void)json_array_append(named, row);
	}
	if (has_changed) {
		stored_names_choose(owner, named);
		(void)json_object_set(owner, "stack", named); /* frees the old one */
	}
	json_decref(named);
	return has_changed;
}

bool stored_names_fill(struct stored_names *names, json_t *document)
{
	bool has_changed = false;
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_array(document)) {
		json_array_foreach(document, i, value) has_changed |=
			stored_names_fill(names, value);
		return has_changed;
	}
	if (!json_is_object(document))
		return false;
	json_object_foreach(document, key, value)
	{
		if (strcmp(key, "stack") != 0)
			has_changed |= stored_names_fill(names, value);
	}
	value = json_object_get(document, "stack");
	if (json_is_array(value))
		has_changed |= stored_names_stack(names, document, value);
	return has_changed;
}
