/* SPDX-License-Identifier: Apache-2.0 */

/* The verdict of a run in every form: what is left, what is new, what could not be judged, and one or several of each. */

#include "cli/run/run-report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "cli/budget/budget-output.h"
#include "cli/run/run-family.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

static struct family *family;
static struct report report;
static struct budget_result limits;
static struct baseline *baseline;
static const char *word = "a b"; /* of the command */
static uint32_t ignored;
static uint64_t held; /* buffers when a device was closed */

static uint32_t add_process(uint32_t pid, int status)
{
	const struct snapshot_process process = {
		.id = {pid, 1}, .comm = "train", .user = "me", .source = "book", .exact = true};
	uint32_t index;

	assert(snapshot_add_process(family->ended, &process, &index) == 0);
	family->ends = realloc(family->ends, (family->end_count + 1) * sizeof(*family->ends));
	assert(family->ends);
	family->ends[family->end_count++] = (struct family_end){
		.process = index, .pid = pid, .ending = {.has_status = true, .status = status}};
	return index;
}

static void add_buffer(uint32_t process, uint32_t type, uint64_t size, const char *name,
		       const char *stack)
{
	const struct snapshot_buffer buffer = {
		.process = process,
		.address = 0x1000 + 0x1000 * family->ended->buffer_count,
		.size = size,
		.name = name,
		.phase = "load",
		.stack = testing_stack(stack),
		.refs = 1,
		.type = (uint8_t)type,
	};
	struct snapshot_part *part = snapshot_part(family->ended, process, 0);

	assert(part && snapshot_add_buffer(family->ended, &buffer) == 0);
	part->memory[type].used += size;
	part->memory[type].buffers++;
}

/* One process without leaks. */
static void begin(void)
{
	family = calloc(1, sizeof(*family));
	assert(family);
	family->ended = snapshot_new(1000);
	assert(family->ended);
	add_process(100, 0);
	family->command = family->ends[0].ending;
	family->peak[0][TYPES_DRAM] = (struct family_peak){.bytes = 4096, .processes = 1};
}

static void end(void)
{
	baseline_free(baseline);
	snapshot_free(family->ended);
	free(family->ends);
	free(family);
}

/* What @fn writes. */
static const char *written(void (*fn)(const struct report *report, FILE *out))
{
	char program[] = "./app", argument[16], *argv[] = {program, argument, NULL};
	static char text[65536];
	FILE *out = fmemopen(memset(text, 0, sizeof(text)), sizeof(text), "w");

	snprintf(argument, sizeof(argument), "%s", word);
	assert(out && snapshot_finish(family->ended) == 0);
	report_init(&report, family, ignored, baseline);
	report.argv = argv;
	report.duration_ns = UINT64_C(1500000000);
	report.limits = &limits;
	report.is_tracked = family->end_count > 0;
	report.held_buffers = held;
	report.held_bytes = 1024 * held;
	fn(&report, out);
	assert(fclose(out) == 0);
	report_deinit(&report);
	return text;
}

static bool writes(void (*fn)(const struct report *report, FILE *out), const char *expected)
{
	const char *text = written(fn);

	if (strcmp(text, expected) != 0)
		fprintf(stderr, "written:\n%s", text);
	return strcmp(text, expected) == 0;
}

#define HEAD "\nttmem run: ./app a b\nexit code 0 after 1 s; 1 process tracked\n"
#define PEAK "peak: device 0 DRAM 4.0 KiB\n"

UNIT(a_run_that_leaves_nothing)
{
	begin();
	assert(writes(report_text, HEAD PEAK "leaks: none\n"));
	assert(writes(report_markdown, "### ttmem: no new leak\n\n"
				       "`./app a b`: exit code 0, 1 process tracked\n\n"
				       "| device | type | peak |\n|---:|---|---:|\n"
				       "| 0 | DRAM | 4.0 KiB |\n"));
	assert(writes(report_github, ""));
	assert(strstr(written(report_json),
		      "\"tracked\":true,\"gave_up\":null,\"leaked\":false,\"leaked_bytes\":0,"
		      "\"leaked_buffers\":0,\"ignored_buffers\":0,\"held_at_close\":null,"
		      "\"without_book\":0,\"untracked\":0,\"still_running\":0,\"refused\":0,"));
	end();
}

/* Two from one line, one without a stack, and one of an ignored type. */
static void leak(void)
{
	uint32_t other = add_process(101, 9);

	add_buffer(0, TYPES_DRAM, 1024, "kv.1", "/app/model.py:3:load");
	add_buffer(0, TYPES_DRAM, 2048, "kv.2", "/app/model.py:3:load");
	add_buffer(0, TYPES_L1, 64, "cache.7", NULL);
	add_buffer(other, TYPES_CB, 32, NULL, NULL);
	ignored = 1u << TYPES_CB;
}

