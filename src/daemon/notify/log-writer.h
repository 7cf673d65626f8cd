/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon says, on its way to a terminal, a pipe or a file that may be slower than it. Text is
 * put into a bounded buffer that a thread of its own writes out; nobody ever waits. What does not fit
 * is dropped by whole puts, counted, and the gap is told in the output where it was.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_writer;

#define LOG_WRITER_ROOM_DEFAULT (UINT32_C(4) << 20)

/*
 * Writes to @path, or to @fd if that is NULL (which stays the caller's). 0 or a negative errno. @room:
 * bytes of the buffer, 0 for the default.
 */
int log_writer_new(struct log_writer **ret_outlet, const char *path, int fd, size_t room);

/* Writes what waits, for a second at most, and ends. */
struct log_writer *log_writer_free(struct log_writer *log_writer);

/* All of @text or nothing of it. From any thread. Return: whether it was taken. */
bool log_writer_put(struct log_writer *log_writer, const char *text, size_t length);
bool log_writer_print(struct log_writer *log_writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool log_writer_vprint(struct log_writer *log_writer, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/* Opens the path anew, as after a rotation. Nothing with an fd. */
void log_writer_reopen(struct log_writer *log_writer);

/* Puts that were dropped since the beginning. */
uint64_t log_writer_dropped(struct log_writer *log_writer);
