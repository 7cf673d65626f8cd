/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file "mappings" of one card, as tt-kmd 2.10 writes it. After a warning and two lines of titles
 * there is a line for each open descriptor (OPEN_FD), each followed by lines for what it holds:
 *
 *	offset  0  8 bytes	pid, padded with blanks
 *	        9 16 bytes	name of the process, likewise
 *	       26		type, and for most of them details
 *
 * A process chooses its own name, which may contain a newline. It has 15 bytes at most, so what
 * follows always begins at the same offset, and lines are taken apart by offsets: a name cannot look
 * like a line.
 */

#include "source/host/driver-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "model/merge.h"
#include "source/host/driver.h"

#define MEMORY_TLBS 1024u /* the driver has 256 at most */
#define MEMORY_NAME 9u
#define MEMORY_TYPE 26u

static const char memory_head[] =
	"WARNING: This file is for diagnostic purposes only.\n"
	"Its format is not stable and may change in future driver versions.\n"
	"Do not write scripts that parse this file.\n"
	"\n"
	"PID      Comm             Type           Mapping Details\n"
	"----     ----             ----           ---------------\n";

static const char memory_blanks[MEMORY_TYPE + 1] = "                          ";

enum memory_kind {
	MEMORY_OPEN = 0,
	MEMORY_PINNED,
	MEMORY_DMA,
	MEMORY_WINDOW, /* allocated */
	MEMORY_TLB,    /* mapped */
	MEMORY_OTHER,  /* not memory that anybody allocated */
	MEMORY_BUSY, /* the driver could not look: the lines of this descriptor are not complete */
};

/*
 * In a pattern, %x is a hexadecimal number, %s the same for the size, %i the decimal number of a
 * window with the blanks after it, %d any other such number, %w a word of capitals.
 */
static const struct {
	const char *pattern;
	enum memory_kind kind;
} memory_lines[] = {
	{"OPEN_FD       ", MEMORY_OPEN},
	{"PIN_PAGES      VA: %x -> %w: %x (size=%s)", MEMORY_PINNED},
	{"PIN_PAGES+IATU VA: %x -> %w: %x -> NOC: %x (size=%s)", MEMORY_PINNED},
	{"DMA_BUF        ID: %d-> %w: %x (size=%s)", MEMORY_DMA},
	{"DMA_BUF+IATU   ID: %d-> %w: %x -> NOC: %x (size=%s)", MEMORY_DMA},
	{"TLB-alloc      ID: %i", MEMORY_WINDOW},
	{"TLB            ID: %i%w -> BAR%d+ %x (size=%s)", MEMORY_TLB},
	{"BAR            BAR%d%w (offset=%x, size=%x)", MEMORY_OTHER},
	{"...locked, skipping details...", MEMORY_BUSY},
	{"...IATU busy, skipping details...", MEMORY_BUSY},
	{"...TLBs busy, skipping...", MEMORY_BUSY},
	{"...VMA list busy, skipping...", MEMORY_BUSY},
};

/* One open descriptor. */
struct memory_row {
	struct snapshot_driver_memory memory;
	bool is_partial;
};

struct memory_parser {
	struct memory_row *rows;
	size_t count, capacity;
	/* A window belongs to one descriptor, which may map it several times. */
	uint64_t windows[MEMORY_TLBS / 64], mapped[MEMORY_TLBS / 64];
};

/* The rest of a line. */
struct memory_line {
	const char *at, *end;
	uint64_t size, id;
};

/* Digits of a base up to 16; false if there are none, or too many. */
static bool memory_number(struct memory_line *line, uint64_t base, uint64_t *ret_number)
{
	static const char digits[] = "0123456789abcdef";
	const char *begin = line->at;
	uint64_t number = 0;

	for (; line->at < line->end; line->at++) {
		const char *digit = *line->at ? strchr(digits, *line->at) : NULL;

		if (!digit || (uint64_t)(digit - digits) >= base)
			break;
		if (number > (UINT64_MAX - 15) / base)
			return false;
		number = number * base + (uint64_t)(digit - digits);
	}
	*ret_number = number;
	return line->at > begin;
}

static bool memory_hex(struct memory_line *line, uint64_t *ret_number)
{
	if (line->end - line->at < 2 || memcmp(line->at, "0x", 2) != 0)
		return false;
	line->at += 2;
	return memory_number(line, 16, ret_number);
}

