/* SPDX-License-Identifier: Apache-2.0 */

/* Options as they are written, mistakes and what is said of them. */

#include "cli/common/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/testing/testing-printed.h"
#include "model/query.h"

static bool all, quiet;
static const char *file, *mode;
static struct query query;
static uint32_t number;

static const struct options_item items[] = {
	{'a', "all", NULL, "show everything", &all, NULL},
	{'q', NULL, NULL, "say nothing", &quiet, NULL},
	{'o', "output", "FILE", "write there", &file, options_text},
	{0, "mode", "[=WORD]", "in a mode", &mode, options_text},
	{'p', "pid", "PID", "of a process"},
	{'n', "number", "N", "so many", &number, options_u32},
};

static struct options options = {
	.command = "try",
	.arguments = "NAME",
	.summary = "Tries it.",
	.items = items,
	.count = ARRAY_SIZE(items),
	.query = &query,
	.honours = QUERY_PID,
};

static char *words[16];
static int word_count, rest, result;

static void parse_words(void *context)
{
	(void)context;
	result = options_parse(&options, word_count, words, &rest);
}

/* Parses words that are separated by blanks. Return: what is said on stderr. */
static const char *parse(const char *line)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s", line);
	word_count = 0;
	words[word_count++] = (char *)(uintptr_t) "try"; /* only read */
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		words[word_count++] = word;
	words[word_count] = NULL;
	rest = -1;
	return testing_printed(STDERR_FILENO, parse_words, NULL);
}

UNIT(words_and_options_come_in_any_order)
{
	assert(strcmp(parse("one -a two --output=x=y --mode three -n 7"), "") == 0 && result == 0);
	assert(all && !quiet && strcmp(file, "x=y") == 0 && strcmp(mode, "") == 0 && number == 7);
	assert(rest == 3 && strcmp(words[0], "one") == 0 && strcmp(words[2], "three") == 0);
	assert(!words[3]);
	assert(strcmp(parse("--mode=fast -o - -q -"), "") == 0 && result == 0 && quiet);
	assert(strcmp(mode, "fast") == 0 && strcmp(file, "-") == 0);
	assert(rest == 1 && strcmp(words[0], "-") == 0);
	all = false;
	parse("-- -a --nothing");
	assert(result == 0 && !all && rest == 2 && strcmp(words[1], "--nothing") == 0);
	parse("");
	assert(result == 0 && rest == 0 && !words[0]);
}

UNIT(the_first_word_can_end_the_options)
{
	options.stop_at_first = true;
	parse("-q run -a --help");
	assert(result == 0 && quiet && !all && rest == 3 && strcmp(words[0], "run") == 0);
	assert(strcmp(words[2], "--help") == 0 && !words[3]);
}

