/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The recording is written event by event: two processes on two chips, of which one was killed, with a double
 * free, a failed allocation and a mark.
 */

#include "cli/testing/testing-commands.h"

#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "cli/common/command.h"
#include "cli/common/testing/testing-printed.h"
#include "model/types.h"
#include "recording/testing/testing-recorder.h"

#define KIB UINT64_C(1024)
#define MIB UINT64_C(1048576)
#define BOOKS 2u
#define DEVICES 2u

struct story {
	struct testing_recorder recorder;
	struct testing_book books[BOOKS];
	struct testing_recorded recorded[BOOKS];
};

static void declare(struct writer *writer)
{
	struct writer_device device = {
		.arch = "wormhole_b0",
		.card = "n300",
		.memory[TYPES_DRAM] = {.capacity = 96 * MIB,
				       .bank_base = 4 * KIB,
				       .bank_size = 8 * MIB,
				       .banks = 12,
				       .alignment = 32},
		.memory[TYPES_L1] = {.capacity = 64 * MIB,
				     .bank_base = 64 * KIB,
				     .bank_size = MIB,
				     .banks = 64,
				     .alignment = 16},
	};

	for (uint32_t i = 0; i < DEVICES; i++) {
		device.unique_id = 0xaa00 + i;
		device.remote = i;
		writer_declare(writer, i, &device);
	}
}

static uint32_t intern(struct writer *writer, const char *text)
{
	return intern_string(writer, text, 100);
}

/* A line of a function of the model, called by the main program. */
static uint32_t stack(struct writer *writer, const char *function, uint32_t line)
{
	const struct book_frame frames[] = {
		{.value =
			 (uint64_t)intern(writer, function) << 32 | intern(writer, "/app/model.py"),
		 .module = line,
		 .flags = BOOK_FRAME_PYTHON},
		{.value = (uint64_t)intern(writer, "main") << 32 | intern(writer, "/app/run.py"),
		 .module = 7,
		 .flags = BOOK_FRAME_PYTHON},
	};

	return intern_stack(writer, frames, ARRAY_SIZE(frames));
}

struct made {
	uint32_t device, type;
	uint64_t address, per_bank, banks;
	const char *name, *phase, *function;
	uint32_t line;
};

static struct shard_buffer buffer_of(struct writer *writer, const struct made *made)
{
	const struct book_shape shape = {.size_per_bank = made->per_bank,
					 .banks = (uint32_t)made->banks,
					 .flags = BOOK_SHAPE_INTERLEAVED};

	return (struct shard_buffer){
		.address = made->address,
		.size = made->per_bank * made->banks,
		.type = made->type,
		.name = intern(writer, made->name),
		.phase = intern(writer, made->phase),
		.thread = 11,
		.stack = made->function ? stack(writer, made->function, made->line) : 0,
		.shape = intern_shape(writer, &shape),
	};
}

static void make(struct writer *writer, const struct made *made)
{
	const struct shard_buffer buffer = buffer_of(writer, made);

	writer_alloc(writer, made->device, &buffer, 0);
}

static void drop(struct writer *writer, const struct made *made)
{
	const struct shard_buffer buffer = buffer_of(writer, made);

	writer_free_buffer(writer, made->device, &buffer);
}

/* A model is loaded, one cache takes the place of another, which is freed twice, and a large one does not fit. */
static void run(struct writer *writer)
{
	static const struct made weights[] = {
		{0, TYPES_DRAM, 0x1000, 64 * KIB, 12, "weights", "load", "load", 12},
		{0, TYPES_DRAM, 0x11000, 64 * KIB, 12, "weights", "load", "load", 12},
		{1, TYPES_DRAM, 0x1000, 32 * KIB, 12, "weights", "load", "load", 13},
		{0, TYPES_L1, 0x10000, 2 * KIB, 64, NULL, "load", "shard", 20},
	};
	static const struct made old = {0,      TYPES_DRAM, 0x201000, MIB, 12,
					"kv.0", "decode",   "step",   30};
	static const struct made new = {0,      TYPES_DRAM, 0x301000, 2 * MIB, 12,
					"kv.1", "decode",   "step",   31};
	static const struct made large = {0,       TYPES_DRAM, 0,      9 * MIB, 12,
					  "large", "decode",   "grow", 40};
	const struct writer_lack lack = {.largest_free = MIB,
					 .size_per_bank = 9 * MIB,
					 .bank_size = 8 * MIB,
					 .bank_free = 5 * MIB,
					 .banks = 12};
	const struct shard_buffer failed = buffer_of(writer, &large);

	declare(writer);
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		make(writer, &weights[i]);
	make(writer, &old);
	writer_mark(writer, intern(writer, "step 1"), 11, 0);
	drop(writer, &old);
	make(writer, &new);
	drop(writer, &old);
	writer_failed(writer, 0, &failed, &lack);
	drop(writer, &weights[1]);
}

/* Somebody else on the first chip, without names. */
static void run_other(struct writer *writer)
{
	static const struct made made = {0, TYPES_DRAM, 0x401000, 4 * KIB, 12, NULL, NULL, NULL, 0};

	declare(writer);
	make(writer, &made);
}

/* A buffer that is gone at the end. */
static void run_shortly(struct writer *writer)
{
	static const struct made made = {0,       TYPES_DRAM, 0x1000, 4 * KIB, 12,
					 "short", "load",     NULL,   0};

	declare(writer);
	make(writer, &made);
	drop(writer, &made);
}