#define LEAKS                                                               \
	"leaks: 3 buffers, 3.1 KiB, at 2 call sites\n"                      \
	"     3.0 KiB       2 buffers  DRAM 2 names at load (model.py:3)\n" \
	"              named kv.2, kv.1\n"                                  \
	"                   2 from /app/model.py:3:load\n"                  \
	"        64 B       1 buffer   L1 cache.7\n"

UNIT(what_is_left_is_told_by_call_site)
{
	begin();
	leak();
	assert(writes(report_text, "\nttmem run: ./app a b\n"
				   "exit code 0 after 1 s; 2 processes tracked\n" PEAK LEAKS
				   "ignored: 1 buffer\n"));
	assert(writes(report_markdown,
		      "### ttmem: device memory was leaked\n\n"
		      "`./app a b`: exit code 0, 2 processes tracked\n\n"
		      "| leaked | buffers | call site | |\n|---:|---:|---|---|\n"
		      "| 3.0 KiB | 2 | DRAM 2 names: model.py:load | **new** |\n"
		      "| 64 B | 1 | L1 cache.7 | **new** |\n\n"
		      "| device | type | peak |\n|---:|---|---:|\n| 0 | DRAM | 4.0 KiB |\n"));
	assert(writes(report_github,
		      "::error file=/app/model.py,line=3,title=ttmem::3.0 KiB leaked in 2 buffers: "
		      "DRAM 2 names at load (model.py:3)\n"
		      "::error title=ttmem::64 B leaked in 1 buffer: L1 cache.7\n"));
	assert(strstr(written(report_json),
		      "\"leaked\":true,\"leaked_bytes\":3136,\"leaked_buffers\":3,"
		      "\"ignored_buffers\":1,"));
	end();
}

static void write_lines(const struct report *of, FILE *out)
{
	char *lines = report_leak_lines(of);

	assert(lines);
	fputs(lines, out);
	free(lines);
}

UNIT(what_the_baseline_has_is_known)
{
	begin();
	leak();
	baseline = baseline_new();
	assert(baseline);
	baseline_add(baseline, BASELINE_SITES, "DRAM: model.py:load", 3072);
	baseline_add(baseline, BASELINE_LEAKED, "", 3072);
	baseline_add(baseline, BASELINE_PEAKS, "0 DRAM", 5120);
	baseline_add(baseline, BASELINE_PEAKS, "1 L1", 64);
	assert(strstr(written(report_text), "load (model.py:3)  (in the baseline)\n"));
	assert(strstr(written(report_text), "L1 cache.7\n"));
	assert(writes(report_github, "::error title=ttmem::64 B leaked in 1 buffer: L1 cache.7\n"));
	assert(writes(write_lines, "64 B leaked in 1 buffer: L1 cache.7"));
	assert(writes(report_markdown,
		      "### ttmem: device memory was leaked\n\n"
		      "`./app a b`: exit code 0, 2 processes tracked\n\n"
		      "| leaked | buffers | call site | |\n|---:|---:|---|---|\n"
		      "| 3.0 KiB | 2 | DRAM 2 names: model.py:load | known |\n"
		      "| 64 B | 1 | L1 cache.7 | **new** |\n\n"
		      "leaked: 3.1 KiB, base 3.0 KiB: **+64 B** (+2.1 %)\n\n"
		      "| device | type | peak | base | change |\n|---:|---|---:|---:|---:|\n"
		      "| 0 | DRAM | 4.0 KiB | 5.0 KiB | -1.0 KiB (-20.0 %) |\n"
		      "| 1 | L1 | 0 B | 64 B | -64 B (-100.0 %) |\n"));
	/* One byte more than it has is new. */
	add_buffer(0, TYPES_DRAM, 1, "kv.3", "/app/model.py:3:load");
	assert(!strstr(written(report_text), "(in the baseline)"));
	end();
}

UNIT(what_could_not_be_judged_is_told)
{
	begin();
	family->untracked = 1;
	family->still_running = 1;
	family->refused = 2;
	family->refused_reason = "too many";
	held = 1;
	assert(writes(report_text,
		      "\nttmem run: ./app a b\nexit code 0 after 1 s; 1 process tracked, 1 that "
		      "uses a device or tt-metal not\n" PEAK
		      "leaks: none\nheld when a device was closed: 1 buffer, 1.0 KiB\n"
		      "still running, so not judged: 1 process\n2 books were refused: too many\n"));
	family->untracked = 2;
	family->still_running = 2;
	family->refused = 1;
	family->trouble = -ENOSPC;
	held = 2;
	assert(writes(report_text,
		      "\nttmem run: ./app a b\nexit code 0 after 1 s; 1 process tracked, 2 that "
		      "use a device or tt-metal not\n" PEAK
		      "leaks: none\nheld when a device was closed: 2 buffers, 2.0 KiB\n"
		      "still running, so not judged: 2 processes\n"
		      "not everything could be watched: No space left on device\n"
		      "1 book was refused: too many\n"));
	assert(strncmp(written(report_markdown),
		       "### ttmem: device memory was held when a device was closed\n", 59) == 0);
	end();
}

