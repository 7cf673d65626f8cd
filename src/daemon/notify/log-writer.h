/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's output to a terminal, a pipe or a file, which may be slow. Text goes into a bounded
 * buffer that a separate thread writes out, so callers never block. A put that does not fit is
 * dropped as a whole and counted, and the output reports the gap where it is.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

struct log_writer;

#define LOG_WRITER_ROOM_DEFAULT (UINT32_C(4) << 20)

/*
 * Writes to @path, or to @fd if @path is NULL or cannot be opened; @fd stays the caller's. @room:
 * bytes of the buffer, 0 for the default. 0 or a negative errno.
 */
int log_writer_new(struct log_writer **ret_log_writer, const char *path, int fd, size_t room);

/* Writes what is buffered, for a second at most, and stops. */
struct log_writer *log_writer_free(struct log_writer *log_writer);

/* Takes all of @text, escaped (text_escape_lines()), or none of it. From any thread. Return: whether it was taken. */
bool log_writer_put(struct log_writer *log_writer, const char *text, size_t length);
bool log_writer_print(struct log_writer *log_writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool log_writer_vprint(struct log_writer *log_writer, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/*
 * Whether text of @length bytes that user @uid causes may be put: not if that user has caused too
 * much. What is left out is counted, and the output says so once a minute. From any thread.
 */
bool log_writer_charge(struct log_writer *log_writer, uint32_t uid, size_t length);

/*
 * Reopens the path, as after a rotation. If it cannot be opened, what is in use stays in use. Does
 * nothing for an fd.
 */
void log_writer_reopen(struct log_writer *log_writer);

/*
 * Whether the path could be opened when that was last tried. 0, or the negative errno; then it is
 * tried again, by the thread that may wait, and the next call tells.
 */
int log_writer_check(struct log_writer *log_writer);

/* Number of puts dropped since the start. */
uint64_t log_writer_dropped(struct log_writer *log_writer);
