/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks as lists of frames. */

#include "answers/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

/* The JSON of a stack and its site, without blanks and line ends. */
static char *all_of(const char *stack)
{
	static char result[4096];
	char *text = NULL;
	size_t length, n = 0;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	emit_open_object(&json, NULL);
	call_stack_put(&json, testing_stack(stack));
	emit_close_object(&json);
	assert(fclose(out) == 0);
	for (const char *at = text; *at; at++) {
		if (*at != ' ' && *at != '\n')
			result[n++] = *at;
	}
	result[n] = 0;
	free(text);
	return result;
}

/* Without the site. */
static const char *made_of(const char *stack)
{
	char *text = all_of(stack), *site = strstr(text, ",\"site\":");

	assert(site);
	site[0] = '}';
	site[1] = '\0';
	return text;
}

#define STEP "\"function\":\"step\",\"file\":\"m.py\",\"line\":7,\"module\":null"
#define MAKE                                                                                \
	"\"function\":\"make\",\"file\":\"/v/site-packages/a/b.py\",\"line\":2,\"module\":" \
	"null"

UNIT(the_frame_that_stands_for_a_stack_comes_with_it)
{
	assert(strstr(all_of(NULL), ",\"site\":null}"));
	assert(strstr(all_of("m.py:7:step -> ttmem_alloc @ libttmem.so.0"),
		      ",\"site\":{" STEP ",\"user\":{" STEP "},\"via\":null,\"callers\":[]}}"));
	assert(strstr(all_of("m.py:7:step -> /v/site-packages/a/b.py:2:make"),
		      ",\"site\":{" MAKE ",\"user\":{" STEP "},\"via\":{" MAKE
		      "},\"callers\":[]}}"));
	assert(strstr(all_of("m.py:7:step -> take @ app"), "\"callers\":[{" STEP "}]") == NULL);
	assert(strstr(all_of("m.py:7:step -> m.py:9:take"), "\"callers\":[{" STEP "}]}}"));
	assert(strstr(all_of("/v/site-packages/a/b.py:2:make"),
		      ",\"site\":{" MAKE ",\"user\":null,\"via\":null,\"callers\":[]}}"));
}

#define FRAME(function, file, line, python)                           \
	"{\"function\":" function ",\"file\":" file ",\"line\":" line \
	",\"module\":null,\"python\":" python "}"

UNIT(no_stack_is_an_empty_list)
{
	assert(strcmp(made_of(NULL), "{\"stack\":[]}") == 0);
	assert(strcmp(made_of(""), "{\"stack\":[]}") == 0);
}

UNIT(a_frame_has_function_file_and_line)
{
	assert(strcmp(made_of("a.py:12:f"),
		      "{\"stack\":[" FRAME("\"f\"", "\"a.py\"", "12", "true") "]}") == 0);
	assert(strcmp(made_of("/x/a.cc:0:ns::f(int)::g"),
		      "{\"stack\":[" FRAME("\"ns::f(int)::g\"", "\"/x/a.cc\"", "null",
					   "false") "]}") == 0);
	assert(strcmp(made_of("ns::f"),
		      "{\"stack\":[" FRAME("\"ns::f\"", "null", "null", "false") "]}") == 0);
	assert(strcmp(made_of("a.c:7:?"),
		      "{\"stack\":[" FRAME("null", "\"a.c\"", "7", "false") "]}") == 0);
}

UNIT(python_pseudo_files_are_python_frames)
{
	assert(strcmp(made_of("<stdin>:1:<module>"),
		      "{\"stack\":[" FRAME("\"<module>\"", "\"<stdin>\"", "1", "true") "]}") == 0);
	assert(strcmp(made_of("<frozen runpy>:88:_run_code"),
		      "{\"stack\":[" FRAME("\"_run_code\"", "\"<frozenrunpy>\"", "88",
					   "true") "]}") == 0);
}

UNIT(approximate_frames_are_flagged)
{
	assert(strcmp(made_of("a.py:12:f (approximate)"),
		      "{\"stack\":[{\"function\":\"f\",\"file\":\"a.py\",\"line\":12,"
		      "\"module\":null,\"python\":true,\"approximate\":true}]}") == 0);
}

UNIT(a_frame_whose_callers_are_not_known_is_flagged)
{
	assert(strcmp(made_of("a.c:12:f (cut) @ app"),
		      "{\"stack\":[{\"function\":\"f\",\"file\":\"a.c\",\"line\":12,"
		      "\"module\":\"app\",\"python\":false,\"cut\":true}]}") == 0);
	assert(strcmp(made_of("lib.so+0x1f (build 0a1b) (cut) @ lib.so"),
		      "{\"stack\":[{\"function\":\"lib.so+0x1f\",\"file\":null,\"line\":null,"
		      "\"module\":\"lib.so\",\"python\":false,\"build_id\":\"0a1b\","
		      "\"cut\":true}]}") == 0);
}

UNIT(json_stacks_begin_with_the_innermost_frame)
{
	assert(strcmp(made_of("main.py:1:main -> lib.so+0x1f -> l.cc:9:operator->"),
		      "{\"stack\":[" FRAME("\"operator->\"", "\"l.cc\"", "9", "false") "," FRAME(
			      "\"lib.so+0x1f\"", "null", "null",
			      "false") "," FRAME("\"main\"", "\"main.py\"", "1", "true") "]}") ==
	       0);
}

UNIT(frames_name_their_module)
{
	assert(strcmp(made_of("a.c:12:f @ app"),
		      "{\"stack\":[{\"function\":\"f\",\"file\":\"a.c\",\"line\":12,"
		      "\"module\":\"app\",\"python\":false}]}") == 0);
}

UNIT(empty_frames_are_kept)
{
	assert(strcmp(made_of("a -> "),
		      "{\"stack\":[" FRAME("\"\"", "null", "null", "false") "," FRAME(
			      "\"a\"", "null", "null", "false") "]}") == 0);
	assert(strstr(made_of(" ->  ->  -> "), "\"stack\""));
}
