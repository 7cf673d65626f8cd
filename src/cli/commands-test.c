/* SPDX-License-Identifier: Apache-2.0 */

/* What commands say of a small recording. */

#include "base/testing/unit.h"
#include "cli/testing/testing-commands.h"

UNIT(processes_by_device_and_type)
{
	testing_command("ps --from story.ttrec", 0,
			"story.ttrec at T (T)\n"
			"PID  USER      COMMAND       DEV  TYPE       USED  BUFFERS       PEAK  "
			"ALLOCS  FREES  LAST\n"
			"100  somebody  test            0  DRAM   24.8 MiB        2   25.5 MiB     "
			"  4      2 T\n"
			"100  somebody  test            0  L1    128.0 KiB        1  128.0 KiB     "
			"  1      0 T\n"
			"100  somebody  test            1  DRAM  384.0 KiB        1  384.0 KiB     "
			"  1      0 T\n"
			"101  somebody  (ended) test    0  DRAM   48.0 KiB        1   48.0 KiB     "
			"  1      0 T\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command(
		"ps --from story.ttrec --csv", 0,
		"pid,user,comm,alive,device,device_uid,type,used,occupied,buffers,peak,bound,"
		"allocs,frees,unknown_frees,double_frees,last_ns\n"
		"100,somebody,test,1,0,0xaa00,DRAM,25952256,25952256,2,26738688,exact,4,2,0,1,T\n"
		"100,somebody,test,1,0,0xaa00,L1,131072,131072,1,131072,exact,1,0,0,0,T\n"
		"100,somebody,test,1,1,0xaa01,DRAM,393216,393216,1,393216,exact,1,0,0,0,T\n"
		"101,somebody,test,0,0,0xaa00,DRAM,49152,49152,1,49152,exact,1,0,0,0,T\n",
		"");
	testing_command(
		"ps --from story.ttrec --bytes --pid 101", 0,
		"story.ttrec at T (T)\n"
		"PID  USER      COMMAND       DEV  TYPE   USED  BUFFERS   PEAK  ALLOCS  FREES  "
		"LAST\n"
		"101  somebody  (ended) test    0  DRAM  49152        1  49152       1      0 T\n",
		"note: pid 101 (test) has ended and left 1 buffer, 49152\n");
}

