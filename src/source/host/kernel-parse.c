/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses /proc/driver/ttmem/totals. Names in it are chosen by processes; the rest comes from the
 * kernel.
 */

#include <errno.h>
#include <string.h>

#include "model/snapshot.h"
#include "source/host/kernel.h"

#define KERNEL_NAME "ttmem"
#define KERNEL_VERSION 1u

/* The rest of a line, consumed word by word. */
struct kernel_line {
	const char *at, *end;
};

/* The next word; length 0 at the end of the line. */
static size_t kernel_word(struct kernel_line *line, const char **ret_word)
{
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	*ret_word = line->at;
	while (line->at < line->end && *line->at != ' ')
		line->at++;
	return (size_t)(line->at - *ret_word);
}

static bool kernel_word_is(struct kernel_line *line, const char *text)
{
	const char *word;
	size_t length = kernel_word(line, &word);

	return length == strlen(text) && memcmp(word, text, length) == 0;
}

/* Digits and nothing else, up to @max. */
static bool kernel_number(struct kernel_line *line, uint64_t max, uint64_t *ret_number)
{
	const char *word;
	size_t length = kernel_word(line, &word);
	uint64_t number = 0;

	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		uint64_t digit = (uint64_t)word[i] - '0';

		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return number <= max;
}

/* The text is not terminated, so only these three are read. */
static bool kernel_is_octal(const char *digits)
{
	for (size_t i = 0; i < 3; i++) {
		if (digits[i] < '0' || digits[i] > '7')
			return false;
	}
	return true;
}

/* Unprintable characters come as a backslash and three octal digits. */
static void kernel_comm(struct kernel_line *line, char ret_comm[KERNEL_COMM_SIZE])
{
	const char *word;
	size_t length = kernel_word(line, &word);
	size_t n = 0;

	for (size_t i = 0; i < length && n < KERNEL_COMM_SIZE - 1; i++) {
		const char *digits = word + i + 1;

		if (word[i] == '\\' && length - i > 3 && kernel_is_octal(digits)) {
			ret_comm[n++] = (char)((digits[0] - '0') << 6 | (digits[1] - '0') << 3 |
					       (digits[2] - '0'));
			i += 3;
		} else {
			ret_comm[n++] = word[i];
		}
	}
	ret_comm[n] = '\0';
}

static int kernel_parse_holder(struct kernel_line *line, const struct kernel_parser *parser)
{
	struct kernel_holder holder = {0};
	uint64_t device, pid, uid;
	const char *kind;
	size_t length;

	if (!kernel_number(line, UINT64_MAX, &holder.book.inode))
		return -EBADMSG;
	length = kernel_word(line, &kind);
	holder.is_book = length == 4 && memcmp(kind, "book", 4) == 0;
	if (!kernel_number(line, UINT32_MAX, &device) || !kernel_number(line, INT32_MAX, &pid) ||
	    !kernel_number(line, UINT32_MAX, &uid))
		return -EBADMSG;
	holder.book.device = (dev_t)device;
	holder.pid = (uint32_t)pid;
	holder.uid = (uint32_t)uid;
	kernel_comm(line, holder.comm);
	holder.is_gone = kernel_word_is(line, "gone");
	return parser->holder(parser->context, &holder);
}

static int kernel_parse_memory(struct kernel_line *line, const struct kernel_parser *parser)
{
	struct snapshot_memory memory = {0};
	uint64_t device, type, bound;

	if (!kernel_number(line, BOOK_DEVICES - 1, &device) ||
	    !kernel_number(line, BOOK_TYPES - 1, &type) ||
	    !kernel_number(line, UINT64_MAX, &memory.used) ||
	    !kernel_number(line, UINT64_MAX, &memory.buffers) ||
	    !kernel_number(line, UINT64_MAX, &memory.peak) ||
	    !kernel_number(line, UINT64_MAX, &memory.allocs) ||
	    !kernel_number(line, UINT64_MAX, &memory.frees) ||
	    !kernel_number(line, SNAPSHOT_AT_MOST, &bound))
		return -EBADMSG;
	memory.bound = (uint32_t)bound;
	return parser->memory(parser->context, (uint32_t)device, (uint32_t)type, &memory,
			      kernel_word_is(line, "torn"));
}

/* The first line. Later versions are those that a reader of this one would misread. */
static int kernel_parse_version(struct kernel_line *line)
{
	uint64_t version;

	if (!kernel_word_is(line, KERNEL_NAME) || !kernel_number(line, UINT64_MAX, &version) ||
	    line->at != line->end || version == 0)
		return -EBADMSG;
	return version > KERNEL_VERSION ? -EPROTONOSUPPORT : 0;
}

/* Parses one line, without its newline. */
static int kernel_parse_line(struct kernel_text *state, struct kernel_line line,
			     const struct kernel_parser *parser)
{
	struct kernel_line again = line;

	if (!state->has_version) {
		state->has_version = true;
		return kernel_parse_version(&line);
	}
	if (kernel_word_is(&line, "holder")) {
		state->has_holder = true;
		return kernel_parse_holder(&line, parser);
	}
	if (kernel_word_is(&again, "memory"))
		return state->has_holder ? kernel_parse_memory(&again, parser) : -EBADMSG;
	return 0;
}

int kernel_parse_more(struct kernel_text *state, const char *text, size_t length,
		      const struct kernel_parser *parser, size_t *ret_used)
{
	const char *at = text, *end = text + length, *newline;
	int r = 0;

	while (r == 0 && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		r = kernel_parse_line(state, (struct kernel_line){.at = at, .end = newline},
				      parser);
		at = newline + 1;
	}
	if (r == 0)
		*ret_used = (size_t)(at - text);
	return r;
}

bool kernel_parse_share(const char *text, size_t length, struct kernel_share *ret_share)
{
	struct kernel_line line = {.at = text, .end = text + length};
	struct kernel_line again = line;
	struct kernel_share share = {.user_limit = ret_share->user_limit};
	uint64_t uid, count;

	if (kernel_word_is(&line, "user")) {
		if (!kernel_number(&line, UINT32_MAX, &uid) || !kernel_word_is(&line, "books") ||
		    !kernel_number(&line, UINT64_MAX, &count) ||
		    !kernel_word_is(&line, "clients") ||
		    !kernel_number(&line, UINT64_MAX, &count) || !kernel_word_is(&line, "bytes") ||
		    !kernel_number(&line, UINT64_MAX, &share.bytes))
			return false;
		share.uid = (uint32_t)uid;
		share.limit = share.user_limit;
	} else {
		line = again;
		share.is_of_all = true;
		if (!kernel_word_is(&line, "all") || !kernel_word_is(&line, "bytes") ||
		    !kernel_number(&line, UINT64_MAX, &share.bytes) ||
		    !kernel_word_is(&line, "limit") ||
		    !kernel_number(&line, UINT64_MAX, &share.limit) ||
		    !kernel_word_is(&line, "user_limit") ||
		    !kernel_number(&line, UINT64_MAX, &share.user_limit))
			return false;
	}
	*ret_share = share;
	return true;
}
