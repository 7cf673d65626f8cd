/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks as Python prints them. */

#include "cli/export/format/export-trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

/* @path: NULL = none. */
static void check(const char *stack, const char *text, const char *path)
{
	char *found_path, *found_text = export_trace(testing_stack(stack), &found_path);
	assert(strcmp(found_text, text) == 0);
	assert(path ? found_path && strcmp(found_path, path) == 0 : !found_path);
	free(found_text);
	free(found_path);
}

UNIT(a_trace_begins_with_the_frame_that_stands_for_it)
{
	check("/app/run.py:7:main -> /app/model.py:12:forward -> malloc @ libc.so.6",
	      "  File \"/app/model.py\", line 12, in forward\n"
	      "  File \"/app/run.py\", line 7, in main\n",
	      "/app/model.py");
}

UNIT(frames_without_a_file_name_their_module)
{
	check("main @ app -> load @ libmodel.so",
	      "  Module \"libmodel.so\", in load\n  Module \"app\", in main\n", NULL);
}

UNIT(names_cannot_make_lines_of_their_own)
{
	check("/app/a\"b.py:1:f\n  File \"x\", line 1, in y",
	      "  File \"/app/a\"b.py\", line 1, in f   File \"x\", line 1, in y\n", NULL);
}

UNIT(no_frames_at_all)
{
	check("", "", NULL);
}
