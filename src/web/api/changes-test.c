/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes between documents: what they look like, and that they lead from any document to any other
 * when another program applies them, as docs/http.md tells it to.
 */

#include "web/api/changes.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "web/server/body.h"

static int test_change(const char *was, const char *now, struct body *out)
{
	return changes_append((struct changes_text){was, strlen(was)},
			      (struct changes_text){now, strlen(now)}, out);
}

/* @change: NULL = none. */
static void test_is(const char *was, const char *now, const char *change)
{
	struct body_purse purse = {0};
	struct body *out = body_new(&purse);
	size_t length = change ? strlen(change) : 0;

	assert(test_change(was, now, out) == (change != NULL));
	if (out->length != length || (change && memcmp(out->text, change, length) != 0))
		fprintf(stderr, "%s -> %s: %.*s\n", was, now, (int)out->length, out->text);
	assert(out->length == length && (!change || memcmp(out->text, change, length) == 0));
	body_unref(out);
}

UNIT(a_plain_value_is_given_as_it_is)
{
	test_is("1", "1", NULL);
	test_is("1", "2", "2");
	test_is("null", "\"a\"", "\"a\"");
	test_is("\"a\\\"b\"", "\"a\\\"c\"", "\"a\\\"c\"");
	test_is("{\"a\":1}", "null", "null");
	test_is("null", "{\"a\":1}", "{\"=\":{\"a\":1}}");
	test_is("[]", "{}", "{\"=\":{}}");
	test_is("18446744073709551615", "18446744073709551614", "18446744073709551614");
}

UNIT(of_an_object_only_changed_members_are_given)
{
	test_is("{}", "{}", NULL);
	test_is("{\"a\":1,\"b\":{\"c\":2}}", "{\"a\":1,\"b\":{\"c\":2}}", NULL);
	test_is("{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", "{\"b\":3}");
	test_is("{\"a\":1,\"b\":2}", "{\"a\":0,\"b\":3}", "{\"a\":0,\"b\":3}");
	test_is("{\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{\"a\":{\"b\":{\"c\":1,\"d\":3}}}",
		"{\"a\":{\"b\":{\"d\":3}}}");
	test_is("{\"a,}\":\"]\",\"b\":2}", "{\"a,}\":\"}\",\"b\":2}", "{\"a,}\":\"}\"}");
}

UNIT(an_object_with_other_members_is_given_whole)
{
	test_is("{}", "{\"a\":1}", "{\"=\":{\"a\":1}}");
	test_is("{\"a\":1}", "{}", "{\"=\":{}}");
	test_is("{\"a\":1}", "{\"b\":1}", "{\"=\":{\"b\":1}}");
	test_is("{\"a\":1,\"b\":2}", "{\"a\":3}", "{\"=\":{\"a\":3}}");
	test_is("{\"a\":1}", "{\"a\":3,\"b\":2}", "{\"=\":{\"a\":3,\"b\":2}}");
	test_is("{\"a\":{\"x\":1},\"b\":1}", "{\"a\":{\"y\":1},\"b\":2}",
		"{\"a\":{\"=\":{\"y\":1}},\"b\":2}");
}

UNIT(rows_of_a_list_are_told_apart_by_their_first_number)
{
	test_is("[]", "[]", NULL);
	test_is("[{\"n\":1},{\"n\":2}]", "[{\"n\":1},{\"n\":2}]", NULL);
	test_is("[{\"n\":1,\"a\":1},{\"n\":2,\"a\":1},{\"n\":3,\"a\":1}]",
		"[{\"n\":1,\"a\":1},{\"n\":2,\"a\":2},{\"n\":3,\"a\":1}]", "[1,{\"a\":2}]");
	test_is("[{\"n\":1},{\"n\":2},{\"n\":3}]", "[{\"n\":3}]", "[-2]");
	test_is("[{\"n\":1},{\"n\":2},{\"n\":3}]", "[{\"n\":1},{\"n\":2}]", "[2,-1]");
	test_is("[{\"n\":1},{\"n\":3}]", "[{\"n\":1},{\"n\":2},{\"n\":3}]",
		"[1,{\"+\":{\"n\":2}}]");
	test_is("[]", "[{\"n\":1},{\"n\":2}]", "[{\"+\":{\"n\":1}},{\"+\":{\"n\":2}}]");
	test_is("[{\"n\":1}]", "[]", "[-1]");
	test_is("[{\"n\":1,\"a\":1},{\"n\":4,\"a\":1},{\"n\":5,\"a\":1},{\"n\":6,\"a\":1}]",
		"[{\"n\":2,\"a\":1},{\"n\":4,\"a\":1},{\"n\":5,\"a\":2},{\"n\":6,\"a\":1}]",
		"[-1,{\"+\":{\"n\":2,\"a\":1}},1,{\"a\":2}]");
}

UNIT(a_list_of_anything_else_is_given_whole)
{
	test_is("[\"a\"]", "[\"a\"]", NULL);
	test_is("[\"a\"]", "[\"a\",\"b\"]", "{\"=\":[\"a\",\"b\"]}");
	test_is("[{\"n\":1},2]", "[{\"n\":1},3]", "{\"=\":[{\"n\":1},3]}");
	test_is("[{\"n\":\"x\"}]", "[{\"n\":\"y\"}]", "{\"=\":[{\"n\":\"y\"}]}");
	test_is("[[1]]", "[[2]]", "{\"=\":[[2]]}");
}

