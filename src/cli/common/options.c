/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing options, --help and suggestions for misspelt ones. */

#include "cli/common/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "answers/answers.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/when.h"
#include "cli/common/command.h"
#include "cli/common/options-expect.h"
#include "model/query.h"

#define OPTIONS_EXPECTED 160 /* longest list of what an option expects */

int options_mistake(const char *command, const char *format, ...)
{
	char text[512], shown[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	text_escape(text, shown, sizeof(shown));
	fprintf(stderr, "ttmem %s: %s\nTry \"ttmem %s --help\".\n", command, shown, command);
	return -EINVAL;
}

/* Whether the argument may be left out. */
static bool options_is_optional(const struct options_item *item)
{
	return item->argument && strncmp(item->argument, "[=", 2) == 0;
}

static void options_help(const struct options *options)
{
	printf("usage: ttmem %s [OPTION]...%s%s\n\n%s\n\n", options->command,
	       options->arguments ? " " : "", options->arguments ? options->arguments : "",
	       options->summary);
	for (size_t i = 0; i < options->count; i++) {
		const struct options_item *item = &options->items[i];
		char left[64];

		snprintf(left, sizeof(left), "%c%c%s%s%s%s%s", item->letter ? '-' : ' ',
			 item->letter ? item->letter : ' ',
			 item->letter && item->name ? ", " : "  ", item->name ? "--" : "",
			 item->name ? item->name : "",
			 item->argument && !options_is_optional(item) ? " " : "",
			 item->argument ? item->argument : "");
		printf("  %-30s %s\n", left, item->help);
	}
	if (options->shows_sizes)
		printf("  %-30s %s\n", "    --bytes", "sizes as plain numbers of bytes");
	printf("  %-30s %s\n", "    --help", "this text");
}

static const struct options_item *options_find(const struct options *options, const char *word,
					       size_t length)
{
	for (size_t i = 0; i < options->count; i++) {
		const struct options_item *item = &options->items[i];

		if (word[1] != '-' && length == 2 && item->letter == word[1])
			return item;
		if (word[1] == '-' && item->name && strlen(item->name) == length - 2 &&
		    memcmp(item->name, word + 2, length - 2) == 0)
			return item;
	}
	return NULL;
}

static int options_unknown(const struct options *options, const char *word)
{
	const char *best = NULL;
	size_t distance = 3; /* more is not a typing mistake */

	for (size_t i = 0; i < options->count; i++) {
		const char *name = options->items[i].name;
		size_t d = name && word[1] == '-' ? text_distance(word + 2, name) : distance;

		/* What was a second form of it, such as --metal-shim. */
		if (name && d >= distance && strncmp(word + 2, name, strlen(name)) == 0 &&
		    word[2 + strlen(name)] == '-')
			d = 0;
		if (d < distance) {
			distance = d;
			best = name;
		}
	}
	if (best)
		return options_mistake(options->command,
				       "unknown option \"%s\"; did you mean --%s?", word, best);
	return options_mistake(options->command, "unknown option \"%s\"", word);
}

/* Reports a value that is not what the option expects; @text is NULL if there is none. */
static int options_wrong(const struct options *options, const struct options_item *item,
			 const char *word, size_t length, const char *text)
{
	char expected[OPTIONS_EXPECTED];

	options_expect(item->argument, expected, sizeof(expected));
	if (!text)
		return options_mistake(options->command, "%.*s expects %s, got nothing",
				       (int)length, word, expected);
	return options_mistake(options->command, "%.*s expects %s, got \"%s\"", (int)length, word,
			       expected, text);
}

/* The field of the query that the option sets. An answer must honour it, else it would be read by nobody. */
static const struct query_rule *options_field(const struct options *options,
					      const struct options_item *item)
{
	const struct answer *answer = options->answer;

	return query_find(item->name,
			  answer ? answer->honours | answer->options : options->honours);
}

/* Whether the placeholder, if it is a choice, has the word: not every answer knows all that a field may be. */
static bool options_offers(const char *placeholder, const char *text)
{
	size_t length = strlen(text);

	for (const char *word = placeholder, *end; *word; word = *end ? end + 1 : end) {
		end = strchrnul(word, '|');
		if ((size_t)(end - word) == length && memcmp(word, text, length) == 0)
			return true;
	}
	return placeholder[0] < 'a' || placeholder[0] > 'z';
}

static int options_set(const struct options *options, const struct options_item *item,
		       const char *text)
{
	if (item->parse)
		return item->parse(item->target, text);
	return options_offers(item->argument, text)
		       ? query_set(options->query, options_field(options, item), text)
		       : -EINVAL;
}

/* Parses one option. @next: the word after it, NULL if none. Return: words consumed, or -EINVAL. */
static int options_one(const struct options *options, const char *word, const char *next)
{
	const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	const struct options_item *item = options_find(options, word, length);
	const char *text = equals ? equals + 1 : next;

	if (!item)
		return options_unknown(options, word);
	if (!item->argument) {
		if (equals)
			return options_mistake(options->command, "--%s takes no value, got \"%s\"",
					       item->name, equals + 1);
		*(bool *)item->target = true;
		return 1;
	}
	if (options_is_optional(item) && !equals)
		return item->parse(item->target, "") < 0 ? -EINVAL : 1;
	if (!text)
		return options_wrong(options, item, word, length, NULL);
	if (options_set(options, item, text) < 0)
		return options_wrong(options, item, word, length, text);
	return equals ? 1 : 2;
}

static void options_check(const struct options *options)
{
	for (size_t i = 0; i < options->count; i++)
		assert(!options->items[i].argument || options->items[i].parse ||
		       options_field(options, &options->items[i]));
}

int options_parse(const struct options *options, int argc, char **argv, int *ret_count)
{
	int count = 0, i = 1;

	options_check(options);
	while (i < argc) {
		char *word = argv[i];
		int r;

		if (strcmp(word, "--") == 0) {
			i++;
			break;
		}
		if (word[0] != '-' || !word[1]) {
			if (options->stop_at_first)
				break;
			argv[count++] = word;
			i++;
			continue;
		}
		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
			options_help(options);
			return OPTIONS_HELP;
		}
		if (options->shows_sizes && strcmp(word, "--bytes") == 0) {
			text_show_bytes();
			i++;
			continue;
		}
		r = options_one(options, word, i + 1 < argc ? argv[i + 1] : NULL);
		if (r < 0)
			return r;
		i += r;
	}
	while (i < argc)
		argv[count++] = argv[i++];
	argv[count] = NULL;
	*ret_count = count;
	return 0;
}

