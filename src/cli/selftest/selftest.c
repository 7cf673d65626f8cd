/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem selftest: is it the tool or the application? A child reports known buffers through the
 * library, every tool must see exactly these, and after kill -9 their last state must still be
 * readable.
 */

#include "cli/selftest/selftest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/run/run-family.h"
#include "cli/run/run-spawn.h"
#include "model/snapshot-request.h"
#include "model/types.h"

#define SELFTEST_PATIENCE_NS (10 * NS_PER_S)

const struct selftest_buffer selftest_buffers[] = {
	{TTMEM_L1, 0x1a0000, 524288, "selftest L1 512 KiB"},
	{TTMEM_L1, 0x1b0000, 2097152, "selftest L1 2 MiB"},
	{TTMEM_L1, 0x1c0000, 8388608, "selftest L1 8 MiB"},
	{TTMEM_DRAM, 0x1a0000, 16777216, "selftest DRAM 16 MiB"},
	{TTMEM_SYSTEM_MEMORY, 0x10000, 65536, "selftest host"},
	{TTMEM_L1_SMALL, 0x2000, 4096, "selftest L1_SMALL"},
	{TTMEM_TRACE, 0x3000, 32768, "selftest trace"},
	{TTMEM_CB, 0x4000, 2048, "selftest circular buffer"},
	{TTMEM_KERNEL, 0x5000, 1024, "selftest kernel"},
};
const unsigned int selftest_count = ARRAY_SIZE(selftest_buffers);

uint64_t selftest_bytes(uint32_t type, uint64_t *ret_buffers)
{
	uint64_t bytes = 0;

	*ret_buffers = 0;
	for (unsigned int i = 0; i < selftest_count; i++) {
		if (selftest_buffers[i].type != type)
			continue;
		bytes += selftest_buffers[i].size;
		++*ret_buffers;
	}
	return bytes;
}

/* "ttmem selftest --play": the child. Runs until it is killed. */
static _Noreturn void selftest_play(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* no orphan, whatever happens to the parent */
	(void)prctl(PR_SET_NAME, "ttmem-selftest");
	for (unsigned int i = 0; i < selftest_count; i++)
		ttmem_alloc(SELFTEST_DEVICE, selftest_buffers[i].type, selftest_buffers[i].address,
			    selftest_buffers[i].size, selftest_buffers[i].name);
	ttmem_alloc(SELFTEST_DEVICE, TTMEM_DRAM, 0x9000, 512, "selftest freed twice");
	ttmem_free(SELFTEST_DEVICE, TTMEM_DRAM, 0x9000);
	ttmem_free(SELFTEST_DEVICE, TTMEM_DRAM, 0x9000);
	ttmem_mark("selftest ready");
	for (;;)
		(void)pause();
}

bool selftest_report(const char *what, const char *wrong)
{
	printf("%-4s %s%s%s\n", wrong ? "FAIL" : "ok", what, wrong ? ": " : "", wrong ? wrong : "");
	(void)fflush(stdout); /* output_finish() reports a failure */
	return !wrong;
}

/* Waits until the child has handed over its book and set its mark. */
static const char *selftest_wait(struct family *family)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SELFTEST_PATIENCE_NS;

	while (clock_ns(CLOCK_MONOTONIC) < deadline) {
		if (family_step(family, 20) < 0)
			return "the family of processes cannot be watched";
		if (family->refused)
			return family->refused_reason;
		if (family->end_count)
			return "the child ended before its time";
		for (size_t i = 0; i < family->peer_count; i++) {
			struct scan_book *book = family->peers[i]->book;

			if (book && reader_refresh(&book->reader) == 0 &&
			    book->reader.header.mark_count > 0)
				return NULL;
		}
	}
	return "no book came: see TTMEM_DEBUG in ttmem(1)";
}

