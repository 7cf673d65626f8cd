/* SPDX-License-Identifier: Apache-2.0 */

/* What commands make of a whole recording, not of a moment. */

#include "base/testing/unit.h"
#include "cli/testing/testing-commands.h"

UNIT(another_card)
{
	testing_command(
		"replay story.ttrec", 0,
		"story.ttrec on the same card, first fit: would have run as when it was recorded, "
		"with the same 1 failed allocation\n"
		"\n"
		"How tight it was, in each bank:\n"
		"PID  DEVICE  TYPE  BANKS     BANK  LEAST FREE           FREE BLOCK       AT\n"
		"100       0  DRAM     12  8.0 MiB     5.9 MiB   73.4 %     5.9 MiB T\n"
		"100       0  L1       64  1.0 MiB  1022.0 KiB   99.8 %  1022.0 KiB T\n"
		"100       1  DRAM     12  8.0 MiB     8.0 MiB   99.6 %     8.0 MiB T\n"
		"101       0  DRAM     12  8.0 MiB     8.0 MiB  100.0 %     8.0 MiB T\n"
		"\n"
		"open loop: what the program asked for is taken as it was recorded; on another "
		"card it might have asked for something else\n"
		"4 buffers do not lie where they were recorded: their allocator had other limits, "
		"or another way\n"
		"1 allocations that failed when they were recorded would fail here too\n",
		"");
	testing_command(
		"replay story.ttrec --card n150", 0,
		"story.ttrec on n150, first fit: would have run\n"
		"\n"
		"How tight it was, in each bank:\n"
		"PID  DEVICE  TYPE  BANKS     BANK  LEAST FREE           FREE BLOCK       AT\n"
		"100       0  DRAM     12  1.0 GiB  1021.9 MiB   99.8 %  1021.9 MiB T\n"
		"100       0  L1       64  1.3 MiB     1.3 MiB   99.9 %     1.3 MiB T\n"
		"100       1  DRAM     12  1.0 GiB     1.0 GiB  100.0 %     1.0 GiB T\n"
		"101       0  DRAM     12  1.0 GiB     1.0 GiB  100.0 %     1.0 GiB T\n"
		"\n"
		"open loop: what the program asked for is taken as it was recorded; on another "
		"card it might have asked for something else\n"
		"1 devices: L1 has the banks of that card with fast dispatch, slow dispatch has "
		"more (--banks L1=N)\n"
		"1 allocations that failed when they were recorded would have found room here\n",
		"");
	testing_command("diff story.ttrec story.ttrec", 0,
			"before story.ttrec: test me\n"
			"after  story.ttrec: test me\n"
			"\n"
			"no difference\n",
			"");
	testing_command(
		"replay --banks 4096 --fit best story.ttrec", 0,
		"story.ttrec on the same card, best fit: would have run\n"
		"\n"
		"How tight it was, in each bank:\n"
		"PID  DEVICE  TYPE  BANKS     BANK  LEAST FREE           FREE BLOCK       AT\n"
		"100       0  DRAM   4096  8.0 MiB     8.0 MiB   99.9 %     8.0 MiB T\n"
		"100       0  L1       64  1.0 MiB  1022.0 KiB   99.8 %  1022.0 KiB T\n"
		"100       1  DRAM   4096  8.0 MiB     8.0 MiB  100.0 %     8.0 MiB T\n"
		"101       0  DRAM   4096  8.0 MiB     8.0 MiB  100.0 %     8.0 MiB T\n"
		"\n"
		"open loop: what the program asked for is taken as it was recorded; on another "
		"card it might have asked for something else\n"
		"6 buffers do not tell their pages: their share of a bank is a guess\n"
		"1 allocations that failed when they were recorded would have found room here\n",
		"");
}