static bool memory_padded(struct memory_line *line, uint64_t *ret_number)
{
	if (!memory_number(line, 10, ret_number))
		return false;
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	return true;
}

static bool memory_word(struct memory_line *line)
{
	const char *begin = line->at;

	while (line->at < line->end && *line->at >= 'A' && *line->at <= 'Z')
		line->at++;
	return line->at > begin;
}

static bool memory_field(struct memory_line *line, char what)
{
	uint64_t any;

	switch (what) {
	case 'x':
		return memory_hex(line, &any);
	case 's':
		return memory_hex(line, &line->size);
	case 'i':
		return memory_padded(line, &line->id) && line->id < MEMORY_TLBS;
	case 'd':
		return memory_padded(line, &any);
	default:
		return memory_word(line);
	}
}

static bool memory_matches(struct memory_line *line, const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern == '%') {
			if (!memory_field(line, *++pattern))
				return false;
		} else if (line->at == line->end || *line->at++ != *pattern) {
			return false;
		}
	}
	return line->at == line->end;
}

/* The kind of a line, or -EBADMSG. */
static int memory_kind(struct memory_line *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(memory_lines); i++) {
		struct memory_line copy = *line;

		if (!memory_matches(&copy, memory_lines[i].pattern))
			continue;
		*line = copy;
		return (int)memory_lines[i].kind;
	}
	return -EBADMSG;
}

/* Whether it was not in the set before. */
static bool memory_is_new(uint64_t set[MEMORY_TLBS / 64], uint64_t id)
{
	uint64_t bit = UINT64_C(1) << id % 64;
	bool is_new = !(set[id / 64] & bit);

	set[id / 64] |= bit;
	return is_new;
}

