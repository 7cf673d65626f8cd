/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets on command lines are masked, and everything else is not. */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "source/proc/command-line.h"
#include "source/proc/proc.h"

/* Whether @before, words separated by "|", becomes @after. */
static bool becomes(const char *before, const char *after)
{
	struct command_line line;
	char text[COMMAND_LINE_SIZE + 1] = "", bytes[256];
	size_t length = strlen(before), used = 0;
	const char *word = NULL;

	assert(length < sizeof(bytes));
	for (size_t i = 0; i <= length; i++)
		bytes[i] = (char)(before[i] == '|' ? '\0' : before[i]);
	command_line_mask(bytes, length, &line);
	while ((word = command_line_next(&line, word))) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 word == line.words ? "" : "|", word);
		assert(used < sizeof(text));
	}
	return strcmp(text, after) == 0 && !line.is_cut;
}

UNIT(values_after_secret_options_are_masked)
{
	assert(becomes("python3|serve.py|--token|hunter2|--port|80",
		       "python3|serve.py|--token|***|--port|80"));
	assert(becomes("a|--password|-x", "a|--password|***"));
	assert(becomes("a|--hf-token=abc|b", "a|--hf-token=***|b"));
	assert(becomes("a|--api_key=abc", "a|--api_key=***"));
	assert(becomes("a|--secret=", "a|--secret="));
	assert(becomes("key=abc|b", "key=***|b"));
	assert(becomes("env|HF_TOKEN=abc|DB_PASSWORD=d|x", "env|HF_TOKEN=***|DB_PASSWORD=***|x"));
	assert(becomes("a|--env=AUTHTOKEN=abc", "a|--env=AUTHTOKEN=***"));
	assert(becomes("a|--dbPassword=abc|--PASSWD|d", "a|--dbPassword=***|--PASSWD|***"));
	assert(becomes("a|--token|x|--secret", "a|--token|***|--secret"));
	assert(becomes("a|-pass|b", "a|-pass|***"));
}

UNIT(secrets_inside_of_words_are_masked)
{
	assert(becomes("sh|-c|run --token abc --x y", "sh|-c|run --token ***"));
	assert(becomes("curl|-H|Authorization: Bearer abc", "curl|-H|Authorization:***"));
	assert(becomes("a|{\"password\": \"b\"}", "a|{\"password\"***"));
	assert(becomes("a|https://h/?q=1&token=abc", "a|https://h/?q=1&token=***"));
	assert(becomes("a|postgres://me:pw@host/db", "a|postgres://***@host/db"));
	assert(becomes("a|redis://:p@w@host:1", "a|redis://***@host:1"));
	assert(becomes("a|https://host/a@b", "a|https://host/a@b"));
	/* A title that the program has set is one word. */
	assert(becomes("worker --password x", "worker --password ***"));
}

UNIT(other_words_stay)
{
	static const char *const lines[] = {
		"python3|train.py|--tokenizer|/models/tokenizer.json|--max-tokens|128",
		"a|/run/secrets/token|b",
		"a|token.txt|b",
		"a|--keys-are-not|--compass|north",
		"a|--bypass|x|--keyboard=us",
		"",
		"a||b",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert(becomes(lines[i], lines[i]));
}

UNIT(long_lines_are_cut)
{
	static char bytes[3 * COMMAND_LINE_READ_MAX];
	static const char masked[] = "key=1";
	struct command_line line;
	size_t words = 0;

	memset(bytes, 'x', sizeof(bytes));
	command_line_mask(bytes, sizeof(bytes), &line);
	assert(line.is_cut && line.length == COMMAND_LINE_READ_MAX + 1);
	assert(strlen(line.words) == COMMAND_LINE_READ_MAX);
	/* Masked words are longer than they were. */
	for (size_t i = 0; i + sizeof(masked) <= COMMAND_LINE_READ_MAX; i += sizeof(masked))
		memcpy(bytes + i, masked, sizeof(masked));
	command_line_mask(bytes, COMMAND_LINE_READ_MAX, &line);
	assert(line.length <= sizeof(line.words));
	for (const char *word = NULL; (word = command_line_next(&line, word)); words++)
		assert(!strstr(word, "=1"));
	assert(words >= COMMAND_LINE_READ_MAX / 6);
}

UNIT(one_reads_the_process_that_is_meant)
{
	struct command_line line;
	struct proc proc;
	struct process_id id = {.pid = (uint32_t)getpid()};

	assert(proc_open(&proc) == 0);
	id.start_ticks = proc_start_ticks(&proc, id.pid);
	assert(command_line_read(&proc, id, &line) == 0);
	assert(strstr(line.words, "command-line-test"));
	/* The pid of another process that has ended. */
	id.start_ticks++;
	assert(command_line_read(&proc, id, &line) == -ESRCH);
	id = (struct process_id){UINT32_C(0x7ffffffe), id.start_ticks - 1};
	assert(command_line_read(&proc, id, &line) == -ESRCH);
	proc_close(&proc);
}
