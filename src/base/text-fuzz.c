/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes become valid UTF-8, and no valid text can control a terminal or break JSON. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/emit.h"
#include "base/testing/unit.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_SIZE 4096u

static bool is_valid(const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		uint32_t character;
		size_t n = text_decode(text, length, &character);

		/* A replacement character in the input is three bytes long. */
		if (n == 0 || (character == TEXT_REPLACEMENT && n != 3))
			return false;
		text += n;
		length -= n;
	}
	return true;
}

static bool is_harmless(const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		uint32_t character;
		size_t n = text_decode(text, length, &character);

		if (text_is_harmful(character))
			return false;
		text += n;
		length -= n;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char clean[TEXT_CLEAN_SIZE(FUZZ_SIZE)], again[TEXT_CLEAN_SIZE(TEXT_CLEAN_SIZE(FUZZ_SIZE))];
	char shown[TEXT_ESCAPE_SIZE(TEXT_CLEAN_SIZE(FUZZ_SIZE))], cut[64];
	char *text = NULL;
	size_t length;
	struct emit json;

	size = size < FUZZ_SIZE ? size : FUZZ_SIZE;
	length = text_clean((const char *)data, size, clean);
	assert(length == strlen(clean) && is_valid(clean));
	/* Clean text stays unchanged. */
	assert(text_clean(clean, length, again) == length && strcmp(clean, again) == 0);

	text_escape(clean, shown, sizeof(shown));
	assert(is_valid(shown) && is_harmless(shown));
	text_fit(clean, 20, cut, sizeof(cut));
	assert(is_valid(cut) && is_harmless(cut) && text_width(cut) <= 20);

	json = EMIT_INIT(open_memstream(&text, &length));
	emit_string(&json, NULL, clean);
	text_put_csv(json.out, clean);
	text_put_label(json.out, clean);
	text_put_line(json.out, clean);
	assert(fclose(json.out) == 0);
	assert(is_valid(text) && is_harmless(text));
	free(text);
	return 0;
}