int options_parse_only(const struct options *options, int argc, char **argv)
{
	int count, r = options_parse(options, argc, argv, &count);

	if (r == 0 && count > 0)
		r = options_mistake(options->command, "takes only options, got \"%s\"", argv[0]);
	return r;
}

int options_count(const struct options *options, const char *expected, int count)
{
	if (count == 0)
		return options_mistake(options->command, "expects %s, got nothing", expected);
	return options_mistake(options->command, "expects %s, got %d argument%s", expected, count,
			       count == 1 ? "" : "s");
}

int options_exit(int result)
{
	return result < 0 ? COMMAND_USAGE : COMMAND_OK;
}

int options_size(void *target, const char *text)
{
	uint64_t size;
	int r = text_parse_size(text, &size);

	if (r < 0 || size == 0)
		return -EINVAL;
	*(uint64_t *)target = size;
	return 0;
}

int options_text(void *target, const char *text)
{
	*(const char **)target = text;
	return 0;
}

int options_u32(void *target, const char *text)
{
	uint64_t value;

	if (text_parse_u64(text, &value) < 0 || value == 0 || value > UINT32_MAX)
		return -EINVAL;
	*(uint32_t *)target = (uint32_t)value;
	return 0;
}

int options_since(void *query, const char *text)
{
	struct query *self = query;

	self->given |= QUERY_SINCE;
	return when_since(text, clock_ns(CLOCK_REALTIME), &self->since_ns);
}
