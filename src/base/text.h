/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text from other processes, and numbers for people.
 *
 * Names may be any bytes. They are made valid UTF-8 once, when they are received (text_clean), and
 * harmless when they are written (text_escape and the functions below; emit.h for JSON): an escape
 * sequence or a right-to-left override in a buffer's name must not change the viewer's screen. Which
 * characters those are is decided in one place, text_is_harmful().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_REPLACEMENT 0xfffdu /* stands for invalid bytes */

/* The longest result of text_clean() for @n bytes, with the final NUL. */
#define TEXT_CLEAN_SIZE(n) ((n)*3 + 1)

/* The longest result of text_escape() for @n bytes, with the final NUL: "\x1b" for one. */
#define TEXT_ESCAPE_SIZE(n) ((n)*4 + 1)

/* Room for text_size() and text_duration(). */
#define TEXT_NUMBER_SIZE 32

/*
 * The character at the start of @bytes, TEXT_REPLACEMENT if there is none. Return: how many bytes it
 * takes, 0 only if @length is 0.
 */
size_t text_decode(const char *bytes, size_t length, uint32_t *ret_character);

/*
 * Converts @bytes to valid UTF-8 without NUL; @ret_text has room for TEXT_CLEAN_SIZE(length).
 * Return: length of the result.
 */
size_t text_clean(const char *bytes, size_t length, char *ret_text);

/*
 * Whether a viewer may interpret the character instead of showing it: controls of C0 and C1, those that
 * change the direction, break the line or are invisible. No output contains them raw.
 */
bool text_is_harmful(uint32_t character);

/*
 * Makes @text harmless for a terminal: control characters, and those that change the direction or
 * break the line, become \x1b or \u202e, a backslash becomes two. What does not fit is cut. Return:
 * length of the result.
 */
size_t text_escape(const char *text, char *ret_text, size_t size);

/*
 * Like text_escape() for lines of a log, of any bytes: line breaks, tabs and backslashes stay.
 * @ret_text has room for TEXT_ESCAPE_SIZE(length); there is no final NUL.
 */
size_t text_escape_lines(const char *text, size_t length, char *ret_text);

/* How many bytes text_escape_lines() leaves as they are before the first that it changes. */
size_t text_harmless(const char *text, size_t length);

/* Like text_escape(), into at most @width columns; what is cut ends in "~". */
void text_fit(const char *text, size_t width, char *ret_text, size_t size);

/* Terminal columns of @text; and of one character. */
size_t text_width(const char *text);
size_t text_columns(uint32_t character);

/* Writes @text escaped. */
void text_put(FILE *out, const char *text);

/* Likewise for a line of a journal: a line break becomes a blank, a backslash stays. */
void text_put_line(FILE *out, const char *text);

/* Likewise for a label of Prometheus between quotes: what is escaped has two backslashes there. */
void text_put_label(FILE *out, const char *text);

/*
 * Writes @text as a CSV field: escaped, and quoted if needed. One that begins with "=", "+", "-" or "@"
 * gets a "'" in front, or a spreadsheet would run it as a formula.
 */
void text_put_csv(FILE *out, const char *text);

#define TEXT_DIGITS 20u /* as many as UINT64_MAX has */

/* A decimal number, which ends where @digits does; returns its first digit. */
const char *text_digits(uint64_t value, char digits[TEXT_DIGITS]);

/* Writes one; the stream must be this thread's alone. */
void text_put_u64(FILE *out, uint64_t value);

/* "512 B", "1.5 KiB", "12.0 GiB"; returns @ret_text. */
const char *text_size(uint64_t bytes, char *ret_text);

/* From now on text_size() gives plain numbers of bytes, for exact figures. */
void text_show_bytes(void);
bool text_shows_bytes(void);

/* "250 ms", "12 s", "3 min", "5 h", "2 d"; returns @ret_text. */
const char *text_duration(uint64_t ns, char *ret_text);

/* A decimal number or, with 0x, a hexadecimal one: no sign, no blanks. -EINVAL, -ERANGE. */
int text_parse_u64(const char *text, uint64_t *ret_value);

/* Bytes as people write them: "512", "64K", "1.5 GiB", "10 MB" (1024-based). -EINVAL, -ERANGE. */
int text_parse_size(const char *text, uint64_t *ret_bytes);

/* How many letters must be changed, added or dropped to turn @a into @b; for "did you mean". */
size_t text_distance(const char *a, const char *b);
