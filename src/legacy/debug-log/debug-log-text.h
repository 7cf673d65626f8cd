/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Words, numbers and dates of the old system's debug logs, and their filters. Uses no locks and no
 * locale, because a log may be written from any context.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"

#define DEBUG_LOG_TEXT_NUMBER 32u

/* 59 of each. */
#define DEBUG_LOG_TEXT_DOUBLE_LINE "═══════════════════════════════════════════════════════════"
#define DEBUG_LOG_TEXT_LINE "───────────────────────────────────────────────────────────"

/* What the buffer log covers. Without devices or types: all of them. */
struct debug_log_filter {
	bool has_devices;
	bool has_types;
	uint32_t types; /* one bit per type */
	uint8_t devices[BOOK_DEVICES / 8];
};

/*
 * "0", "0,2", "L1", "dram,L1_SMALL": from the environment; either may be NULL. A list without any
 * valid word counts as no list: a misspelt filter should not hide everything.
 */
void debug_log_text_filter(struct debug_log_filter *filter, const char *devices, const char *types);

/* An unknown type passes. */
bool debug_log_text_wants(const struct debug_log_filter *filter, uint32_t device, uint32_t type);

/* The buffer log knew three types; the others are "OTHER", a missing one is "unknown". */
const char *debug_log_text_short_type(uint32_t type);
const char *debug_log_text_type(uint32_t type);

/* @size / 1024 as a C++ stream prints it: six significant digits. Returns @ret_text. */
const char *debug_log_text_kb(uint64_t size, char ret_text[DEBUG_LOG_TEXT_NUMBER]);

/* "2025-11-03 14:32:15" for seconds since 1970. Returns @ret_text. */
const char *debug_log_text_date(int64_t seconds, char ret_text[DEBUG_LOG_TEXT_NUMBER]);