/* Each prefix, in memory of exactly its size, so that a sanitizer sees what is read beyond it. */
UNIT(a_text_that_is_cut_off_is_refused)
{
	static const char whole[] =
		"{\"a\":[{\"n\":1,\"t\":\"x\\\"y\"},{\"n\":2,\"t\":null}],\"b\":{\"c\":[1,2]}}";
	struct body_purse purse = {0};

	for (size_t length = 0; length < strlen(whole); length++) {
		struct changes_text all = {whole, strlen(whole)}, cut = {NULL, length};
		struct body *out = body_new(&purse);
		char *text = malloc(length + !length);

		assert(text);
		memcpy(text, whole, length);
		cut.text = text;
		assert(changes_append(all, cut, out) == -EINVAL);
		out->length = 0;
		assert(changes_append(cut, all, out) == -EINVAL);
		out->length = 0;
		assert(changes_append(cut, cut, out) == -EINVAL);
		body_unref(out);
		free(text);
	}
}

UNIT(what_is_behind_a_document_is_refused)
{
	struct body_purse purse = {0};
	struct body *out = body_new(&purse);

	assert(test_change("{}", "{}x", out) == -EINVAL);
	out->length = 0;
	assert(test_change("1]", "1", out) == -EINVAL);
	body_unref(out);
}

/* The other side, from the words of docs/http.md. Returns a new reference. */
static json_t *test_apply(json_t *was, json_t *change);

static json_t *test_apply_list(json_t *was, json_t *change)
{
	json_t *now = json_array(), *step;
	size_t at = 0, i;

	json_array_foreach(change, i, step)
	{
		json_int_t n = json_integer_value(step);

		for (; n > 0; n--)
			assert(json_array_append(now, json_array_get(was, at++)) == 0);
		at += (size_t)-n;
		if (json_is_integer(step))
			continue;
		if (json_object_get(step, "+"))
			assert(json_array_append(now, json_object_get(step, "+")) == 0);
		else
			assert(json_array_append_new(
				       now, test_apply(json_array_get(was, at++), step)) == 0);
	}
	assert(at <= json_array_size(was));
	for (; at < json_array_size(was); at++)
		assert(json_array_append(now, json_array_get(was, at)) == 0);
	return now;
}

static json_t *test_apply(json_t *was, json_t *change)
{
	json_t *now, *value;
	const char *key;

	assert(was);
	if (json_is_array(change))
		return test_apply_list(was, change);
	if (!json_is_object(change))
		return json_incref(change);
	if (json_object_get(change, "="))
		return json_incref(json_object_get(change, "="));
	now = json_copy(was);
	json_object_foreach(change, key, value) assert(
		json_object_set_new(now, key, test_apply(json_object_get(was, key), value)) == 0);
	return now;
}

/* Few keys and few values, so that much is the same by chance. */
static json_t *test_random(unsigned int *seed, unsigned int depth)
{
	static const char *const texts[] = {"", "a", "\"", "\\", "]}", "{\"=\":1}", "\n"};
	json_t *value;
	int kind = rand_r(seed) % (depth > 4 ? 4 : 9);
	json_int_t n = 0;

	switch (kind) {
	case 0:
		return json_integer(rand_r(seed) % 3);
	case 1:
		return json_string(texts[(size_t)rand_r(seed) % 7]);
	case 2:
		return rand_r(seed) % 2 ? json_true() : json_null();
	case 3:
		return json_real(rand_r(seed) % 2 + 0.5);
	case 4:
		value = json_array();
		for (int i = rand_r(seed) % 4; i > 0; i--)
			assert(json_array_append_new(value, test_random(seed, depth + 1)) == 0);
		return value;
	case 5:
	case 6:
		value = json_array();
		for (int i = rand_r(seed) % 6; i > 0; i--) {
			n = rand_r(seed) % 8 ? n + rand_r(seed) % 3 : rand_r(seed) % 5;
			assert(json_array_append_new(value,
						     json_pack("{sIso}", "n", n, "v",
							       test_random(seed, depth + 1))) == 0);
		}
		return value;
	default:
		value = json_object();
		for (int i = 0; i < 4; i++) {
			char key[2] = {(char)('a' + i), '\0'};

			if (rand_r(seed) % 8)
				assert(json_object_set_new(value, key,
							   test_random(seed, depth + 1)) == 0);
		}
		return value;
	}
}

UNIT(changes_lead_from_any_document_to_any_other)
{
	struct body_purse purse = {0};
	unsigned int seed = 1, same = 0, rounds = 5000;

	for (unsigned int i = 0; i < rounds; i++) {
		json_t *was = test_random(&seed, 0), *now = test_random(&seed, 0), *change, *result;
		char *was_text = json_dumps(was, JSON_COMPACT | JSON_ENCODE_ANY);
		char *now_text = json_dumps(now, JSON_COMPACT | JSON_ENCODE_ANY);
		struct body *out = body_new(&purse);
		int r = test_change(was_text, now_text, out);

		assert(r == !json_equal(was, now));
		if (r == 1) {
			change = json_loadb(out->text, out->length, JSON_DECODE_ANY, NULL);
			assert(change);
			result = test_apply(was, change);
			assert(json_equal(result, now));
			json_decref(result);
			json_decref(change);
		}
		same += r == 0;
		body_unref(out);
		free(was_text);
		free(now_text);
		json_decref(was);
		json_decref(now);
	}
	assert(same > 0 && same < rounds / 2 && purse.used == 0);
}

UNIT(a_change_without_room_fails)
{
	struct body_purse purse = {.used = BODY_TOTAL_MAX};
	struct body *out = body_new(&purse);

	assert(test_change("1", "2", out) == -ENOBUFS);
	body_unref(out);
}
