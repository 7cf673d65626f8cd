/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compares text with a pattern, as scanf() does, and fills in an event. Beside what stands there literally:
 *
 *   %p  process id                    %d  device
 *   %a  address: decimal, or with 0x  %t  type of memory: its name, or its number
 *   %s  size                          %S  likewise, not 0
 *   %y  type: its number
 *   %m  "1.5 MB", a size              %M  likewise, the total afterwards
 *   %r  references                    %c  how many
 *   %n  a number that does not matter
 *   %e  a blank or the end            %$  the end
 *   %*  whatever precedes the first occurrence of the literal that follows
 *   %!  what precedes it only such a line has: if the rest differs, the line is damaged
 *   %?  the rest may be missing
 */

#include <stdbool.h>
#include <stddef.h>

#include "legacy/analyze/log-reader.h"

enum log_scan {
	LOG_SCAN_OTHER = 0, /* not such a line */
	LOG_SCAN_TAKEN,     /* the event is filled in */
	LOG_SCAN_DAMAGED,
};

/* Whether @at begins as the pattern says. Unless it is taken, the event may be half filled in. */
enum log_scan log_scan(const char *at, const char *pattern, struct log_reader_event *event);

/* Where in a line the words are with which the pattern begins; NULL = nowhere. */
const char *log_scan_find(const char *line, const char *pattern);

/* Whether the line ends in the middle of those words, after @least bytes of them at least. */
bool log_scan_is_cut(const char *at, const char *pattern, size_t least);
