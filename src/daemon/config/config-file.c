/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The text of a configuration file: "key = value" lines, empty lines and comments. A comment needs
 * a line of its own, because a command may contain a "#".
 */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"

/* The position in the file, for messages. */
struct place {
	const char *name;
	size_t line;
	FILE *errors;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct place *place,
						       const char *format, ...)
{
	char text[512], shown[1024];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments); /* long values are truncated */
	va_end(arguments);
	text_escape(text, shown, sizeof(shown));
	fprintf(place->errors, "ttmemd: %s:%zu: %s\n", place->name, place->line, shown);
	return CONFIG_WRONG;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Removes blanks at both ends of @text, in place. */
static char *trim(char *text)
{
	size_t length;

	while (is_blank(*text))
		text++;
	length = strlen(text);
	while (length > 0 && is_blank(text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

/* @seen: one bit per setting that has been set. */
static int parse_line(struct config *config, const struct place *place, char *line, uint32_t *seen)
{
	const struct config_key *key, *guess;
	char *equals, *name, *value;
	uint32_t bit;
	int r;

	line = trim(line);
	if (!*line || *line == '#')
		return 0;
	equals = strchr(line, '=');
	if (!equals)
		return wrong(place, "expects key = value, got \"%s\"", line);
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);

	key = config_keys_find(name, strlen(name));
	if (!key) {
		guess = config_keys_guess(name);
		return guess ? wrong(place, "unknown key \"%s\"; did you mean %s?", name,
				     guess->name)
			     : wrong(place, "unknown key \"%s\"", name);
	}
	bit = UINT32_C(1) << (key - config_keys);
	if (*seen & bit)
		return wrong(place, "%s is set a second time", key->name);
	*seen |= bit;
	r = config_keys_set(config, key, value);
	return r == CONFIG_WRONG
		       ? wrong(place, "%s expects %s, got \"%s\"", key->name, key->expects, value)
		       : r;
}

/**
 * config_parse_text() - parse the text of a file
 * @config: initialized by config_init()
 * @name: name of the file, for messages
 * @text: arbitrary bytes
 * @length: of @text
 * @errors: where an error is reported
 *
 * Stops at the first error; the settings before it stay set.
 *
 * Return: 0, CONFIG_WRONG, or -ENOMEM.
 */
int config_parse_text(struct config *config, const char *name, const char *text, size_t length,
		      FILE *errors)
{
	struct place place = {.name = name, .errors = errors};
	CLEANUP_FREE char *copy = NULL;
	uint32_t seen = 0;

	if (length > CONFIG_BYTES_MAX) {
		fprintf(errors, "ttmemd: %s: longer than %u bytes\n", name, CONFIG_BYTES_MAX);
		return CONFIG_WRONG;
	}
	copy = malloc(length + 1);
	if (!copy)
		return -ENOMEM;
	if (length)
		memcpy(copy, text, length);
	copy[length] = '\n'; /* the last line may lack one */

	for (char *line = copy; line <= copy + length;) {
		char *end = memchr(line, '\n', (size_t)(copy + length - line) + 1);
		int r;

		place.line++;
		*end = '\0';
		if (strlen(line) != (size_t)(end - line))
			return wrong(&place, "there is a NUL byte");
		r = parse_line(config, &place, line, &seen);
		if (r != 0)
			return r;
		line = end + 1;
	}
	return 0;
}