/* What the killed child left must be what it held. */
static const char *selftest_last_state(struct family *family, pid_t pid)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SELFTEST_PATIENCE_NS;
	const struct snapshot_part *part;

	if (kill(pid, SIGKILL) < 0)
		return "the child cannot be killed";
	while (family->end_count == 0 && clock_ns(CLOCK_MONOTONIC) < deadline) {
		if (family_step(family, 20) < 0)
			return "the family of processes cannot be watched";
	}
	if (family->end_count == 0)
		return "its end was not noticed";
	part = snapshot_find_part(family->ended, family->ends[0].process, SELFTEST_DEVICE);
	if (!part || family->ended->buffer_count != selftest_count)
		return "the buffers are not all there";
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint64_t buffers;
		uint64_t bytes = selftest_bytes(type, &buffers);

		if (part->memory[type].used != bytes || part->memory[type].buffers != buffers)
			return "the totals are wrong";
	}
	return NULL;
}

static bool selftest_all(struct family *family, pid_t pid)
{
	static const struct {
		const char *what;
		selftest_check *check;
	} tools[] = {
		{"ttmem smi shows every type to the byte", selftest_smi},
		{"ttmem ps shows every type to the byte", selftest_ps},
		{"ttmem buffers lists every buffer", selftest_list},
		{"ttmem history tells the life of an address", selftest_history},
		{"ttmem incidents shows a double free", selftest_incidents},
	};
	bool good = selftest_report("the library makes a book and hands it over",
				    selftest_wait(family));

	for (unsigned int i = 0; good && i < ARRAY_SIZE(tools); i++)
		good = selftest_report(tools[i].what, tools[i].check((uint32_t)pid)) && good;
	if (good)
		good = selftest_report("after kill -9 the last state is still there",
				       selftest_last_state(family, pid));
	return good;
}

static int selftest_conclude(bool good)
{
	printf(good ? "All is well: if your program's memory does not show up, it does not report "
		      "it.\n"
		      "TTMEM_DEBUG=FILE your-program writes a line for each of its calls.\n"
		    : "This machine or this installation keeps ttmem from working.\n");
	return good ? COMMAND_OK : COMMAND_FAILED;
}

static int selftest_perform(void)
{
	static const char *const words[] = {"/proc/self/exe", "selftest", "--play", NULL};
	struct family *family;
	sigset_t before;
	pid_t pid = 0;
	bool good;
	int r;

	r = family_new(&family);
	if (r < 0)
		return output_fail("selftest", "no socket for the books", r);
	r = family_open(family, &before);
	if (r == 0)
		pid = spawn_tracked(words, family->path, NULL, &before, &family->files);
	if (r < 0 || pid < 0) {
		family_free(family);
		return output_fail("selftest", "cannot start a child", r < 0 ? r : (int)pid);
	}
	good = selftest_all(family, pid);
	(void)kill(pid, SIGKILL); /* it may have exited */
	family_free(family);
	return selftest_conclude(good && selftest_with_daemon());
}

static int selftest_tensors(void)
{
	const char *skip = NULL;
	const char *wrong = selftest_ttnn(&skip);

	if (skip) {
		printf("skip tensors of ttnn: %s\n", skip);
		return COMMAND_OK;
	}
	return selftest_report("tensors of ttnn show up with their sizes", wrong) ? COMMAND_OK
										  : COMMAND_FAILED;
}

static int selftest_run(int argc, char **argv)
{
	bool ttnn = false;
	const struct options_item items[] = {
		{0, "ttnn", NULL, "only with real tensors, where ttnn is installed", &ttnn, NULL},
	};
	const struct options options = {
		.command = "selftest",
		.items = items,
		.count = ARRAY_SIZE(items),
		.summary = "Makes known buffers and checks that every tool sees them. Exit code 0 "
			   "if all "
			   "do.",
	};
	int r;

	if (argc > 1 && strcmp(argv[1], "--play") == 0)
		selftest_play();
	if (argc > 1 && strcmp(argv[1], "--play-old") == 0)
		selftest_play_old();
	r = options_parse_only(&options, argc, argv);
	if (r != 0)
		return options_exit(r);
	/* A running daemon must not take what is left behind on purpose for a leak. */
	(void)setenv("TTMEM_SOCKET", "none", 1); /* fails only if out of memory */
	(void)setenv("TTMEM_UNLISTED", "1", 1);
	output_start();
	r = ttnn ? selftest_tensors() : selftest_perform();
	return r ? r : output_finish();
}

const struct command selftest_command = {
	.name = "selftest",
	.summary = "makes known buffers and checks that every tool sees them",
	.run = selftest_run,
};