static int memory_open(struct memory_parser *parser, uint32_t pid)
{
	struct memory_row *rows =
		array_grow(parser->rows, &parser->capacity, parser->count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	parser->rows = rows;
	rows[parser->count++] = (struct memory_row){.memory = {.pid = pid}};
	return 0;
}

/* A line about the last descriptor. */
static int memory_add(struct memory_parser *parser, const struct memory_line *line, int kind,
		      uint32_t pid)
{
	struct memory_row *row = parser->count ? &parser->rows[parser->count - 1] : NULL;

	if (!row || (kind != MEMORY_BUSY && pid != row->memory.pid))
		return -EBADMSG;
	if (kind == MEMORY_PINNED)
		row->memory.pinned = merge_add(row->memory.pinned, line->size);
	if (kind == MEMORY_DMA)
		row->memory.dma = merge_add(row->memory.dma, line->size);
	if (kind == MEMORY_TLB && memory_is_new(parser->mapped, line->id))
		row->memory.tlb = merge_add(row->memory.tlb, line->size);
	if ((kind == MEMORY_TLB || kind == MEMORY_WINDOW) &&
	    memory_is_new(parser->windows, line->id))
		row->memory.tlb_windows++;
	row->is_partial = row->is_partial || kind == MEMORY_BUSY;
	return 0;
}

/* Reads the columns of pid and name; both are blank in a busy line, and only there. */
static int memory_who(const char *text, uint32_t *ret_pid, bool *ret_is_blank)
{
	struct memory_line line = {.at = text, .end = text + MEMORY_NAME};
	uint64_t pid = 0;

	*ret_is_blank = *text == ' ';
	*ret_pid = 0;
	if (*ret_is_blank)
		return memcmp(text, memory_blanks, MEMORY_TYPE) == 0 ? 0 : -EBADMSG;
	if (!memory_padded(&line, &pid) || line.at < line.end || pid > INT32_MAX)
		return -EBADMSG;
	/* A blank separates columns, and the name is shorter than its column. */
	if (text[MEMORY_NAME - 1] != ' ' || memcmp(text + MEMORY_TYPE - 2, "  ", 2) != 0)
		return -EBADMSG;
	*ret_pid = (uint32_t)pid;
	return 0;
}

/* Parses the line at @text. Returns its length, or a negative errno. */
static ssize_t memory_parse_line(struct memory_parser *parser, const char *text, size_t length)
{
	struct memory_line line = {.at = text + MEMORY_TYPE};
	bool is_blank;
	uint32_t pid;
	int kind, r;

	if (length <= MEMORY_TYPE || memory_who(text, &pid, &is_blank) < 0)
		return -EBADMSG;
	line.end = memchr(line.at, '\n', length - MEMORY_TYPE);
	if (!line.end)
		return -EBADMSG;
	length = (size_t)(line.end + 1 - text);
	kind = memory_kind(&line);
	if (kind < 0 || is_blank != (kind == MEMORY_BUSY))
		return -EBADMSG;
	r = kind == MEMORY_OPEN ? memory_open(parser, pid) : memory_add(parser, &line, kind, pid);
	return r < 0 ? r : (ssize_t)length;
}

static int memory_compare(const void *left, const void *right)
{
	const struct memory_row *a = left, *b = right;

	return bits_compare(a->memory.pid, b->memory.pid);
}

/* Adds up the descriptors of each process. */
static int memory_sum(struct memory_parser *parser, struct snapshot_driver_memory **ret_rows,
		      size_t *ret_count)
{
	struct snapshot_driver_memory *rows = calloc(parser->count + 1, sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return -ENOMEM;
	if (parser->count > 0)
		qsort(parser->rows, parser->count, sizeof(*parser->rows), memory_compare);
	for (size_t i = 0; i < parser->count;) {
		struct snapshot_driver_memory sum = {.pid = parser->rows[i].memory.pid};
		bool is_known = sum.pid != 0;

		for (; i < parser->count && parser->rows[i].memory.pid == sum.pid; i++) {
			const struct memory_row *row = &parser->rows[i];

			sum.pinned = merge_add(sum.pinned, row->memory.pinned);
			sum.dma = merge_add(sum.dma, row->memory.dma);
			sum.tlb = merge_add(sum.tlb, row->memory.tlb);
			sum.tlb_windows += row->memory.tlb_windows;
			is_known = is_known && !row->is_partial;
		}
		if (is_known)
			rows[count++] = sum;
	}
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

static void memory_parser_deinit(struct memory_parser *parser)
{
	free(parser->rows);
}

int driver_memory_parse(const char *text, size_t length, struct snapshot_driver_memory **ret_rows,
			size_t *ret_count)
{
	CLEANUP(memory_parser_deinit) struct memory_parser parser = {.rows = NULL};
	size_t at = sizeof(memory_head) - 1;

	if (length < at || memcmp(text, memory_head, at) != 0)
		return -EBADMSG;
	while (at < length) {
		ssize_t n = memory_parse_line(&parser, text + at, length - at);

		if (n < 0)
			return (int)n;
		at += (size_t)n;
	}
	return memory_sum(&parser, ret_rows, ret_count);
}

static int memory_collect_text(struct snapshot *snapshot, uint32_t number, const char *text,
			       size_t length)
{
	CLEANUP_FREE struct snapshot_driver_memory *rows = NULL;
	size_t count = 0;
	int r = -EBADMSG; /* also for a text that may have been cut */

	if (length < DRIVER_MEMORY_TEXT_MAX - 1)
		r = driver_memory_parse(text, length, &rows, &count);
	if (r == -EBADMSG) {
		snapshot_note(snapshot,
			      "device %" PRIu32 ": this version of the driver lists its memory in "
			      "a form that is not known, so it is not shown",
			      number);
		return 0;
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		rows[i].number = number;
		r = snapshot_add_driver_memory(snapshot, &rows[i]);
	}
	return r == -ENOBUFS ? 0 : r;
}

/* One card. Returns 0, -EACCES or -ENOMEM. */
static int memory_collect_card(struct snapshot *snapshot, uint32_t number)
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_CLOSE int fd = -1;
	char path[4096];
	ssize_t length;

	if (snprintf(path, sizeof(path), "%s/kernel/debug/tenstorrent/%" PRIu32 "/mappings",
		     driver_sys_root(), number) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? -EACCES : 0; /* an old driver */
	text = malloc(DRIVER_MEMORY_TEXT_MAX);
	if (!text)
		return -ENOMEM;
	length = small_file_read_fd(fd, text, DRIVER_MEMORY_TEXT_MAX);
	if (length < 0)
		return 0; /* the card is just being removed */
	return memory_collect_text(snapshot, number, text, (size_t)length);
}

int driver_memory_collect(struct snapshot *snapshot, bool *ret_closed)
{
	int r = 0;

	*ret_closed = false;
	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++) {
		r = memory_collect_card(snapshot, snapshot->cards[i].number);
		if (r == -EACCES) {
			*ret_closed = true;
			return 0; /* and so are all others: it is the folder's mode */
		}
	}
	return r;
}