UNIT(mistakes_are_told)
{
	static const struct {
		const char *line, *said;
	} mistakes[] = {
		{"--al", "unknown option \"--al\"; did you mean --all?"},
		{"--outptu", "unknown option \"--outptu\"; did you mean --output?"},
		{"--mode-two", "unknown option \"--mode-two\"; did you mean --mode?"},
		{"--something", "unknown option \"--something\"\n"},
		{"-x", "unknown option \"-x\"\n"},
		{"-al", "unknown option \"-al\"\n"},
		{"--all=yes", "--all takes no value, got \"yes\""},
		{"--output", "--output expects FILE, got nothing"},
		{"-n", "-n expects "},
		{"-n 0", ", got \"0\""},
		{"--pid=x", "--pid expects "},
		{"--pid=x", ", got \"x\""},
		{"--a\033b", "unknown option \"--a\\x1bb\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		const char *said = parse(mistakes[i].line);

		assert(result == -EINVAL && strncmp(said, "ttmem try: ", 11) == 0);
		if (!strstr(said, mistakes[i].said))
			fprintf(stderr, "%s: %s", mistakes[i].line, said);
		assert(strstr(said, mistakes[i].said));
		assert(strstr(said, "\nTry \"ttmem try --help\".\n"));
	}
	assert(options_exit(-EINVAL) == COMMAND_USAGE && options_exit(OPTIONS_HELP) == COMMAND_OK);
	assert(options_exit(0) == COMMAND_OK);
}

static void help(void *context)
{
	static char *words_of_help[] = {(char *)(uintptr_t) "try", NULL, NULL};

	words_of_help[1] = context;
	assert(options_parse(&options, 2, words_of_help, &rest) == OPTIONS_HELP);
}

UNIT(help_lists_the_table)
{
	char word[] = "--help", letter[] = "-h";
	const char *said = testing_printed(STDOUT_FILENO, help, word);

	assert(strncmp(said, "usage: ttmem try [OPTION]... NAME\n\nTries it.\n\n", 46) == 0);
	assert(strstr(said, "\n  -a, --all                      show everything\n"));
	assert(strstr(said, "\n  -q                             say nothing\n"));
	assert(strstr(said, "\n  -o, --output FILE              write there\n"));
	assert(strstr(said, "\n      --mode[=WORD]              in a mode\n"));
	assert(strstr(said, "\n      --help                     this text\n"));
	assert(!strstr(said, "--bytes"));
	options.shows_sizes = true;
	options.arguments = NULL;
	said = testing_printed(STDOUT_FILENO, help, letter);
	assert(strncmp(said, "usage: ttmem try [OPTION]...\n", 29) == 0);
	assert(strstr(said, "\n      --bytes                    sizes as plain numbers"));
}

UNIT(sizes_are_plain_numbers_where_they_are_shown)
{
	char size[TEXT_NUMBER_SIZE];

	assert(strstr(parse("--bytes"), "unknown option"));
	options.shows_sizes = true;
	assert(strcmp(text_size(2048, size), "2.0 KiB") == 0);
	parse("--bytes word");
	assert(result == 0 && rest == 1 && strcmp(text_size(2048, size), "2048") == 0);
}

static void only(void *context)
{
	(void)context;
	result = options_parse_only(&options, word_count, words);
}

static void count(void *context)
{
	assert(options_count(&options, "a name", *(int *)context) == -EINVAL);
}

UNIT(a_command_may_take_options_only)
{
	int n = 0;

	parse("-a word");
	words[0] = words[2] = (char *)(uintptr_t) "word";
	word_count = 2;
	words[1] = (char *)(uintptr_t) "other";
	words[2] = NULL;
	assert(strstr(testing_printed(STDERR_FILENO, only, NULL),
		      "takes only options, got \"other\""));
	assert(result == -EINVAL);
	word_count = 1;
	assert(strcmp(testing_printed(STDERR_FILENO, only, NULL), "") == 0 && result == 0);
	assert(strstr(testing_printed(STDERR_FILENO, count, &n), "expects a name, got nothing"));
	n = 1;
	assert(strstr(testing_printed(STDERR_FILENO, count, &n), "got 1 argument\n"));
	n = 2;
	assert(strstr(testing_printed(STDERR_FILENO, count, &n), "got 2 arguments\n"));
}

UNIT(values_have_their_limits)
{
	uint64_t size = 7;
	const uint64_t now = clock_ns(CLOCK_REALTIME);
	uint32_t value = 7;

	assert(options_u32(&value, "0") == -EINVAL && options_u32(&value, "4294967296") == -EINVAL);
	assert(options_u32(&value, "-1") == -EINVAL && value == 7);
	assert(options_u32(&value, "4294967295") == 0 && value == UINT32_MAX);
	assert(options_u32(&value, "1") == 0 && value == 1);
	assert(options_size(&size, "0") == -EINVAL && options_size(&size, "x") == -EINVAL);
	assert(size == 7 && options_size(&size, "2K") == 0 && size == 2048);
	assert(options_size(&size, "1") == 0 && size == 1);
	assert(options_since(&query, "1h") == 0 && query.since_ns >= now - 3600 * NS_PER_S);
	assert(query.since_ns <= clock_ns(CLOCK_REALTIME) - 3600 * NS_PER_S);
	assert(query.given & QUERY_SINCE);
}
