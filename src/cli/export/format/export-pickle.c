/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers are little-endian; see pickletools of Python's library. */

#include "cli/export/format/export-pickle.h"

#include <string.h>

#define PICKLE_PROTOCOL 2

enum {
	PICKLE_PROTO = 0x80,
	PICKLE_STOP = '.',
	PICKLE_EMPTY_LIST = ']',
	PICKLE_EMPTY_DICT = '}',
	PICKLE_BININT1 = 'K',
	PICKLE_BININT2 = 'M',
	PICKLE_BININT = 'J',
	PICKLE_LONG1 = 0x8a,
	PICKLE_BINUNICODE = 'X',
	PICKLE_APPEND = 'a',
	PICKLE_SETITEM = 's',
	PICKLE_LONG_BINPUT = 'r',
	PICKLE_LONG_BINGET = 'j',
};

static void pickle_put(FILE *out, int operation, uint64_t value, size_t size)
{
	fputc(operation, out);
	for (size_t i = 0; i < size; i++)
		fputc((int)(value >> (8 * i) & 0xff), out);
}

void export_pickle_begin(FILE *out)
{
	pickle_put(out, PICKLE_PROTO, PICKLE_PROTOCOL, 1);
}

void export_pickle_end(FILE *out)
{
	fputc(PICKLE_STOP, out);
}

void export_pickle_list(FILE *out)
{
	fputc(PICKLE_EMPTY_LIST, out);
}

void export_pickle_dict(FILE *out)
{
	fputc(PICKLE_EMPTY_DICT, out);
}

/* A long has a sign: its highest bit must be 0. */
static void pickle_put_long(FILE *out, uint64_t value)
{
	size_t size = 5;

	while (size < 9 && value >> (8 * size - 1))
		size++;
	pickle_put(out, PICKLE_LONG1, size, 1);
	for (size_t i = 0; i < size; i++)
		fputc(i < 8 ? (int)(value >> (8 * i) & 0xff) : 0, out);
}

void export_pickle_number(FILE *out, uint64_t value)
{
	if (value <= UINT8_MAX)
		pickle_put(out, PICKLE_BININT1, value, 1);
	else if (value <= UINT16_MAX)
		pickle_put(out, PICKLE_BININT2, value, 2);
	else if (value <= INT32_MAX)
		pickle_put(out, PICKLE_BININT, value, 4);
	else
		pickle_put_long(out, value);
}

void export_pickle_text(FILE *out, const char *text)
{
	size_t length = strlen(text);

	pickle_put(out, PICKLE_BINUNICODE, length, 4);
	(void)fwrite(text, 1, length, out); /* asked for at the end */
}

void export_pickle_append(FILE *out)
{
	fputc(PICKLE_APPEND, out);
}

void export_pickle_set(FILE *out)
{
	fputc(PICKLE_SETITEM, out);
}

void export_pickle_remember(FILE *out, uint32_t number)
{
	pickle_put(out, PICKLE_LONG_BINPUT, number, 4);
}

void export_pickle_recall(FILE *out, uint32_t number)
{
	pickle_put(out, PICKLE_LONG_BINGET, number, 4);
}
