/* SPDX-License-Identifier: Apache-2.0 */

/* What commands say that cannot do what is asked for, or were not understood. */

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "cli/testing/testing-commands.h"

UNIT(what_is_not_there_is_told)
{
	testing_command(
		"smi --from story.ttrec -d 7", 1,
		"story.ttrec at T (T)\n"
		"+------------------------------------------------------------------------------+\n"
		"| ttmem V D T |\n"
		"+-------+------------------------+---------------------------------------------+\n"
		"|   Dev | Card                   | Memory       Used /      Total              |\n"
		"+-------+------------------------+---------------------------------------------+\n"
		"+-------+------------------------+---------------------------------------------+\n"
		"| Total: 0 B in 0 buffers on 0 devices                                         |\n"
		"+------------------------------------------------------------------------------+\n"
		"|     PID User     Command      Dev       DRAM         L1 Buffers From    Idle |\n"
		"+------------------------------------------------------------------------------+\n"
		"+------------------------------------------------------------------------------+\n"
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n",
		"ttmem smi: there is no device 7; there are 0, 1\n");
	testing_command("buffers --from story.ttrec --pid 99", 1,
			"story.ttrec at T (T)\n"
			"SIZE  OCCUPIED  TYPE  DEV  PID  COMMAND  ADDRESS  REFS AGE  NAME  PHASE\n",
			"ttmem buffers: the recording has no process 99 at that moment\n"
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("map --from story.ttrec -d 5", 1, "story.ttrec at T (T)\n",
			"ttmem map: there is no device 5; there are 0, 1\n"
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("smi --from story.ttrec --at nothing", 1, "",
			"ttmem smi: no time, mark or phase \"nothing\"; try seconds, T, start, "
			"peak, failed, end, or a mark: step 1\n");
	testing_command("smi --from none.ttrec", 1, "",
			"ttmem smi: none.ttrec: No such file or directory\n");
	testing_command("growth --from story.ttrec", 0,
			"story.ttrec at T (T)\n"
			"nothing kept growing in T\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
}

UNIT(what_was_not_understood_is_told)
{
	static const struct {
		const char *words, *mistake;
	} cases[] = {
		{"fit --from story.ttrec",
		 "expects one size such as 512, 64K or 1.5GiB, got nothing"},
		{"fit --from story.ttrec 1X",
		 "expects a size such as 512, 64K or 1.5GiB, got \"1X\""},
		{"history --from story.ttrec",
		 "expects one address such as 0x1000 or 4096, got nothing"},
		{"history --from story.ttrec 12 13",
		 "expects one address such as 0x1000 or 4096, got 2 arguments"},
		{"ps --from story.ttrec -d x",
		 "-d expects a device number such as 0, or a unique id such as 0x1f2e, got \"x\""},
		{"peak --from story.ttrec --type XX", "--type expects DRAM, L1, SYSTEM_MEMORY, "
						      "L1_SMALL, TRACE, CB or KERNEL, got \"XX\""},
		{"buffers --from story.ttrec --limit 0",
		 "--limit expects a number, 1 or more, got \"0\""},
		{"growth --from story.ttrec --seconds 0",
		 "--seconds expects a number, 1 or more, got \"0\""},
		{"leaks --from story.ttrec --limit 1", "--limit and --cursor need --json"},
		{"incidents --from story.ttrec --csv", "unknown option \"--csv\""},
		{"ps --from story.ttrec --jsn", "unknown option \"--jsn\"; did you mean --json?"},
		{"map --from story.ttrec --type", "--type expects DRAM, L1, SYSTEM_MEMORY, "
						  "L1_SMALL, TRACE, CB or KERNEL, got nothing"},
		{"smi --from story.ttrec --json --csv", "--json or --csv, not both"},
		{"diff story.ttrec", "expects two files to compare, got 1 argument"},
		{"replay", "expects one recording, got nothing"},
		{"export --format nothing",
		 "--format expects pprof, speedscope, folded, heaptrack, firefox, perfetto, "
		 "memory_viz, chrome, csv or ttnn-visualizer, got \"nothing\""},
		{"check --limit DRAM story.ttrec",
		 "--limit expects a limit such as DRAM=4G, 0:L1=1M, phase:decode=2G or "
		 "site:load=1G, got \"DRAM\""},
		{"replay --banks 4097 story.ttrec",
		 "--banks expects a number of banks such as 12, or L1=64, got \"4097\""},
		{"replay --banks 0 story.ttrec",
		 "--banks expects a number of banks such as 12, or L1=64, got \"0\""},
		{"replay --banks CB=3 story.ttrec",
		 "--banks expects a number of banks such as 12, or L1=64, got \"CB=3\""},
		{"replay --banks L1= story.ttrec",
		 "--banks expects a number of banks such as 12, or L1=64, got \"L1=\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int length = (int)strcspn(cases[i].words, " ");
		char error[512];

		snprintf(error, sizeof(error), "ttmem %.*s: %s\nTry \"ttmem %.*s --help\".\n",
			 length, cases[i].words, cases[i].mistake, length, cases[i].words);
		testing_command(cases[i].words, 2, "", error);
	}
}
