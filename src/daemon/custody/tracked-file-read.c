/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the file of tracked processes: lines of numbers and a name, between a heading and a count.
 */

#include "daemon/custody/tracked-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "daemon/custody/tracked-file-text.h"
#include "source/proc/proc.h"

/* The unread part of a text. */
struct tracked_file_rest {
	const char *at;
	size_t length;
};

/* Takes the next line, without its newline. False: there is none. */
static bool tracked_file_line(struct tracked_file_rest *rest, struct tracked_file_rest *ret_line)
{
	const char *end = rest->length ? memchr(rest->at, '\n', rest->length) : NULL;

	if (!end)
		return false;
	*ret_line = (struct tracked_file_rest){.at = rest->at, .length = (size_t)(end - rest->at)};
	rest->at = end + 1;
	rest->length -= ret_line->length + 1;
	return true;
}

static bool tracked_file_is(const struct tracked_file_rest *line, const char *word)
{
	return line->length == strlen(word) && memcmp(line->at, word, line->length) == 0;
}

/* Removes @word from the start of the line. */
static bool tracked_file_word(struct tracked_file_rest *line, const char *word)
{
	size_t length = strlen(word);

	if (line->length < length || memcmp(line->at, word, length) != 0)
		return false;
	line->at += length;
	line->length -= length;
	return true;
}

/* Removes a decimal number in our own form from the start of the line: no sign, no leading zero. */
static bool tracked_file_number(struct tracked_file_rest *line, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; n < line->length && line->at[n] >= '0' && line->at[n] <= '9'; n++) {
		uint64_t digit = (uint64_t)(line->at[n] - '0');

		if (value > (max - digit) / 10 || (n > 0 && value == 0))
			return false;
		value = value * 10 + digit;
	}
	if (n == 0)
		return false;
	line->at += n;
	line->length -= n;
	*ret_value = value;
	return true;
}

/* A name must be what we would have written: valid and properly escaped. */
static bool tracked_file_comm(const struct tracked_file_rest *line,
			      char ret_comm[TRACKED_FILE_COMM_SIZE])
{
	size_t n;

	if (line->length >= TRACKED_FILE_COMM_SIZE)
		return false;
	for (size_t i = 0; i < line->length; i += n) {
		char character[8] = "", escaped[TEXT_ESCAPE_SIZE(sizeof(character))];
		uint32_t code;

		n = text_decode(line->at + i, line->length - i, &code);
		if (code == 0 || (code == TEXT_REPLACEMENT && n != 3))
			return false;
		memcpy(character, line->at + i, n);
		(void)text_escape(character, escaped, sizeof(escaped)); /* fits */
		if (code != '\\' && strcmp(character, escaped) != 0)
			return false;
	}
	memset(ret_comm, 0, TRACKED_FILE_COMM_SIZE);
	memcpy(ret_comm, line->at, line->length);
	return true;
}

static bool tracked_file_entry_of(struct tracked_file_rest line,
				  struct tracked_file_entry *ret_entry)
{
	struct tracked_file_entry entry;
	uint64_t pid;

	if (!tracked_file_number(&line, UINT32_MAX, &pid) || pid == 0 ||
	    !tracked_file_word(&line, " ") ||
	    !tracked_file_number(&line, UINT64_MAX, &entry.process.start_ticks) ||
	    !tracked_file_word(&line, " ") ||
	    !tracked_file_number(&line, UINT64_MAX, &entry.book.device) ||
	    !tracked_file_word(&line, " ") ||
	    !tracked_file_number(&line, UINT64_MAX, &entry.book.inode) ||
	    !tracked_file_word(&line, " ") || !tracked_file_comm(&line, entry.comm))
		return false;
	entry.process.pid = (uint32_t)pid;
	*ret_entry = entry;
	return true;
}

int tracked_file_parse(const char *text, size_t length, const char *boot,
		       struct tracked_file_contents *ret_contents)
{
	struct tracked_file_rest rest = {.at = text, .length = length}, line;
	CLEANUP_FREE struct tracked_file_entry *entries = NULL;
	size_t count = 0, capacity = 0;
	uint64_t told, missed = 0;
	bool is_first = true;

