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
		"PID  DEVICE  TYPE  BANKS     BANK  LEAST FREE           FREE BLOCK AT\n"
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
		"PID  DEVICE  TYPE  BANKS     BANK  LEAST FREE           FREE BLOCK AT\n"
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
		"PID  DEVICE  TYPE  BANKS     BANK  LEAST FREE           FREE BLOCK AT\n"
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

UNIT(two_recordings_differ_by_devices_and_names)
{
	testing_command("diff --by name story.ttrec short.ttrec", 0,
			"before story.ttrec: test me\n"
			"after  short.ttrec: test me\n"
			"\n"
			"                            before     after      change\n"
			"device 0  DRAM  peak      25.5 MiB  48.0 KiB   -25.5 MiB   -99.8 %\n"
			"device 0  DRAM  end       24.8 MiB       0 B   -24.8 MiB  -100.0 %\n"
			"device 0  DRAM  buffers          3         0          -3  -100.0 %\n"
			"device 0  DRAM  allocs           5         2          -3   -60.0 %\n"
			"device 0  L1    peak     128.0 KiB       0 B  -128.0 KiB  -100.0 %\n"
			"device 0  L1    end      128.0 KiB       0 B  -128.0 KiB  -100.0 %\n"
			"device 0  L1    buffers          1         0          -1  -100.0 %\n"
			"device 0  L1    allocs           1         0          -1  -100.0 %\n"
			"device 1  DRAM  peak     384.0 KiB       0 B  -384.0 KiB  -100.0 %\n"
			"device 1  DRAM  end      384.0 KiB       0 B  -384.0 KiB  -100.0 %\n"
			"device 1  DRAM  buffers          1         0          -1  -100.0 %\n"
			"device 1  DRAM  allocs           1         0          -1  -100.0 %\n"
			"\n"
			"      peak         end  buffers  type  name\n"
			" -24.0 MiB   -24.0 MiB       -1  DRAM  kv.1\n"
			"  -1.9 MiB    -1.1 MiB       -2  DRAM  weights\n"
			"-128.0 KiB  -128.0 KiB       -1  L1    (no name)\n"
			"         =   -48.0 KiB       -1  DRAM  (no name)\n"
			" +48.0 KiB           =        =  DRAM  short\n",
			"");
	testing_command("diff --by name short.ttrec story.ttrec", 0,
			"before short.ttrec: test me\n"
			"after  story.ttrec: test me\n"
			"\n"
			"                           before      after      change\n"
			"device 0  DRAM  peak     48.0 KiB   25.5 MiB   +25.5 MiB  +54300.0 %\n"
			"device 0  DRAM  end           0 B   24.8 MiB   +24.8 MiB\n"
			"device 0  DRAM  buffers         0          3          +3\n"
			"device 0  DRAM  allocs          2          5          +3    +150.0 %\n"
			"device 0  L1    peak          0 B  128.0 KiB  +128.0 KiB\n"
			"device 0  L1    end           0 B  128.0 KiB  +128.0 KiB\n"
			"device 0  L1    buffers         0          1          +1\n"
			"device 0  L1    allocs          0          1          +1\n"
			"device 1  DRAM  peak          0 B  384.0 KiB  +384.0 KiB\n"
			"device 1  DRAM  end           0 B  384.0 KiB  +384.0 KiB\n"
			"device 1  DRAM  buffers         0          1          +1\n"
			"device 1  DRAM  allocs          0          1          +1\n"
			"\n"
			"      peak         end  buffers  type  name\n"
			" +24.0 MiB   +24.0 MiB       +1  DRAM  kv.1\n"
			"  +1.9 MiB    +1.1 MiB       +2  DRAM  weights\n"
			"+128.0 KiB  +128.0 KiB       +1  L1    (no name)\n"
			"         =   +48.0 KiB       +1  DRAM  (no name)\n"
			" -48.0 KiB           =        =  DRAM  short\n",
			"");
	testing_command("diff --by name --bytes short.ttrec short.ttrec", 0,
			"before short.ttrec: test me\n"
			"after  short.ttrec: test me\n"
			"\n"
			"no difference\n",
			"");
}

