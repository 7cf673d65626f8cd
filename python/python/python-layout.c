/* SPDX-License-Identifier: Apache-2.0 */

/* The table of versions, and how lines and texts are stored. The header tells the rest. */

#include "python/python-layout.h"

/* Objects, the same in all versions here, on machines with 64 bits. */
#define LAYOUT_SIZE 16u  /* length of a str, and of bytes */
#define LAYOUT_STATE 32u /* of a str: bits 2-4 width, 5 compact, 6 ASCII */
#define LAYOUT_BYTES 32u /* of bytes: the first */
#define LAYOUT_COMPACT 0x20u
#define LAYOUT_ASCII 0x40u

/* Kinds of entries in the table of lines; smaller ones stay on the line. */
#define LAYOUT_ONE_LINE 10 /* and 11, 12: so many lines on */
#define LAYOUT_NO_COLUMN 13
#define LAYOUT_LONG 14
#define LAYOUT_NONE 15

#define LAYOUT_K0 UINT64_C(0x9e3779b97f4a7c15)

static const struct layout layout_table[] = {
	{
		.version = 0x030b,
		.thread_current = 56,
		.is_indirect = true,
		.has_entry_mark = true,
		.current_frame = 8,
		.current_previous = 16,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_at = 56,
		.frame_entry = 68,
		.frame_owner = 69,
		.code_first_line = 72,
		.code_file = 112,
		.code_name = 120,
		.code_lines = 136,
		.code_ready = 168,
		.code_begin = 184,
		.text_ascii = 48,
		.text_others = 72,
	},
	{
		.version = 0x030c,
		.thread_current = 56,
		.is_indirect = true,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_at = 56,
		.frame_owner = 70,
		.code_first_line = 68,
		.code_file = 112,
		.code_name = 120,
		.code_lines = 136,
		.code_ready = 176,
		.code_begin = 192,
		.text_ascii = 40,
		.text_others = 56,
	},
	{
		.version = 0x030d,
		.thread_current = 72,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_at = 56,
		.frame_owner = 70,
		.code_first_line = 68,
		.code_file = 112,
		.code_name = 120,
		.code_lines = 136,
		.code_ready = 184,
		.code_begin = 200,
		.text_ascii = 40,
		.text_others = 56,
	},
};

const struct layout *layout_find(uint32_t version)
{
	/* 0xf0: a final release; before it everything may still move. */
	if (sizeof(void *) != 8 || (version & 0xf0) != 0xf0)
		return NULL;
	for (size_t i = 0; i < sizeof(layout_table) / sizeof(*layout_table); i++) {
		if (layout_table[i].version == version >> 16)
			return &layout_table[i];
	}
	return NULL;
}

static uint32_t layout_u32(const void *at, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)at + offset, sizeof(value));
	return value;
}

static size_t layout_size(const void *object)
{
	size_t size;

	memcpy(&size, (const char *)object + LAYOUT_SIZE, sizeof(size));
	return size;
}

/* Six bits in each byte, the lowest first; bit 6 says that there is more. Lowest bit of all: the sign. */
static int64_t layout_signed(const uint8_t *at, const uint8_t *end)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (; at < end && shift < 60; at++, shift += 6) {
		value |= (uint64_t)(*at & 63) << shift;
		if (!(*at & 64))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/*
 * The table has an entry for each run of instructions: its first byte, the only one with bit 7, has the
 * kind and how many there are; then how many lines it is further on than the one before.
 */
uint32_t layout_line(const struct layout *layout, const struct layout_frame *frame)
{
	const void *table = layout_pointer(frame->code, layout->code_lines);
	const uint8_t *at = (const uint8_t *)table + LAYOUT_BYTES;
	const uint8_t *end = at + layout_size(table);
	int64_t line = (int32_t)layout_u32(frame->code, layout->code_first_line);
	int64_t offset = (const char *)frame->at - ((const char *)frame->code + layout->code_begin);
	int64_t from = 0;

	if (offset < 0)
		return (uint32_t)line;
	while (at < end) {
		unsigned int kind = *at >> 3 & 15;

		from += ((*at & 7) + 1) * LAYOUT_UNIT;
		at++;
		if (kind == LAYOUT_NO_COLUMN || kind == LAYOUT_LONG)
			line += layout_signed(at, end);
		else if (kind >= LAYOUT_ONE_LINE && kind < LAYOUT_NO_COLUMN)
			line += kind - LAYOUT_ONE_LINE;
		if (offset < from)
			return kind == LAYOUT_NONE || line < 0 ? 0 : (uint32_t)line;
		while (at < end && !(*at & 0x80))
			at++;
	}
	return 0;
}

/* Return: how many bytes; what is no character alone (half of a pair) becomes a question mark. */
static size_t layout_utf8(uint32_t c, char *to)
{
	if (c >= 0xd800 && c < 0xe000)
		c = '?';
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* The characters of a str, as they are stored. @ret_width: bytes of each; 0 = in another way. */
static const uint8_t *layout_characters(const struct layout *layout, const void *text,
					size_t *ret_width)
{
	uint32_t state = layout_u32(text, LAYOUT_STATE);

	*ret_width = state & LAYOUT_COMPACT ? state >> 2 & 7 : 0;
	return (const uint8_t *)text +
	       (state & LAYOUT_ASCII ? layout->text_ascii : layout->text_others);
}

static size_t layout_text(const struct layout *layout, const void *text, char *ret_text)
{
	size_t width, length = 0;
	const uint8_t *characters = layout_characters(layout, text, &width);
	size_t count = width ? layout_size(text) : 0;

	for (size_t i = 0; i < count && length + 4 < LAYOUT_TEXT_SIZE; i++) {
		uint32_t c = 0;

		/* Little-endian, as all machines with such cards are. */
		memcpy(&c, characters + i * width, width);
		length += layout_utf8(c, ret_text + length);
	}
	ret_text[length] = '\0';
	return length;
}

size_t layout_function(const struct layout *layout, const void *code, char *ret_text)
{
	return layout_text(layout, layout_pointer(code, layout->code_name), ret_text);
}

size_t layout_file(const struct layout *layout, const void *code, char *ret_text)
{
	return layout_text(layout, layout_pointer(code, layout->code_file), ret_text);
}

static uint64_t layout_mix(uint64_t hash, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	uint64_t word = 0;

	for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * LAYOUT_K0;
		hash ^= hash >> 29;
	}
	word = length;
	for (; length > 0; length--)
		word = word << 8 | *at++;
	hash = (hash ^ word) * LAYOUT_K0;
	return hash ^ hash >> 29;
}

static uint64_t layout_mix_text(const struct layout *layout, uint64_t hash, const void *text)
{
	size_t width;
	const uint8_t *characters = layout_characters(layout, text, &width);

	return layout_mix(hash, characters, layout_size(text) * width);
}

uint64_t layout_hash(const struct layout *layout, const void *code)
{
	const void *lines = layout_pointer(code, layout->code_lines);
	uint64_t hash = layout_u32(code, layout->code_first_line);

	hash = layout_mix(hash, (const char *)lines + LAYOUT_BYTES, layout_size(lines));
	hash = layout_mix_text(layout, hash, layout_pointer(code, layout->code_name));
	return layout_mix_text(layout, hash, layout_pointer(code, layout->code_file));
}
