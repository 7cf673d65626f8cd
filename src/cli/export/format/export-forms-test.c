/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Formats that are text, as they come out for the story of testing-story.h. Binary ones, and all that others
 * read, are in tests/integration/command/test_export_formats.py.
 */

#include "cli/export/format/export-form.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "cli/export/testing/testing-story.h"

static void check(const struct export_form *form, enum story_part part, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert(out && story_write(form, part, out) == 0 && fclose(out) == 0);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s", text);
	assert(strcmp(text, expected) == 0);
	free(text);
}

UNIT(folded_stacks_begin_with_process_and_type)
{
	check(&export_folded, STORY_MOMENT,
	      "python3;DRAM;module (run.py:3);load (model.py:12) 1000\n"
	      "python3;L1;main (app);fill (libmodel.so) 64\n"
	      "worker;DRAM;[no stack] kv.# 4096\n");
}

UNIT(a_moment_is_the_same_with_and_without_a_recording)
{
	check(&export_folded, STORY_WHOLE,
	      "python3;DRAM;module (run.py:3);load (model.py:12) 1000\n"
	      "python3;L1;main (app);fill (libmodel.so) 64\n"
	      "worker;DRAM;[no stack] kv.# 4096\n");
}

UNIT(csv_has_a_line_for_each_event)
{
	check(&export_csv, STORY_WHOLE,
	      "time_ns,pid,process,device,number,event,type,address,size,refs,thread,space,name,"
	      "phase,used,missed,stack\n"
	      "1700000000000000000,100,python3,0,0,live,DRAM,0x1000,1000,1,0,0,weights,load,1000,,/"
	      "app/run.py:3:<module> -> /app/model.py:12:load\n"
	      "1700000000001000000,100,python3,0,1,alloc,DRAM,0x2000,500,1,1,0,kv.0,step,1500,,/"
	      "app/"
	      "run.py:7:<module> -> /app/model.py:20:step\n"
	      "1700000000002000000,100,python3,0,2,alloc,L1,0x1000,64,1,0,0,,fill,64,,main @ app "
	      "-> "
	      "fill @ libmodel.so\n"
	      "1700000000002000500,100,python3,,0,mark,,,,,,,\"step, \"\"1\"\"\",,,,\n"
	      "1700000000003000000,100,python3,0,3,free,DRAM,0x2000,500,0,0,0,kv.0,step,1000,,main "
	      "@ "
	      "app -> fill @ libmodel.so\n"
	      "1700000000004000000,200,worker,1,1,alloc,DRAM,0x1000,4096,1,0,0,kv.7,,4096,,\n"
	      "1700000000005000000,100,python3,0,4,alloc_failed,DRAM,0x0,1099511627776,0,0,0,,,"
	      "1000,,/app/run.py:7:<module> -> /app/model.py:20:step\n"
	      "1700000000006000000,100,python3,0,22,missed,,,,,,,,,,17,\n"
	      "1700000000007000000,100,python3,0,23,alloc,DRAM,0x1100,10,1,0,0,,,1000,,/app/"
	      "run.py:3:<module> -> /app/model.py:12:load\n");
}

/* An alias, the failed allocation and the gap are not there. */
UNIT(heaptrack_has_allocations_and_frees)
{
	check(&export_heaptrack, STORY_WHOLE,
	      "v 10400 3\n"
	      "X python3 run.py\n"
	      "I 1000 0\n"
	      "s 11 python3 (pid 100)\n"
	      "s 4 DRAM\n"
	      "s 4 load\n"
	      "s d /app/model.py\n"
	      "s f module (run.py)\n"
	      "s b /app/run.py\n"
	      "i 1 0 1\n"
	      "i 2 0 2\n"
	      "i 3 0 3 4 c\n"
	      "i 4 0 5 6 3\n"
	      "t 1 0\n"
	      "t 2 1\n"
	      "t 4 2\n"
	      "t 3 3\n"
	      "a 3e8 4\n"
	      "+ 0\n"
	      "s 4 step\n"
	      "i 5 0 7 4 14\n"
	      "i 6 0 5 6 7\n"
	      "t 6 2\n"
	      "t 5 5\n"
	      "a 1f4 6\n"
	      "c 1\n"
	      "+ 1\n"
	      "s 2 L1\n"
	      "s 4 fill\n"
	      "s b libmodel.so\n"
	      "s 4 main\n"
	      "s 3 app\n"
	      "i 7 0 8\n"
	      "i 8 a 9\n"
	      "i 9 c b\n"
	      "t 7 1\n"
	      "t 9 7\n"
	      "t 8 8\n"
	      "a 40 9\n"
	      "c 2\n"
	      "+ 2\n"
	      "c 3\n"
	      "- 1\n"
	      "s 10 worker (pid 200)\n"
	      "s f [no stack] kv.#\n"
	      "i a 0 d\n"
	      "i b 0 e\n"
	      "t a 0\n"
	      "t 2 a\n"
	      "t b b\n"
	      "a 1000 c\n"
	      "c 4\n"
	      "+ 3\n"
	      "c 8\n");
}