UNIT(tracking_that_gave_up_says_at_least)
{
	begin();
	family->gave_up = "no memory";
	family->gave_up_pid = 100;
	family->peak[0][TYPES_DRAM].is_bound = family->peak[0][TYPES_DRAM].sampled = true;
	assert(writes(report_text,
		      HEAD "tracking gave up in process 100: no memory; from then on nothing was "
			   "recorded\npeak: device 0 DRAM ≥ 4.0 KiB (several processes: at least)\n"
			   "leaks: not known\n"));
	assert(strncmp(written(report_markdown), "### ttmem: tracking gave up\n", 28) == 0);
	add_buffer(0, TYPES_L1, 64, "cache.7", NULL);
	assert(strstr(written(report_text), "leaks: at least 1 buffer, 64 B, at 1 call site\n"));
	end();
}

UNIT(a_run_of_which_nothing_was_tracked)
{
	begin();
	family->end_count = 0;
	family->command.status = 11;
	family->peak[0][TYPES_DRAM].processes = 0;
	assert(writes(report_text,
		      "\nttmem run: ./app a b\n"
		      "killed by signal 11 (SEGV) after 1 s; 0 processes tracked\n"
		      "nothing was reported. Does the program link libttmem, or use tt-metal and "
		      "run with --metal? Does it reach its first allocation? Does something set "
		      "TTMEM=0? TTMEM_DEBUG=FILE shows every call.\nleaks: not known\n"));
	assert(strncmp(written(report_markdown), "### ttmem: nothing was tracked\n", 31) == 0);
	end();
}

UNIT(many_call_sites_are_counted_beyond_those_shown)
{
	char stack[64], name[64];

	begin();
	for (uint32_t i = 0; i < 22; i++) {
		const char *text = written(report_text);

		assert(!!strstr(text, "  and 1 more call site; --json has all\n") == (i == 21));
		snprintf(stack, sizeof(stack), "/app/model.py:%u:load%u", i, i);
		add_buffer(0, TYPES_DRAM, 64 + i, NULL, stack);
	}
	assert(strstr(written(report_text), "  and 2 more call sites; --json has all\n"));
	for (uint32_t i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "buffer-%c", 'a' + (int)i);
		add_buffer(0, TYPES_L1, UINT64_C(1000) - i,
			   snapshot_text(family->ended, name, strlen(name)),
			   "/app/other.py:1:other");
		assert(!!strstr(written(report_text), "and 1 more\n") == (i == 5));
	}
	assert(strstr(written(report_text), "              named buffer-a, buffer-b, buffer-c, "
					    "buffer-d, buffer-e, and 2 more\n"));
	end();
}

UNIT(incidents_are_listed_but_leaks)
{
	struct snapshot_incident incident = {.kind = "leak", .type = TYPES_L1, .count = 1};

	begin();
	assert(snapshot_add_incident(family->ended, &incident) == 0);
	assert(!strstr(written(report_text), "incidents"));
	incident = (struct snapshot_incident){.kind = "double_free",
					      .type = TYPES_DRAM,
					      .has_address = true,
					      .address = 0x1000,
					      .size = 64,
					      .first = {.name = "kv"},
					      .count = 2};
	assert(snapshot_add_incident(family->ended, &incident) == 0);
	incident = (struct snapshot_incident){
		.kind = "unknown_free", .type = SNAPSHOT_TYPE_NONE, .device = 3, .count = 1};
	assert(snapshot_add_incident(family->ended, &incident) == 0);
	assert(writes(report_text, HEAD PEAK
		      "leaks: none\nincidents:\n"
		      "  double_free on device 0, DRAM at 0x1000, 64 bytes, kv (2 times), "
		      "pid 100\n  unknown_free on device 3, type unknown, pid 100\n"));
	assert(strstr(written(report_markdown),
		      "\n2 incidents (double frees, unknown frees, size changes, failed "
		      "allocations)\n"));
	end();
}

UNIT(a_command_is_code_in_markdown_whatever_is_in_it)
{
	static const char *const commands[][2] = {
		{"a b", "\n`./app a b`: exit"},
		{"`", "\n`` ./app ` ``: exit"},
		{"` ``", "\n``` ./app ` `` ```: exit"},
		{"``` `", "\n```` ./app ``` ` ````: exit"},
	};

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		word = commands[i][0];
		assert(strstr(written(report_markdown), commands[i][1]));
	}
	end();
}
