/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is masked. A name is a run of letters, digits, "-" and "_"; it is secret if one of its parts
 * ends in one of the words below ("--api-key", "HF_TOKEN", "dbPassword", but not "tokenizer" or
 * "--max-tokens"). After a secret name everything up to the end of the word is masked, and if nothing
 * follows the name, the next word. The user and password of a URL are masked as well. Rather too much
 * is masked than too little.
 */

#include "source/proc/command-line.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/emit.h"
#include "base/files/small-file.h"
#include "source/proc/proc.h"

static const char command_line_stars[] = "***";

static bool command_line_is_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* Whether the part of a name that ends before @end, and began at @start, ends in a secret word. */
static bool command_line_is_secret_part(const char *start, const char *end)
{
	static const char *const secret[] = {
		"token",      "password",    "passwd",        "passphrase", "secret", "secrets",
		"credential", "credentials", "authorization", "bearer",     "key",    "pwd",
	};
	size_t length = (size_t)(end - start);

	for (size_t i = 0; i < ARRAY_SIZE(secret); i++) {
		size_t n = strlen(secret[i]);

		if (length >= n && strncasecmp(end - n, secret[i], n) == 0)
			return true;
	}
	return length == 4 && strncasecmp(start, "pass", 4) == 0;
}

/* Parts are separated by "-", "_", digits, and capitals after small letters. */
static bool command_line_is_secret(const char *name, size_t length)
{
	const char *start = name;

	for (size_t i = 0; i <= length; i++) {
		bool ends = i == length || !isalpha((unsigned char)name[i]);
		bool turns = !ends && i > 0 && isupper((unsigned char)name[i]) &&
			     islower((unsigned char)name[i - 1]);

		if (!ends && !turns)
			continue;
		if (command_line_is_secret_part(start, name + i))
			return true;
		start = name + i + (ends ? 1 : 0);
	}
	return false;
}

/* Length of "user:password" where @text follows the "://" of a URL; 0 = it has none. */
static size_t command_line_userinfo(const char *text)
{
	size_t n = strcspn(text, "/?# \t\n\"'");
	const char *at = memrchr(text, '@', n);

	return at ? (size_t)(at - text) : 0;
}

static void command_line_put(struct command_line *line, const char *bytes, size_t length)
{
	size_t room = sizeof(line->words) - 1 - line->length; /* one for the last NUL */

	if (length > room)
		line->is_cut = true;
	length = bits_min(length, room);
	memcpy(line->words + line->length, bytes, length);
	line->length += length;
}

/* Puts one word. Returns whether the next one is a secret. */
static bool command_line_put_word(struct command_line *line, const char *word)
{
	const char *at = word;
	bool next = false;

	while (*at) {
		size_t n = 0;

		while (command_line_is_name(at[n]))
			n++;
		if (n == 0) {
			n = strncmp(at, "://", 3) == 0 ? 3 : 1;
			command_line_put(line, at, n);
			at += n;
			n = n == 3 ? command_line_userinfo(at) : 0;
			if (n > 0)
				command_line_put(line, command_line_stars, 3);
			at += n;
			continue;
		}
		command_line_put(line, at, n);
		next = command_line_is_secret(at, n);
		at += n;
		/* Parts of paths and of file names are no names of values. */
		if (next && *at && !strchr("./,", *at)) {
			command_line_put(line, at, 1);
			if (at[1])
				command_line_put(line, command_line_stars, 3);
			return !at[1];
		}
	}
	return next && !strchr(word, '/');
}

void command_line_mask(const char *bytes, size_t length, struct command_line *ret_line)
{
	char text[COMMAND_LINE_READ_MAX + 1];
	bool is_secret = false;
	size_t end;

	*ret_line = (struct command_line){.is_cut = length > COMMAND_LINE_READ_MAX};
	length = bits_min(length, COMMAND_LINE_READ_MAX);
	memcpy(text, bytes, length);
	text[length] = '\0';
	for (size_t i = 0; i < length; i = end + 1) {
		end = i + strlen(text + i);
		if (ret_line->length >= sizeof(ret_line->words) - 1) {
			ret_line->is_cut = true;
			return;
		}
		if (is_secret) {
			command_line_put(ret_line, command_line_stars, 3);
			is_secret = false;
		} else {
			is_secret = command_line_put_word(ret_line, text + i);
		}
		ret_line->words[ret_line->length++] = '\0';
	}
}

int command_line_read(const struct proc *proc, struct process_id id, struct command_line *ret_line)
{
	char path[32], text[COMMAND_LINE_READ_MAX + 2];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/cmdline", id.pid); /* fits */
	n = small_file_read(proc->root, path, text, sizeof(text));
	/* Looked at afterwards: then it was this process when the file was read. */
	if (!proc_is_there(proc, id))
		return -ESRCH;
	if (n < 0)
		return (int)n;
	command_line_mask(text, (size_t)n, ret_line);
	return 0;
}

const char *command_line_next(const struct command_line *line, const char *word)
{
	const char *next = word ? word + strlen(word) + 1 : line->words;

	return next < line->words + line->length ? next : NULL;
}

void command_line_emit(const struct command_line *line, struct emit *json)
{
	emit_open_array(json, "command");
	for (const char *word = NULL; (word = command_line_next(line, word));)
		emit_string(json, NULL, word);
	emit_close_array(json);
}
