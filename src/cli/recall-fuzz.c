/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding members in texts that a daemon sent. The first byte is the length of the key that follows, the
 * rest is the text. What is found must lie in the text; and where jansson reads the whole text, it must
 * find the same.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/unit.h"
#include "cli/recall.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The member's value, read alone, equals what jansson finds in the whole. */
static void fuzz_compare(const char *text, size_t length, const char *key, size_t begin, size_t end)
{
	const int flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
	json_t *whole = json_loadb(text, length, flags, NULL);
	json_t *value;

	if (!json_is_object(whole)) {
		json_decref(whole);
		return;
	}
	value = json_loadb(text + begin, end - begin, flags, NULL);
	/* A key with an escape in it is another one for jansson; then it may find none. */
	if (json_object_get(whole, key))
		assert(value && json_equal(json_object_get(whole, key), value));
	json_decref(value);
	json_decref(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length, begin, end;
	char key[16] = {0};
	char *text;

	if (size < 1)
		return 0;
	length = bits_min(data[0] % sizeof(key), size - 1);
	memcpy(key, data + 1, length);
	data += 1 + length;
	size -= 1 + length;
	/* A block of its own, so that a look beyond its end is seen. */
	text = malloc(size ? size : 1);
	assert(text);
	memcpy(text, data, size);
	if (recall_find(text, size, key, &begin, &end) == 0) {
		assert(begin < end && end <= size);
		fuzz_compare(text, size, key, begin, end);
	}
	free(text);
	return 0;
}
