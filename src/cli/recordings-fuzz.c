/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every command that reads a recording, with hostile ones: each answers or refuses, and none crashes or
 * hangs. The first byte of the input chooses the command: 0 = all of them, one after the other. The rest
 * is as recording/testing/testing-hostile.h says. "top" and "report --serve" need a terminal and a
 * browser; their readers are those of "smi", "history" and "leaks".
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "cli/common/command.h"
#include "recording/testing/testing-chunks.h"
#include "recording/testing/testing-hostile.h"
#include "recording/testing/testing-recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_EVENTS 400u /* a few chunks of each kind */
#define FUZZ_WORDS 12u

/* "@" is the hostile recording, "=" the one that it was made of. */
static const struct {
	const struct command *command;
	const char *words;
} fuzz_lines[] = {
	{&smi_command, "--from @ --json"},
	{&smi_command, "--from @ --at peak --details"},
	{&ps_command, "--from @"},
	{&buffers_command, "--from @ --at start --json"},
	{&buffers_command, "--from @ --by site"},
	{&map_command, "--from @ 0"},
	{&fit_command, "--from @ 1M"},
	{&history_command, "--from @ 0x1000"},
	{&growth_command, "--from @"},
	{&peak_command, "--from @ --by site --json"},
	{&incidents_command, "--from @"},
	{&leaks_command, "--from @ --json"},
	{&check_command, "--limit DRAM=1 --limit site:a=1 @"},
	{&report_command, "--json @"},
	{&report_command, "-o - @"},
	{&diff_command, "@ ="},
	{&diff_command, "--all --json = @"},
	{&diff_command, "--by name @ @"},
	{&replay_command, "@"},
	{&replay_command, "--card p150 --json @"},
	{&export_command, "--format pprof @"},
	{&export_command, "--format speedscope @"},
	{&export_command, "--format folded @"},
	{&export_command, "--format memory_viz @"},
	{&export_command, "--format heaptrack @"},
	{&export_command, "--format firefox @"},
	{&export_command, "--format perfetto @"},
	{&export_command, "--format chrome @"},
	{&export_command, "--format csv @"},
};

static char fuzz_good_path[64];

static struct testing_chunks *fuzz_new(void)
{
	struct testing_chunks *chunks = calloc(1, sizeof(*chunks));
	int fd = memfd_create("good", MFD_CLOEXEC);

	assert(chunks && fd >= 0);
	(void)snprintf(fuzz_good_path, sizeof(fuzz_good_path), "/proc/self/fd/%d", fd); /* fits */
	/* Always the same operations: the inputs of the corpus are patches to them. */
	assert(setenv("TTMEM_SEED", "1", 1) == 0);
	testing_recording_make(fuzz_good_path, FUZZ_EVENTS);
	testing_chunks_read(chunks, fuzz_good_path);
	assert(testing_chunks_count(chunks, RECORDING_SITES) > 0);
	/* What commands print is not of interest; sanitizers write to the descriptor. */
	assert(freopen("/dev/null", "w", stdout));
	stderr = fopen("/dev/null", "we");
	assert(stderr);
	return chunks;
}

static void fuzz_run(size_t line, char *path)
{
	char text[128], *words[FUZZ_WORDS] = {NULL}, *rest = text;
	int count = 1;

	(void)snprintf(text, sizeof(text), "%s", fuzz_lines[line].words); /* fits */
	words[0] = text + sizeof(text) - 1; /* "": a command does not look at its name */
	for (char *word; (word = strsep(&rest, " ")); count++)
		words[count] = *word == '@' ? path : *word == '=' ? fuzz_good_path : word;
	(void)fuzz_lines[line].command->run(count, words); /* it may refuse */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct testing_chunks *good;
	char path[64];
	int fd;

	if (size == 0)
		return 0;
	if (!good)
		good = fuzz_new();
	fd = testing_hostile_new(good, data + 1, size - 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
	if (data[0])
		fuzz_run((data[0] - 1u) % ARRAY_SIZE(fuzz_lines), path);
	for (size_t i = 0; data[0] == 0 && i < ARRAY_SIZE(fuzz_lines); i++)
		fuzz_run(i, path);
	close(fd);
	return 0;
}