static void record(const char *path, void (*const runs[BOOKS])(struct writer *writer))
{
	struct story *story = calloc(1, sizeof(*story));

	assert(story);
	testing_recorder_open(&story->recorder, path);
	for (uint32_t i = 0; i < BOOKS; i++) {
		testing_book_open(&story->books[i]);
		testing_recorded_init(&story->recorded[i], &story->recorder, &story->books[i],
				      100 + i);
	}
	for (uint32_t i = 0; i < BOOKS; i++) {
		runs[i](story->books[i].writer);
		testing_recorded_bytes(&story->recorded[i]);
		for (uint32_t device = 0; device < DEVICES; device++)
			testing_recorded_events(&story->recorded[i], device, RECORDING_EVENTS_MAX);
	}
	testing_recorded_ended(&story->recorded[1], 9);
	testing_recorder_end(&story->recorder);
	for (uint32_t i = 0; i < BOOKS; i++) {
		testing_recorded_deinit(&story->recorded[i]);
		testing_book_deinit(&story->books[i]);
	}
	testing_recorder_deinit(&story->recorder);
	free(story);
}

/* Replaces every match of what is longer than @by. */
static void settle(char *text, const char *pattern, const char *by)
{
	regmatch_t match;
	regex_t regex;

	assert(regcomp(&regex, pattern, REG_EXTENDED) == 0);
	while (regexec(&regex, text, 1, &match, 0) == 0) {
		const char *rest = text + match.rm_eo;

		text += match.rm_so;
		assert(text + strlen(by) < rest);
		memcpy(text, by, strlen(by));
		text += strlen(by);
		memmove(text, rest, strlen(rest) + 1);
	}
	regfree(&regex);
}

/* What differs from run to run: times, dates, the version. */
static void settle_all(char *text)
{
	static const char *const patterns[][2] = {
		{" +[0-9]+(\\.[0-9]+)? (ns|us|ms|s|min|h)\\>( ago)?", " T"},
		/* Their columns are as wide as the longest. */
		{"  +AGE\\>", " AGE"},
		{"  +OLDEST\\>", " OLDEST"},
		{"  +AT\\>", " AT"},
		{"ENDED  +", "ENDED "},
		{"[0-9]{2}:[0-9]{2}:[0-9]{2}", "T"},
		{"[0-9]{4}-[0-9]{2}-[0-9]{2}", "D"},
		{"\"[a-z_]*(ns|stamp|ticks|time|age)\": ?[0-9]{2,}", "T"},
		{"[0-9]{13,}", "T"},
		{",T,[0-9]{3,}", ",T,T"},
		{"DT?T\\.[0-9]+", "D"},
		{"ttmem [0-9.]+ +", "ttmem V "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		settle(text, patterns[i][0], patterns[i][1]);
}

static const struct command *const commands[] = {
	&smi_command,       &ps_command,      &buffers_command, &map_command,
	&fit_command,       &history_command, &growth_command,  &peak_command,
	&incidents_command, &leaks_command,   &check_command,   &diff_command,
	&replay_command,    &export_command,  &report_command,  &open_command,
};

struct call {
	const char *words;
	int code;
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	abort();
}

/* In a child: some options are global. */
static void call(void *context)
{
	struct call *call = context;
	pid_t pid = fork();
	int status;

	assert(pid >= 0);
	if (pid == 0) {
		char words[256], *argv[32], *rest = words;
		int argc = 0, code;

		snprintf(words, sizeof(words), "%s", call->words);
		while ((argv[argc] = strsep(&rest, " ")))
			argc++;
		code = find(argv[0])->run(argc, argv);
		(void)fflush(NULL); /* what is missing shows */
		_exit(code);
	}
	assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	call->code = WEXITSTATUS(status);
}

static void expect(const char *words, const char *stream, char *printed, const char *expected)
{
	settle_all(printed);
	if (strcmp(printed, expected) != 0)
		fprintf(stderr, "ttmem %s prints to %s:\n%s<<<\n", words, stream, printed);
	assert(strcmp(printed, expected) == 0);
}

static void (*const story[BOOKS])(struct writer *) = {run, run_other};
static void (*const shortly[BOOKS])(struct writer *) = {run_shortly, run_shortly};

void testing_command(const char *words, int code, const char *out, const char *error)
{
	struct call one = {.words = words};
	char printed[65536];
	ssize_t length;
	int file;

	/* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread */
	assert(setenv("LC_ALL", "C.UTF-8", 1) == 0 && unsetenv("COLUMNS") == 0);
	/* NOLINTEND(concurrency-mt-unsafe) */
	assert(chdir(unit_dir()) == 0);
	if (access("story.ttrec", F_OK) < 0) {
		record("story.ttrec", story);
		record("short.ttrec", shortly);
	}
	snprintf(printed, sizeof(printed), "%s", testing_printed(STDOUT_FILENO, call, &one));
	expect(words, "stdout", printed, out);
	file = open("printed-error", O_RDONLY | O_CLOEXEC);
	length = read(file, printed, sizeof(printed) - 1);
	assert(length >= 0 && close(file) == 0);
	printed[length] = '\0';
	expect(words, "stderr", printed, error);
	if (one.code != code)
		fprintf(stderr, "ttmem %s ends with %d\n", words, one.code);
	assert(one.code == code);
}