	if (!tracked_file_line(&rest, &line) || !tracked_file_is(&line, TRACKED_FILE_TEXT_HEADING))
		return -EBADMSG;
	if (!tracked_file_line(&rest, &line) || !tracked_file_word(&line, TRACKED_FILE_TEXT_BOOT))
		return -EBADMSG;
	/* Another boot: every listed process ended with the machine, so none is missing. */
	if (!tracked_file_is(&line, boot)) {
		*ret_contents = (struct tracked_file_contents){0};
		return 0;
	}
	for (; tracked_file_line(&rest, &line); is_first = false) {
		struct tracked_file_entry *grown;

		if (is_first && tracked_file_word(&line, TRACKED_FILE_TEXT_MISSED)) {
			if (!tracked_file_number(&line, UINT64_MAX, &missed) || line.length != 0)
				return -EBADMSG;
			continue;
		}
		if (tracked_file_word(&line, TRACKED_FILE_TEXT_END)) {
			if (!tracked_file_number(&line, TRACKED_FILE_ENTRIES_MAX, &told) ||
			    line.length != 0 || told != count || rest.length != 0)
				return -EBADMSG;
			*ret_contents =
				(struct tracked_file_contents){.entries = cleanup_steal(entries),
							       .count = count,
							       .missed = missed};
			return 0;
		}
		if (count == TRACKED_FILE_ENTRIES_MAX)
			return -EBADMSG;
		grown = array_grow(entries, &capacity, count + 1, sizeof(*entries));
		if (!grown)
			return -ENOMEM;
		entries = grown;
		if (!tracked_file_entry_of(line, &entries[count++]))
			return -EBADMSG;
	}
	return -EBADMSG;
}

int tracked_file_boot(char ret_boot[TRACKED_FILE_BOOT_SIZE])
{
	char boot[TRACKED_FILE_BOOT_SIZE];
	ssize_t n =
		small_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));

	if (n != sizeof(boot) - 1)
		return n < 0 ? (int)n : -EBADMSG;
	memcpy(ret_boot, boot, sizeof(boot));
	return 0;
}

static int tracked_file_open(const char *folder, size_t *ret_size)
{
	CLEANUP_FREE char *path = NULL;
	CLEANUP_CLOSE int fd = -1;
	struct stat file;

	if (asprintf(&path, "%s/%s", folder, TRACKED_FILE_FILE) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* Follow no link, and do not block on a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode))
		return -EBADMSG;
	if (file.st_size > (off_t)TRACKED_FILE_SIZE_MAX)
		return -EFBIG;
	*ret_size = (size_t)file.st_size;
	return cleanup_steal_fd(&fd);
}

int tracked_file_read(const char *folder, struct tracked_file_contents *ret_contents)
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_CLOSE int fd = -1;
	char boot[TRACKED_FILE_BOOT_SIZE];
	ssize_t length;
	size_t size = 0;
	int r = tracked_file_boot(boot);

	if (r < 0)
		return r;
	fd = tracked_file_open(folder, &size);
	if (fd < 0)
		return fd;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	length = small_file_read_fd(fd, text, size + 1);
	if (length < 0)
		return (int)length;
	return tracked_file_parse(text, (size_t)length, boot, ret_contents);
}

size_t tracked_file_missed(struct tracked_file_entry *entries, size_t count,
			   const struct proc *proc,
			   bool (*is_held)(void *context, const struct tracked_file_entry *entry),
			   void *context)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		struct proc_facts facts;

		if (is_held && is_held(context, &entries[i]))
			continue;
		if (proc_read(proc, entries[i].process.pid, &facts) == 0 &&
		    process_id_equal(facts.id, entries[i].process) && !proc_is_over(proc, &facts))
			continue;
		entries[left++] = entries[i];
	}
	return left;
}
