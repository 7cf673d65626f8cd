/* SPDX-License-Identifier: Apache-2.0 */

/* JSON comes out as it should, whatever the strings are. */

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

UNIT(nesting_and_commas)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct json json = JSON_INIT(out);

	json_open_object(&json, NULL);
	json_u64(&json, "a", 1);
	json_open_array(&json, "b");
	json_u64(&json, NULL, UINT64_MAX);
	json_open_object(&json, NULL);
	json_close_object(&json);
	json_open_array(&json, NULL);
	json_close_array(&json);
	json_close_array(&json);
	json_bool(&json, "c", true);
	json_null(&json, "d");
	json_hex(&json, "e", 0x1f);
	json_string(&json, "f", NULL);
	json_close_object(&json);
	json_end(&json);
	json_open_object(&json, NULL);
	json_bool(&json, "again", false);
	json_close_object(&json);
	json_end(&json);
	assert(fclose(out) == 0);
	assert(strcmp(text, "{\"a\":1,\"b\":[18446744073709551615,{},[]],\"c\":true,\"d\":null,"
			    "\"e\":\"0x1f\",\"f\":null}\n{\"again\":false}\n") == 0);
	free(text);
}

UNIT(strings_are_escaped_and_repaired)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct json json = JSON_INIT(out);

	json_string(&json, NULL, "q\" b\\ \n \x7f \xc3\xa4 \xff \xed\xa0\x80");
	assert(fclose(out) == 0);
	assert(strcmp(text, "\"q\\\" b\\\\ \\u000a \\u007f \xc3\xa4 \xef\xbf\xbd "
			    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"") == 0);
	free(text);
}

UNIT_FAIL(an_open_object_cannot_be_ended)
{
	struct json json = JSON_INIT(stdout);

	json_open_object(&json, NULL);
	json_end(&json);
}
