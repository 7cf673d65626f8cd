/* SPDX-License-Identifier: Apache-2.0 */

/* Everything that can be found, in words. Scripts rely on the ids, so they never change. */

#include "cli/doctor/doctor.h"

#include "base/bits.h"

const struct doctor_kind doctor_kinds[DOCTOR_KINDS] = {
	[DOCTOR_TRACKING_OFF] = {"tracking-off", DOCTOR_WARNING,
				 "it uses the library, but nothing said that it should keep a book",
				 "set TTMEM=1 (or TT_ALLOC_TRACKING_ENABLED=1) before it starts, "
				 "or start it with \"ttmem run -- COMMAND\""},
	[DOCTOR_TRACKING_DISABLED] = {"tracking-disabled", DOCTOR_INFO,
				      "TTMEM=0 wins over everything that turns tracking on",
				      "unset TTMEM and start it again, if it should be seen"},
	[DOCTOR_TRACKING_PAUSED] =
		{"tracking-paused", DOCTOR_WARNING,
		 "what is allocated or freed during a pause is not in the figures",
		 "let the program call ttmem_resume(), or take the ttmem_pause() out"},
	[DOCTOR_NEVER_CALLED] = {"never-called", DOCTOR_WARNING,
				 "the library is loaded and tracking is on, but no allocation was "
				 "ever reported: a book is made by the first one",
				 "see that the allocator calls ttmem_alloc(): docs/integrate.md; "
				 "for an unchanged tt-metal: \"ttmem run --metal -- COMMAND\""},
	[DOCTOR_LIBRARY_MISSING] = {"library-missing", DOCTOR_WARNING,
				    "without the library nobody reports what it allocates",
				    "link with -lttmem (docs/integrate.md), or start it with "
				    "\"ttmem run --metal -- COMMAND\"; a libttmem.a inside "
				    "cannot be seen: then start it with TTMEM=1"},
	[DOCTOR_LIBRARY_REPLACED] =
		{"library-replaced", DOCTOR_INFO,
		 "the file was replaced since it was loaded; the process goes on with the old one",
		 "start the process again to get the new version"},
	[DOCTOR_LIBRARY_OTHER] = {"library-other", DOCTOR_INFO,
				  "the process has another version of the library than this "
				  "command; both understand the book",
				  "install one version everywhere, if something looks odd"},
	[DOCTOR_METAL_FOUND] = {"metal-found", DOCTOR_INFO,
				"libttmem-metal.so reports for this tt-metal; what it found in two "
				"ways agreed",
				"nothing; docs/integrate-tt-metal.md explains the words"},
	[DOCTOR_TRACKING_GAVE_UP] =
		{"tracking-gave-up", DOCTOR_ERROR,
		 "from then on nothing of this process is recorded, and its figures are lower "
		 "bounds; "
		 "checks of it fail with exit code 87",
		 "docs/integrate-tt-metal.md has the reasons; please report it with --bundle"},
	[DOCTOR_METAL_UNTRACKED] = {"metal-untracked", DOCTOR_WARNING,
				    "it has a book, but nothing stands in front of its tt-metal: "
				    "only tt-metal's own region, "
				    "where there is one, is counted",
				    "start it with \"ttmem run --metal -- COMMAND\", or install "
				    "the wheel's .pth file: "
				    "docs/integrate-tt-metal.md"},
	[DOCTOR_BOOK_HIDDEN] =
		{"book-hidden", DOCTOR_WARNING,
		 "the process has closed the descriptor of its book, as some programs close all "
		 "they do not know; only a daemon that was there before can still read it",
		 "run ttmemd before the process starts, or keep the descriptor open"},
	[DOCTOR_BOOK_REFUSED] =
		{"book-refused", DOCTOR_ERROR,
		 "a book that could be changed by others, or is damaged, cannot be believed and is "
		 "not counted",
		 "start the process again; if that does not help, please report it with --bundle"},
	[DOCTOR_BOOK_LEFT] = {"book-left", DOCTOR_INFO,
			      "the process has ended; another one still holds its book. What it "
			      "left no longer counts",
			      "\"ttmem leaks\" shows what was left, where ttmemd runs"},
	[DOCTOR_BOOK_LIMITED] =
		{"book-limited", DOCTOR_ERROR,
		 "a limit of the process is smaller than the smallest book, so it has none",
		 "raise the limit before it starts: \"ulimit -f unlimited; ulimit -v unlimited\""},
	[DOCTOR_BOOK_FULL] = {"book-full", DOCTOR_WARNING,
			      "when a book is full, further buffers are counted as lost",
			      "raise TTMEM_ROOM, or the memory limit of the container (an eighth "
			      "of it is used at most)"},
	[DOCTOR_EVENTS_LOST] = {"events-lost", DOCTOR_ERROR,
				"the figures of this process are bounds, not exact",
				"\"ttmem ps --json\" tells the reasons under \"rejected\"; "
				"docs/troubleshooting.md what each means"},
	[DOCTOR_NAMES_LOST] = {"names-lost", DOCTOR_WARNING,
			       "sizes are right, but some buffers have no name or phase",
			       "use fewer different names, or raise TTMEM_ROOM"},
	[DOCTOR_STACKS_LOST] = {"stacks-lost", DOCTOR_WARNING,
				"sizes are right, but it is not known who asked for some buffers",
				"docs/stacks.md tells the reasons: fibers, a full book, "
				"a static program without --eh-frame-hdr"},
	[DOCTOR_STACKS_OFF] =
		{"stacks-off", DOCTOR_INFO,
		 "without stacks nobody can say which line of code asked for a buffer",
		 "start it without TTMEM_STACKS, or with TTMEM_STACKS=auto"},
	[DOCTOR_STACKS_UNSENT] =
		{"stacks-unsent", DOCTOR_INFO,
		 "it reports through the old socket, and only clients whose messages have 648 "
		 "bytes send stacks: nobody can say which line of code asked for a buffer",
		 "let it use libttmem: docs/integrate.md; its headers and modules for old clients "
		 "need no other change"},
	[DOCTOR_PROCESS_UNREADABLE] =
		{"process-unreadable", DOCTOR_WARNING,
		 "it is yours, but the kernel does not let you look into it "
		 "(it changed its user, or is not dumpable)",
		 "run this command as root (with CAP_SYS_PTRACE), or run ttmemd"},
	[DOCTOR_NOTHING_TRACKED] = {"nothing-tracked", DOCTOR_WARNING,
				    "no process that you may see has a book",
				    "set TTMEM=1 where the program starts; try \"ttmem demo\" to "
				    "see how it should look"},
	[DOCTOR_NOTHING_REPORTED] =
		{"nothing-reported", DOCTOR_WARNING,
		 "it stays at 0 B whatever it allocates. Tracking is on, and asking is_enabled() "
		 "or "
		 "ttmem_enabled() is enough for a book, but only reported buffers count",
		 "see that the allocator calls report_allocation() or ttmem_alloc(): "
		 "docs/integrate.md; for an unchanged tt-metal: \"ttmem run --metal -- COMMAND\""},
	[DOCTOR_TOTAL_SMALL] =
		{"total-small", DOCTOR_WARNING,
		 "a device is in use, but all buffers together are under 1 MiB; a small workload "
		 "has "
		 "10 to 50 MiB, a usual one 50 to 200 MiB, a large one more",
		 "see that the allocator's every path calls the library, and that tracking was on "
		 "before the first buffer: docs/troubleshooting.md"},
	[DOCTOR_DRAM_ONLY] =
		{"dram-only", DOCTOR_INFO,
		 "all buffers are in DRAM, where tensors go unless told otherwise; L1 is empty "
		 "because nobody asked for it",
		 "ask for it, if you expected L1: memory_config=ttnn.L1_MEMORY_CONFIG"},
	[DOCTOR_PEAK_PAST] =
		{"peak-past", DOCTOR_INFO,
		 "little is in use now, but there was much more: you are looking between two "
		 "bursts",
		 "\"ttmem watch\" shows what comes and goes, \"ttmem top\" draws it over time, "
		 "\"ttmem ps\" has the peak of each type"},
	[DOCTOR_FREES_UNKNOWN] =
		{"frees-unknown", DOCTOR_INFO,
		 "buffers were freed that nobody had reported: tracking began after they were "
		 "made, or some allocations are not reported",
		 "turn tracking on before the first allocation; \"ttmem incidents\" lists them"},
	[DOCTOR_DAEMON_NONE] =
		{"daemon-none", DOCTOR_INFO,
		 "without ttmemd you see your own processes (root: all), and nothing of the past",
		 "\"systemctl start ttmemd\", or run ttmemd by hand: docs/deploy.md"},
	[DOCTOR_DAEMON_SILENT] =
		{"daemon-silent", DOCTOR_ERROR,
		 "something is at the daemon's socket, but gives no answer that makes sense",
		 "\"systemctl restart ttmemd\"; nothing is lost by that"},
	[DOCTOR_DAEMON_STRANGER] =
		{"daemon-stranger", DOCTOR_WARNING,
		 "what an ordinary user serves there could be made up, so it is not asked",
		 "set TTMEM_SOCKET to that path if you trust it"},
	[DOCTOR_DAEMON_BLIND] =
		{"daemon-blind", DOCTOR_WARNING,
		 "the daemon may not look into the processes of other users: it knows only those "
		 "that reported to it",
		 "give it CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH as the unit does: docs/deploy.md"},
	[DOCTOR_DAEMON_PARTIAL] = {"daemon-partial", DOCTOR_INFO,
				   "of other users' processes you see totals only",
				   "ask to be added to the group ttmem, if you need more"},
	[DOCTOR_DAEMON_FORGETS] =
		{"daemon-forgets", DOCTOR_WARNING,
		 "the daemon cannot write down leaks, incidents and history, or lost some of it",
		 "make room on its disk, see \"ttmem status\" and its log"},
	[DOCTOR_DAEMON_DOOR] =
		{"daemon-door", DOCTOR_WARNING,
		 "the daemon runs without a socket, port or file that it should have: what is "
		 "served there is missing",
		 "stop who has it, or remove what is in the way; the daemon tries again every few "
		 "seconds. Or choose another place: ttmemd.conf(5)"},
	[DOCTOR_OLD_SERVER] = {"old-server", DOCTOR_WARNING,
			       "old clients talk to this server instead of ttmemd, so their memory "
			       "is not seen here",
			       "stop it and start ttmemd, which speaks to old clients as well"},
	[DOCTOR_OLD_SOCKET] = {"old-socket", DOCTOR_INFO,
			       "a socket of the old protocol is there, but nobody listens: old "
			       "clients are not tracked",
			       "start ttmemd; it cleans up the dead socket"},
	[DOCTOR_CLOCK_SLOW] =
		{"clock-slow", DOCTOR_INFO,
		 "the machine's clock source is not the processor's own counter, so each event "
		 "asks the kernel for the time and costs more",
		 "see \"dmesg | grep clocksource\" for why the kernel does not trust it"},
	[DOCTOR_CLOCK_WRONG] =
		{"clock-wrong", DOCTOR_WARNING,
		 "the clock was set back since; ages and the times of incidents are off",
		 "set the clock right (NTP), and start the process again"},
	[DOCTOR_OTHERS_UNSEEN] =
		{"others-unseen", DOCTOR_INFO,
		 "as an ordinary user without ttmemd you see your own processes only",
		 "run ttmemd, or this command as root"},
	[DOCTOR_CONTAINER] =
		{"container", DOCTOR_INFO,
		 "this command runs in a container: processes outside cannot be seen from here",
		 "run it on the host, or mount the daemon's socket: docs/containers.md"},
	[DOCTOR_DRIVER_NONE] =
		{"driver-none", DOCTOR_INFO,
		 "without the driver there are no cards, sensors or lists of who has a device open",
		 "on a machine with cards: \"modprobe tenstorrent\""},
	[DOCTOR_DEVICE_UNTRACKED] =
		{"device-untracked", DOCTOR_INFO,
		 "what it allocates there is known to nobody: it keeps no book, and no region of "
		 "tt-metal names it",
		 "start it with \"ttmem run --metal -- COMMAND\", or see "
		 "docs/integrate.md"},
	[DOCTOR_DEVICE_UNMATCHED] =
		{"device-unmatched", DOCTOR_WARNING,
		 "its memory is shown on a row of its own and not on a card, so that the card "
		 "looks emptier than it is",
		 "let the application declare its devices with their ASIC ids "
		 "(ttmem_device()), and look as root or let ttmemd run: "
		 "others cannot see which nodes a process has open"},
	[DOCTOR_CARD_UNAVAILABLE] =
		{"card-unavailable", DOCTOR_WARNING,
		 "nobody can use it at present. In reset: the driver has no data of it; not "
		 "answering: all that is read of it is ones, or its heartbeat stands still; gone: "
		 "it was removed, or unbound from the driver",
		 "wait for a reset to end; else \"dmesg\" says why, and \"tt-smi -r\" resets it"},
	[DOCTOR_OVER_LIMIT] =
		{"over-limit", DOCTOR_WARNING,
		 "the firmware slows a card down that is beyond its limits, and switches it off if "
		 "that does not help",
		 "see that its fan and the air around it are as they should be: \"ttmem top\", "
		 "view "
		 "6, or \"ttmem smi --details\""},
	[DOCTOR_THERMAL_TRIP] =
		{"thermal-trip", DOCTOR_WARNING,
		 "it was so hot that it switched itself off, and what was in its memory was lost",
		 "look after its cooling; the count starts anew when power is cycled"},
	[DOCTOR_STALE_AFTER_RESET] = {"stale-after-reset", DOCTOR_WARNING,
				      "its card was reset or removed under it, so its memory is no "
				      "longer there, and its "
				      "open node no longer works",
				      "start it again"},
	[DOCTOR_REGION_STALE] = {"region-stale", DOCTOR_INFO,
				 "tt-metal's own tools still count it; ttmem does not",
				 "version 4: the next program that opens the device clears it; "
				 "before: remove the file from /dev/shm while nobody uses the "
				 "device, because no program clears it"},
	[DOCTOR_REGION_CLAIM] =
		{"region-claim", DOCTOR_WARNING,
		 "anybody may put a file into /dev/shm that says so; the process does not have it "
		 "mapped, or you may not look and others than its user can write to it, so it is "
		 "not counted",
		 "run this command as root, or ttmemd, to see who has it mapped; else ask the "
		 "owner "
		 "of the file, and remove it while nobody uses the device"},
	[DOCTOR_REGION_MANY] =
		{"region-many", DOCTOR_WARNING,
		 "what is in the others is not counted; each user has a share, so one user's "
		 "files do not hide another's",
		 "see who owns the files tt_device_*_memory in /dev/shm; each card has one"},
	[DOCTOR_CAPACITY_REFUSED] =
		{"capacity-refused", DOCTOR_WARNING,
		 "no card has so much memory, so these sizes are taken for not declared",
		 "see what the program gives to ttmem_device()"},
	[DOCTOR_DEVICES_MANY] =
		{"devices-many", DOCTOR_WARNING,
		 "totals are right, but what is beyond the bound is in one row; each user has a "
		 "bound, so others are shown as always",
		 "see why its programs declare so many devices that are no cards here"},
	[DOCTOR_REGION_DIFFERS] =
		{"region-differs", DOCTOR_WARNING,
		 "tt-metal and the book disagree about what the process holds; the book is "
		 "counted. While it is busy they are read at different moments, and tt-metal "
		 "counts "
		 "whole pages. That the region has less because other threads than the one that "
		 "opened the device allocate is usual, and not reported here",
		 "look again; if it stays, allocations are not reported to libttmem, or twice: "
		 "docs/integrate-tt-metal.md"},
	[DOCTOR_REGION_UNREADABLE] =
		{"region-unreadable", DOCTOR_INFO,
		 "what stock tt-metal programs of its owner hold is not seen by you",
		 "run this command as root, or ttmemd, which tells everybody the totals"},
	[DOCTOR_REGION_BROKEN] =
		{"region-broken", DOCTOR_WARNING,
		 "what is in that region of tt-metal is not counted",
		 "wait a moment if a program is just starting; else remove the file while nobody "
		 "uses the device"},
	[DOCTOR_KERNEL_NODE] =
		{"kernel-node", DOCTOR_WARNING,
		 "programs of this user keep their books in memory files, and only where TTMEM=1 "
		 "is set; others do not see their totals without ttmemd",
		 "let /dev/ttmem be there with mode 0666, as its udev rule says: docs/kernel.md"},
	[DOCTOR_KERNEL_READY] =
		{"kernel-ready", DOCTOR_INFO,
		 "the totals of all whose books are the module's are seen without ttmemd; details, "
		 "leaks and the past are not",
		 "nothing; TTMEM=0 turns it off for a program, TTMEM_KERNEL=0 leaves the module "
		 "alone"},
	[DOCTOR_KERNEL_SHARE] =
		{"kernel-share", DOCTOR_WARNING,
		 "books that are there cannot grow and lose what is new; processes that start now "
		 "keep theirs in memory files, which others do not see without ttmemd. "
		 "CAP_SYS_RESOURCE lifts the bound of a user",
		 "let processes end that hold large books (\"ttmem ps\"), or raise user_mib or "
		 "total_mib of the module: docs/kernel.md"},
};

const char *doctor_advice(const struct doctor_finding *finding)
{
	return finding->fix ? finding->fix : doctor_kinds[finding->kind].fix;
}

const char *doctor_level_name(uint32_t level)
{
	static const char *const names[] = {"info", "warning", "error"};

	return level < ARRAY_SIZE(names) ? names[level] : NULL;
}
