/* SPDX-License-Identifier: Apache-2.0 */

/* Finding members in the text of a document. */

#include "cli/recall.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"

static int find(const char *text, const char *key, const char *expected)
{
	size_t begin, end;
	int r = recall_find(text, strlen(text), key, &begin, &end);

	if (r == 0)
		assert(end - begin == strlen(expected) &&
		       memcmp(text + begin, expected, end - begin) == 0);
	return r;
}

UNIT(json_members_are_found)
{
	const char *text =
		"{\"a\":1,\"list\":[{\"next\":\"x\"},[\"]\"]],\"next\":null,\"t\":\"q\\\"}\"}\n";

	assert(find(text, "a", "1") == 0);
	assert(find(text, "list", "[{\"next\":\"x\"},[\"]\"]]") == 0);
	assert(find(text, "next", "null") == 0);
	assert(find(text, "t", "\"q\\\"}\"") == 0);
	assert(find(text, "nothing", "") == -ENOENT);
	assert(find("{}", "a", "") == -ENOENT);
	assert(find(" { \"a\" : [ ] , \"b\" : 2 } ", "a", "[ ]") == 0);
}

UNIT(malformed_documents_are_refused)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{",
		"{\"",
		"{\"a",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":1",
		"{\"a\":[",
		"{\"a\":[}",
		"{a:1}",
		"{\"a\":}",
		"{\"b\":1 \"c\"",
		"{\"a\\",
		"null",
		"{\"a\":\"\\",
		"{\"b\":{,",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		size_t begin, end, length = strlen(wrong[i]);
		int r = recall_find(wrong[i], length, "zzz", &begin, &end);

		assert(r == -EBADMSG || r == -ENOENT);
		/* And never anything beyond the end. */
		r = recall_find(wrong[i], length, "a", &begin, &end);
		assert(r < 0 || (begin < end && end <= length));
	}
}

UNIT(every_truncation_of_a_document_is_refused)
{
	const char *text = "{\"a\":[1,{\"b\":\"\\u0041\"}],\"next\":\"1-2\",\"notes\":[]}";

	for (size_t length = 0; length < strlen(text); length++) {
		size_t begin, end;

		assert(recall_find(text, length, "notes", &begin, &end) < 0 || end <= length);
	}
}