UNIT(limits_in_other_forms)
{
	testing_command(
		"check --annotate github --limit site:load=1M --limit DRAM=26112K story.ttrec", 86,
		"limit site:load 1.0 MiB: exceeded, pid 100 (test) held 1.5 MiB of DRAM on device "
		"0\n"
		"       1.5 MiB  load (model.py:12), in load\n"
		"limit DRAM 25.5 MiB: kept, pid 100 (test) held 25.5 MiB of DRAM on device 0\n",
		"::error file=/app/model.py,line=12,title=ttmem::limit site:load 1.0 MiB: "
		"exceeded, pid 100 (test) held 1.5 MiB of DRAM on device 0\n");
	testing_command("check --bytes --limit 0:L1=128K story.ttrec", 0,
			"limit 0:L1 131072: kept, pid 100 (test) held 131072 of L1 on device 0\n",
			"");
	testing_command(
		"check --bytes --limit 0:L1=131071 story.ttrec", 86,
		"limit 0:L1 131071: exceeded, pid 100 (test) held 131072 of L1 on device 0\n"
		"        131072  shard (model.py:20), in load\n",
		"");
	testing_command(
		"check --json --limit 1:DRAM=1M story.ttrec", 0,
		"{\"schema\":\"ttmem.check/"
		"1\",T,\"file\":\"story.ttrec\",\"tracked\":true,\"over\":false,\"unmatched\":"
		"false,\"limits\":[{\"limit\":\"1:DRAM\",\"bytes\":1048576,\"over\":false,"
		"\"optional\":false,\"matched\":true,\"near\":[],\"held\":{\"bytes\":393216,"
		"\"exact\":true,\"pid\":100,\"comm\":\"test\",\"device\":1,\"type\":\"DRAM\","
		"\"sites_at\":\"peak\",\"sites\":[{\"function\":\"load\",\"file\":\"/app/"
		"model.py\",\"line\":13,\"user\":{\"function\":\"load\",\"file\":\"/app/"
		"model.py\",\"line\":13,\"module\":null},\"via\":null,\"callers\":[{\"function\":"
		"\"main\",\"file\":\"/app/"
		"run.py\",\"line\":7,\"module\":null}],\"name\":null,\"phase\":\"load\",\"bytes\":"
		"393216}]}}],\"exact\":true,\"next\":null,\"notes\":[]}\n",
		"");
}

UNIT(a_recording_of_buffers_that_came_and_went)
{
	testing_command(
		"replay --json short.ttrec", 0,
		"{\"schema\":\"ttmem.replay/1\",T,\"file\":\"short.ttrec\",\"command\":\"test "
		"me\",\"card\":null,\"fit\":\"first\",\"verdict\":\"runs\",\"open_loop\":true,"
		"\"events\":4,\"missed\":0,\"allocations\":2,\"guessed\":0,\"same_address\":2,"
		"\"unjudged\":0,\"from_table\":0,\"failed_then\":0,\"failed_then_fit\":0,\"failed_"
		"then_fail\":0,\"failed\":null,\"devices\":[{\"pid\":100,\"comm\":\"test\","
		"\"device\":0,\"recorded_on\":\"n300\",\"margins\":[{\"type\":\"DRAM\",\"bank_"
		"size\":8388608,\"banks\":12,\"free\":8384512,\"largest\":8384512,T,T}]},{\"pid\":"
		"101,\"comm\":\"test\",\"device\":0,\"recorded_on\":\"n300\",\"margins\":[{"
		"\"type\":\"DRAM\",\"bank_size\":8388608,\"banks\":12,\"free\":8384512,\"largest\":"
		"8384512,T,T}]}],\"exact\":true,\"next\":null,\"notes\":[\"open loop: what the "
		"program asked for is taken as it was recorded; on another card it might have "
		"asked for something else\"]}\n",
		"");
	testing_command("export --from short.ttrec --format csv", 0,
			"time_ns,pid,process,device,number,event,type,address,size,refs,thread,"
			"space,name,phase,used,missed,stack\n"
			"T,100,test,0,1,alloc,DRAM,0x1000,49152,1,11,0,short,load,49152,,\n"
			"T,100,test,0,2,free,DRAM,0x1000,49152,0,11,0,short,load,0,,\n"
			"T,101,test,0,1,alloc,DRAM,0x1000,49152,1,11,0,short,load,49152,,\n"
			"T,101,test,0,2,free,DRAM,0x1000,49152,0,11,0,short,load,0,,\n",
			"");
	testing_command("history --from short.ttrec 4096", 0,
			"short.ttrec at T (T)\n"
			"Buffer 0x1000 on device 0: DRAM of pid 100 (test)\n"
			"  History (allocs=1 frees=1):\n"
			"    ALLOC size=49152 pid=100 ref=1 time=D name=\"short\"\n"
			"    FREE size=49152 pid=100 ref=0 time=D name=\"short\"\n"
			"\n"
			"Buffer 0x1000 on device 0: DRAM of pid 101 (test)\n"
			"  History (allocs=1 frees=1):\n"
			"    ALLOC size=49152 pid=101 ref=1 time=D name=\"short\"\n"
			"    FREE size=49152 pid=101 ref=0 time=D name=\"short\"\n",
			"");
	testing_command("peak --from short.ttrec --by phase", 0,
			"short.ttrec at T (T)\n"
			"device 0 DRAM peak 48.0 KiB at T (pid 100 test), exact, 4.0 KiB in each "
			"of 12 banks, 48.0 KiB together\n"
			"    48.0 KiB  100.0%        1  load\n"
			"\n"
			"device 0 DRAM peak 48.0 KiB at T (pid 101 test, ended), exact, 4.0 KiB in "
			"each of 12 banks, 48.0 KiB together\n"
			"    48.0 KiB  100.0%        1  load\n",
			"");
}
