/* SPDX-License-Identifier: Apache-2.0 */

/* What was compressed is what comes out, for documents and for any order of pieces. */

#include "web/server/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/testing/unit.h"
#include "web/server/body.h"

static struct body *test_body(struct body_purse *purse, size_t length, unsigned int seed)
{
	struct body *body = body_new(purse);

	assert(body);
	while (body->length < length) {
		char text[32];
		int n = snprintf(text, sizeof(text), "{\"used\":%d,", rand_r(&seed) % 1000000);

		assert(body_append(body, text, (size_t)n) == 0);
	}
	return body;
}

/* Reads one gzip file: @code is Z_STREAM_END if it has an end, whose sum is then right, else Z_OK. */
static void test_unpacks_to(const struct body *packed, const struct body *plain, int code)
{
	char *out = malloc(plain->length + 1);
	z_stream inflating = {
		.next_in = (z_const Bytef *)packed->text,
		.avail_in = (uInt)packed->length,
		.next_out = (Bytef *)out,
		.avail_out = (uInt)plain->length + 1,
	};

	assert(out && inflateInit2(&inflating, MAX_WBITS + 16) == Z_OK);
	assert(inflate(&inflating, Z_SYNC_FLUSH) == code);
	assert(inflating.avail_in == 0 && inflating.total_out == plain->length);
	assert(plain->length == 0 || memcmp(out, plain->text, plain->length) == 0);
	inflateEnd(&inflating);
	free(out);
}

UNIT(document_unpacks_to_the_same_whatever_its_size)
{
	static const size_t sizes[] = {0, 1, 100, 16384, 1000000};
	struct body_purse purse = {0};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct body *plain = test_body(&purse, sizes[i], 1);
		struct body *packed = pack_document(plain);

		assert(packed);
		test_unpacks_to(packed, plain, Z_STREAM_END);
		body_unref(plain);
		body_unref(packed);
	}
	assert(purse.used == 0);
}

/* As two listeners that have begun at different times are sent them. */
UNIT(pieces_in_any_order_are_one_file)
{
	struct body_purse purse = {0};
	struct body *plain[3], *pieces[6];

	for (unsigned int i = 0; i < 3; i++) {
		plain[i] = test_body(&purse, 1 + i * 100000, i);
		pieces[i] = pack_piece(plain[i]);
		pieces[3 + i] = pack_stored(plain[i]);
		assert(pieces[i] && pieces[3 + i]);
		assert(i == 0 || pieces[i]->length < plain[i]->length / 3);
	}
	for (unsigned int seed = 0; seed < 50; seed++) {
		struct body *file = pack_begin(&purse), *whole = body_new(&purse);
		unsigned int random = seed;

		for (unsigned int i = 0; i < seed % 7; i++) {
			unsigned int one = (unsigned int)rand_r(&random) % 6;

			assert(body_append(file, pieces[one]->text, pieces[one]->length) == 0);
			assert(body_append(whole, plain[one % 3]->text, plain[one % 3]->length) ==
			       0);
		}
		test_unpacks_to(file, whole, Z_OK);
		body_unref(file);
		body_unref(whole);
	}
	for (size_t i = 0; i < 6; i++)
		body_unref(pieces[i]);
	for (size_t i = 0; i < 3; i++)
		body_unref(plain[i]);
	assert(purse.used == 0);
}

UNIT(packing_without_room_gives_nothing)
{
	struct body_purse purse = {0};
	struct body *plain = test_body(&purse, 100, 1);
	size_t used = purse.used;

	purse.used = BODY_TOTAL_MAX;
	assert(!pack_document(plain) && !pack_piece(plain) && !pack_stored(plain));
	assert(!pack_begin(&purse) && purse.used == BODY_TOTAL_MAX);
	purse.used = used;
	body_unref(plain);
}