/* NOLINTNEXTLINE(readability-function-size): what is printed */
UNIT(buffers_one_by_one_and_in_groups)
{
	testing_command("buffers --from story.ttrec", 0,
			"story.ttrec at T (T)\n"
			"     SIZE   OCCUPIED  TYPE  DEV  PID  COMMAND       ADDRESS   REFS AGE  "
			"NAME     PHASE\n"
			" 24.0 MiB   24.0 MiB  DRAM    0  100  test          0x301000     1 T  "
			"kv.1     decode\n"
			"768.0 KiB  768.0 KiB  DRAM    0  100  test          0x1000       1 T  "
			"weights  load\n"
			"384.0 KiB  384.0 KiB  DRAM    1  100  test          0x1000       1 T  "
			"weights  load\n"
			"128.0 KiB  128.0 KiB  L1      0  100  test          0x10000      1 T  -   "
			"     load\n"
			" 48.0 KiB   48.0 KiB  DRAM    0  101  (ended) test  0x401000     1 T  -   "
			"     -\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command(
		"buffers --from story.ttrec --csv", 0,
		"pid,comm,device,device_uid,type,address,size,refs,born_ns,age_ns,name,phase,"
		"thread,flags,space,occupied\n"
		"100,test,0,0xaa00,DRAM,0x301000,25165824,1,T,T,kv.1,decode,11,,0,25165824\n"
		"100,test,0,0xaa00,DRAM,0x1000,786432,1,T,T,weights,load,11,,0,786432\n"
		"100,test,1,0xaa01,DRAM,0x1000,393216,1,T,T,weights,load,11,,0,393216\n"
		"100,test,0,0xaa00,L1,0x10000,131072,1,T,T,,load,11,,0,131072\n"
		"101,test,0,0xaa00,DRAM,0x401000,49152,1,T,T,,,11,,0,49152\n",
		"");
	testing_command(
		"buffers --from story.ttrec --sort age --limit 2", 0,
		"story.ttrec at T (T)\n"
		"     SIZE   OCCUPIED  TYPE  DEV  PID  COMMAND  ADDRESS  REFS AGE  NAME     "
		"PHASE\n"
		"768.0 KiB  768.0 KiB  DRAM    0  100  test     0x1000      1 T  weights  load\n"
		"384.0 KiB  384.0 KiB  DRAM    1  100  test     0x1000      1 T  weights  load\n",
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n"
		"note: --limit leaves out 3 rows\n");
	testing_command(
		"buffers --from story.ttrec --stacks --name kv*", 0,
		"story.ttrec at T (T)\n"
		"    SIZE  OCCUPIED  TYPE  DEV  PID  COMMAND  ADDRESS   REFS AGE  NAME  PHASE\n"
		"24.0 MiB  24.0 MiB  DRAM    0  100  test     0x301000     1 T  kv.1  decode\n"
		"              takes 24.0 MiB: 2.0 MiB in each of 12 banks\n"
		"              step (/app/model.py:31)\n"
		"              main (/app/run.py:7)\n",
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("buffers --from story.ttrec --by site", 0,
			"story.ttrec at T (T)\n"
			"    BYTES  BUFFERS OLDEST  CALL SITE\n"
			" 24.0 MiB        1 T  DRAM kv.1 at step (model.py:31)\n"
			"768.0 KiB        1 T  DRAM weights at load (model.py:12)\n"
			"384.0 KiB        1 T  DRAM weights at load (model.py:13)\n"
			"128.0 KiB        1 T  L1 in load at shard (model.py:20)\n"
			" 48.0 KiB        1 T  DRAM\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("buffers --from story.ttrec --by name --type DRAM", 0,
			"story.ttrec at T (T)\n"
			"   BYTES  BUFFERS OLDEST  NAME\n"
			"24.0 MiB        1 T  kv.1\n"
			" 1.1 MiB        2 T  weights\n"
			"48.0 KiB        1 T  -\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("buffers --from story.ttrec --by phase", 0,
			"story.ttrec at T (T)\n"
			"   BYTES  BUFFERS OLDEST  PHASE\n"
			"24.0 MiB        1 T  decode\n"
			" 1.2 MiB        3 T  load\n"
			"48.0 KiB        1 T  -\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("buffers --from story.ttrec --by thread", 0,
			"story.ttrec at T (T)\n"
			"   BYTES  BUFFERS OLDEST  THREAD\n"
			"25.2 MiB        4 T  100/11\n"
			"48.0 KiB        1 T  101/11\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
}

UNIT(what_the_ended_left)
{
	testing_command("leaks --from story.ttrec", 0,
			"story.ttrec at T (T)\n"
			"pid 101 (test) of somebody, T: killed by signal 9 (SIGKILL), left 1 "
			"buffer, 48.0 KiB\n"
			"    48.0 KiB in 1 buffer of DRAM, T old\n",
			"");
	testing_command("leaks --from story.ttrec --summary", 0,
			"story.ttrec at T (T)\n"
			"PID  USER      COMMAND  ENDED HOW          LEFT  BUFFERS  MOSTLY\n"
			"101  somebody  test T  SIGKILL  48.0 KiB        1  DRAM \n"
			"Call sites: \"ttmem leaks --pid PID\" for one process, --full for all.\n",
			"");
	testing_command("leaks --from story.ttrec --csv", 0,
			"pid,user,comm,ended_ns,how,exit_code,signal,type,bytes,buffers,oldest_ns,"
			"name,phase,function,file,line\n"
			"101,somebody,test,T,died,,9,DRAM,49152,1,T,,,,,\n",
			"");
	testing_command("leaks --from story.ttrec --pid 100", 0,
			"story.ttrec at T (T)\n"
			"nothing is known that process 100 left\n",
			"");
	testing_command("leaks --from story.ttrec --summary --csv", 0,
			"pid,user,comm,ended_ns,how,exit_code,signal,bytes,buffers\n"
			"101,somebody,test,T,died,,9,49152,1\n",
			"");
}

/* NOLINTNEXTLINE(readability-function-size): what is printed */
UNIT(where_buffers_lie_and_what_would_fit)
{
	testing_command(
		"map --from story.ttrec -d 0", 0,
		"story.ttrec at T (T)\n"
		"pid 100 (test), device 0, DRAM: 12 banks of 8.0 MiB\n"
		"  ▒░░░░░░░░░░░░░░░░░░░░░░░░░░░▒██████████████████▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
		"  0x1000 to 0x800fff; in each bank 2 blocks, 2.1 MiB (25.8 %)\n"
		"  over all banks its blocks take 24.8 MiB\n"
		"  free: 5.9 MiB in 2 free blocks, largest 3.0 MiB (36.0 MiB over all banks), "
		"fragmentation 49.5 %\n"
		"pid 100 (test), device 0, L1: 64 banks of 1.0 MiB\n"
		"  ▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
		"  0x10000 to 0x10ffff; in each bank 1 block, 2.0 KiB (0.2 %)\n"
		"  over all banks its blocks take 128.0 KiB\n"
		"  free: 1022.0 KiB in 1 free block, largest 1022.0 KiB (63.9 MiB over all banks), "
		"fragmentation 0.0 %\n",
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command(
		"map --from story.ttrec --type L1 --bytes", 0,
		"story.ttrec at T (T)\n"
		"pid 100 (test), device 0, L1: 64 banks of 1048576\n"
		"  ▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
		"  0x10000 to 0x10ffff; in each bank 1 block, 2048 (0.2 %)\n"
		"  over all banks its blocks take 131072\n"
		"  free: 1046528 in 1 free block, largest 1046528 (66977792 over all banks), "
		"fragmentation 0.0 %\n"
		"pid 100 (test), device 1R, L1: 64 banks of 1048576\n"
		"  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░\n"
		"  0x10000 to 0x10ffff; in each bank 0 blocks, 0 (0.0 %)\n"
		"  free: 1048576 in 1 free block, largest 1048576 (67108864 over all banks), "
		"fragmentation 0.0 %\n",
		"note: pid 101 (test) has ended and left 1 buffer, 49152\n");
	testing_command(
		"fit --from story.ttrec 1M -d 0", 0,
		"story.ttrec at T (T)\n"
		"pid 100 (test), device 0, DRAM: yes\n"
		"  takes 85.3 KiB in each of 12 banks, at 0x11000, in a free block of 2.9 MiB\n",
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("fit --from story.ttrec 40M -d 0", 1,
			"story.ttrec at T (T)\n"
			"pid 100 (test), device 0, DRAM: no, fragmented\n"
			"  needs 3.3 MiB in each bank; 5.9 MiB are free, but no free block is "
			"larger than 3.0 MiB\n"
			"  over all banks its blocks take 24.8 MiB\n"
			"  would fit if this buffer were freed, 2.0 MiB in each bank (24.0 MiB "
			"over all banks):\n"
			"    0x301000         24.0 MiB  DRAM     kv.1\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("fit --from story.ttrec 200M -d 1", 1,
			"story.ttrec at T (T)\n"
			"pid 100 (test), device 1R, DRAM: no, too large\n"
			"  needs 16.7 MiB in each bank; a bank has 8.0 MiB\n"
			"  over all banks its blocks take 384.0 KiB\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command(
		"fit --from story.ttrec 1M --type L1 --page 2048 -d 1", 0,
		"story.ttrec at T (T)\n"
		"pid 100 (test), device 1R, L1: yes\n"
		"  takes 16.0 KiB in each of 64 banks, at 0x10c000, in a free block of 1.0 MiB\n",
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("fit --from story.ttrec 98000K -d 0", 1,
			"story.ttrec at T (T)\n"
			"pid 100 (test), device 0, DRAM: no, full\n"
			"  needs 8.0 MiB in each bank; 5.9 MiB are free\n"
			"  over all banks its blocks take 24.8 MiB\n"
			"  would fit if these 2 buffers were freed, 2.1 MiB in each bank (24.8 MiB "
			"over all banks):\n"
			"    0x1000          768.0 KiB  DRAM     weights\n"
			"    0x301000         24.0 MiB  DRAM     kv.1\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
}

UNIT(what_happened_at_an_address)
{
	testing_command("history --from story.ttrec 0x201000", 0,
			"story.ttrec at T (T)\n"
			"Buffer 0x201000 on device 0:\n"
			"  History (allocs=1 frees=1):\n"
			"    ALLOC size=12582912 pid=100 ref=1 time=D name=\"kv.0\"\n"
			"    FREE size=12582912 pid=100 ref=0 time=D name=\"kv.0\"\n"
			"    DOUBLE FREE size=12582912 pid=100 ref=0 time=D name=\"kv.0\"  ← "
			"Already freed!\n",
			"");
	testing_command(
		"history --from story.ttrec 0x1000 -d 1", 0,
		"story.ttrec at T (T)\n"
		"Buffer 0x1000 on device 1:\n"
		"  History (allocs=1 frees=0):\n"
		"    ALLOC size=393216 pid=100 ref=1 time=D name=\"weights\"  ← Still allocated!\n",
		"");
	testing_command("history --from story.ttrec 0x999", 0,
			"story.ttrec at T (T)\n"
			"nothing is known of address 0x999\n",
			"");
	testing_command(
		"history --from story.ttrec 0x301000 --stacks", 0,
		"story.ttrec at T (T)\n"
		"Buffer 0x301000 on device 0:\n"
		"  History (allocs=1 frees=0):\n"
		"    ALLOC size=25165824 pid=100 ref=1 time=D name=\"kv.1\"  ← Still allocated!\n"
		"          step (/app/model.py:31)\n"
		"          main (/app/run.py:7)\n",
		"");
}

UNIT(the_highest_moments)
{
	testing_command(
		"peak --from story.ttrec", 0,
		"story.ttrec at T (T)\n"
		"device 0 DRAM peak 25.5 MiB at T (pid 100 test), exact, 2.1 MiB in each of 12 "
		"banks, 25.5 MiB together\n"
		"    24.0 MiB   94.1%        1  kv.1 at step (model.py:31)\n"
		"     1.5 MiB    5.9%        2  weights at load (model.py:12)\n"
		"\n"
		"device 1 DRAM peak 384.0 KiB at T (pid 100 test), exact, 32.0 KiB in each of 12 "
		"banks, 384.0 KiB together\n"
		"   384.0 KiB  100.0%        1  weights at load (model.py:13)\n"
		"\n"
		"device 0 L1 peak 128.0 KiB at T (pid 100 test), exact, 2.0 KiB in each bank\n"
		"   128.0 KiB  100.0%        1  shard (model.py:20)\n"
		"\n"
		"device 0 DRAM peak 48.0 KiB at T (pid 101 test, ended), exact, 4.0 KiB in each of "
		"12 banks, 48.0 KiB together\n"
		"    48.0 KiB  100.0%        1  -\n",
		"");
	testing_command("peak --from story.ttrec --by name -d 0 --type DRAM", 0,
			"story.ttrec at T (T)\n"
			"device 0 DRAM peak 25.5 MiB at T (pid 100 test), exact, 2.1 MiB in each "
			"of 12 banks, 25.5 MiB together\n"
			"    24.0 MiB   94.1%        1  kv.1\n"
			"     1.5 MiB    5.9%        2  weights\n"
			"\n"
			"device 0 DRAM peak 48.0 KiB at T (pid 101 test, ended), exact, 4.0 KiB in "
			"each of 12 banks, 48.0 KiB together\n"
			"    48.0 KiB  100.0%        1  -\n",
			"");
	testing_command("peak --from story.ttrec --bytes --type L1", 0,
			"story.ttrec at T (T)\n"
			"device 0 L1 peak 131072 at T (pid 100 test), exact, 2048 in each bank\n"
			"      131072  100.0%        1  shard (model.py:20)\n",
			"");
}

UNIT(mistakes_and_failures)
{
	testing_command(
		"incidents --from story.ttrec", 0,
		"story.ttrec at T (T)\n"
		"double_free: pid 100 (test), device 0, DRAM, address 0x201000, 12.0 MiB\n"
		"  first T by thread 11, 12.0 MiB, \"kv.0\", in decode\n"
		"         step (/app/model.py:30)\n"
		"         main (/app/run.py:7)\n"
		"  then T by thread 11, 12.0 MiB, \"kv.0\", in decode\n"
		"         step (/app/model.py:30)\n"
		"         main (/app/run.py:7)\n"
		"alloc_failed: pid 100 (test), device 0, DRAM, 108.0 MiB, 9.0 MiB in each bank, "
		"largest free block 1.0 MiB in each bank\n"
		" T by thread 11, 108.0 MiB, \"large\", in decode\n"
		"         grow (/app/model.py:40)\n"
		"         main (/app/run.py:7)\n"
		"  108.0 MiB of DRAM on device 0 (9.0 MiB in each of 12 banks) were asked for by "
		"grow (model.py:40) in phase decode, pid 100. 5.0 MiB were free of 8.0 MiB in each "
		"bank. The largest free block had 1.0 MiB in each bank. It was held by: 24.0 MiB "
		"in 1 buffer, step (model.py:31); 1.5 MiB in 2 buffers, load (model.py:12). No "
		"bank is that large: whatever goes, it does not fit.\n"
		"leak: pid 101 (test), device 0, DRAM, 48.0 KiB in 1 buffer\n",
		"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
	testing_command("incidents --from story.ttrec --pid 101", 0,
			"story.ttrec at T (T)\n"
			"leak: pid 101 (test), device 0, DRAM, 48.0 KiB in 1 buffer\n",
			"note: pid 101 (test) has ended and left 1 buffer, 48.0 KiB\n");
}

UNIT(a_recording_at_whose_end_nothing_is_live_is_shown_at_its_peak)
{
	testing_command(
		"buffers --from short.ttrec", 0,
		"short.ttrec at T (T)\n"
		"    SIZE  OCCUPIED  TYPE  DEV  PID  COMMAND  ADDRESS  REFS AGE  NAME   PHASE\n"
		"48.0 KiB  48.0 KiB  DRAM    0  100  test     0x1000      1 T  short  load\n",
		"note: nothing was live at the end of the recording: this is its peak (--at end "
		"shows the end)\n");
	testing_command("buffers --from short.ttrec --at end", 0,
			"short.ttrec at T (T)\n"
			"SIZE  OCCUPIED  TYPE  DEV  PID  COMMAND  ADDRESS  REFS AGE  NAME  PHASE\n",
			"ttmem buffers: no live buffer\n");
}