UNIT(events_for_other_tools)
{
	testing_command("export --from story.ttrec --format csv", 0,
			"time_ns,pid,process,device,number,event,type,address,size,refs,thread,"
			"space,name,phase,used,missed,stack\n"
			"T,100,test,0,1,alloc,DRAM,0x1000,786432,1,11,0,weights,load,786432,,/app/"
			"run.py:7:main -> /app/model.py:12:load\n"
			"T,100,test,0,2,alloc,DRAM,0x11000,786432,1,11,0,weights,load,1572864,,/"
			"app/run.py:7:main -> /app/model.py:12:load\n"
			"T,100,test,1,1,alloc,DRAM,0x1000,393216,1,11,0,weights,load,393216,,/app/"
			"run.py:7:main -> /app/model.py:13:load\n"
			"T,100,test,0,3,alloc,L1,0x10000,131072,1,11,0,,load,131072,,/app/"
			"run.py:7:main -> /app/model.py:20:shard\n"
			"T,100,test,0,4,alloc,DRAM,0x201000,12582912,1,11,0,kv.0,decode,14155776,,/"
			"app/run.py:7:main -> /app/model.py:30:step\n"
			"T,100,test,,0,mark,,,,,,,step 1,,,,\n"
			"T,100,test,0,5,free,DRAM,0x201000,12582912,0,11,0,kv.0,decode,1572864,,/"
			"app/run.py:7:main -> /app/model.py:30:step\n"
			"T,100,test,0,6,alloc,DRAM,0x301000,25165824,1,11,0,kv.1,decode,26738688,,/"
			"app/run.py:7:main -> /app/model.py:31:step\n"
			"T,100,test,0,7,double_free,DRAM,0x201000,12582912,1,11,0,kv.0,decode,"
			"26738688,,/app/run.py:7:main -> /app/model.py:30:step\n"
			"T,100,test,0,8,alloc_failed,DRAM,0x0,113246208,1,11,0,large,decode,"
			"26738688,,/app/run.py:7:main -> /app/model.py:40:grow\n"
			"T,100,test,0,9,free,DRAM,0x11000,786432,0,11,0,weights,load,25952256,,/"
			"app/run.py:7:main -> /app/model.py:12:load\n"
			"T,101,test,0,1,alloc,DRAM,0x401000,49152,1,11,0,,,49152,,\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n"
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("export --from story.ttrec --format folded", 0,
			"test;DRAM;main (run.py:7);load (model.py:12) 786432\n"
			"test;L1;main (run.py:7);shard (model.py:20) 131072\n"
			"test;DRAM;main (run.py:7);step (model.py:31) 25165824\n"
			"test;DRAM;main (run.py:7);load (model.py:13) 393216\n"
			"test;DRAM;[no stack] 49152\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n"
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
}

UNIT(limits_of_a_budget)
{
	testing_command(
		"check --limit DRAM=1G story.ttrec", 0,
		"limit DRAM 1.0 GiB: kept, pid 100 (test) held 25.5 MiB of DRAM on device 0\n", "");
	testing_command(
		"check --limit DRAM=20M --limit 1:DRAM=1M story.ttrec", 86,
		"limit DRAM 20.0 MiB: exceeded, pid 100 (test) held 25.5 MiB of DRAM on device 0\n"
		"      24.0 MiB  step (model.py:31), in decode\n"
		"       1.5 MiB  load (model.py:12), in load\n"
		"limit 1:DRAM 1.0 MiB: kept, pid 100 (test) held 384.0 KiB of DRAM on device 1\n",
		"");
	testing_command("check -q --limit phase:decode=20M --limit site:load=1M story.ttrec", 86,
			"limit phase:decode 20.0 MiB: exceeded, pid 100 (test) held 24.0 MiB of "
			"DRAM on device 0\n"
			"      24.0 MiB  step (model.py:31), in decode\n"
			"limit site:load 1.0 MiB: exceeded, pid 100 (test) held 1.5 MiB of DRAM on "
			"device 0\n"
			"       1.5 MiB  load (model.py:12), in load\n",
			"");
	testing_command("check --limit site:nowhere=1M story.ttrec", 86,
			"limit site:nowhere 1.0 MiB: not checked, no function or file of that name "
			"was seen; seen were model.py, step, run.py\n",
			"");
	testing_command("check story.ttrec", 2, "",
			"ttmem check: needs limits: --budget FILE or --limit LIMIT=SIZE\n"
			"Try \"ttmem check --help\".\n");
}
