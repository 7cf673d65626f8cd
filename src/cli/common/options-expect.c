/* SPDX-License-Identifier: Apache-2.0 */

/* Placeholders of options in words. One that is a choice ("size|age") becomes "size or age". */

#include "cli/common/options-expect.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "model/types.h"

static const struct {
	const char *placeholder, *words;
} options_words[] = {
	{"DEV|UID", "a device number such as 0, or a unique id such as 0x1f2e"},
	{"DEVICE", "a device number such as 0"},
	{"HOST[:PORT]", "a machine such as node7 or node7:9467"},
	{"LIMIT=SIZE", "a limit such as DRAM=4G, 0:L1=1M, phase:decode=2G or site:load=1G"},
	{"MS", "milliseconds, 1 or more"},
	{"N", "a number, 1 or more"},
	{"NEXT", "what \"next\" of an earlier page says"},
	{"PID", "a process id"},
	{"SIZE", "a size such as 512, 64K or 1.5GiB"},
	{"SIZE|PERCENT%", "a size such as 64M, or a percentage such as 5%"},
	{"URL", "an address such as http://host:9090"},
	{"WHEN", "a time such as 30min, 2h, 16:03, 2026-11-17 or ns since 1970"},
	{"[L1=]N", "a number of banks such as 12, or L1=64"},
};

/* Adds as much as fits. */
static void options_expect_add(char *text, size_t size, const char *word, size_t letters)
{
	size_t length = strlen(text);

	snprintf(text + length, size - length, "%.*s", (int)letters, word);
}

static void options_expect_choice(const char *choice, char *text, size_t size)
{
	for (const char *word = choice, *next; *word; word = next) {
		size_t letters = strcspn(word, "|");

		next = word + letters + (word[letters] == '|');
		options_expect_add(text, size, word, letters);
		if (*next)
			options_expect_add(text, size, strchr(next, '|') ? ", " : " or ", 4);
	}
}

const char *options_expect(const char *placeholder, char *ret_text, size_t size)
{
	*ret_text = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(options_words); i++) {
		if (strcmp(options_words[i].placeholder, placeholder) == 0) {
			snprintf(ret_text, size, "%s", options_words[i].words);
			return ret_text;
		}
	}
	if (islower((unsigned char)placeholder[0]))
		options_expect_choice(placeholder, ret_text, size);
	else
		snprintf(ret_text, size, "%s",
			 strcmp(placeholder, "TYPE") == 0 ? TYPES_ALL : placeholder);
	return ret_text;
}
