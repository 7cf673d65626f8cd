/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks in words. */

#include "cli/common/peak-text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/must.h"
#include "cli/common/session.h"
#include "cli/common/site-json.h"
#include "model/sites/site-rows.h"

#define PEAK_TEXT_KEY 8192u
#define PEAK_TEXT_TIME 32u

/* By the local clock; with the day if that is not today. */
static const char *peak_text_time(uint64_t time_ns, char *ret_text)
{
	time_t then = (time_t)(time_ns / NS_PER_S), now = time(NULL);
	struct tm local, today;

	if (!localtime_r(&then, &local) || !localtime_r(&now, &today))
		return "?";
	if (local.tm_yday == today.tm_yday && local.tm_year == today.tm_year)
		(void)strftime(ret_text, PEAK_TEXT_TIME, "%T", &local);
	else
		(void)strftime(ret_text, PEAK_TEXT_TIME, "%F %T", &local);
	return ret_text;
}

static uint64_t peak_text_device(const json_t *peaks, size_t index)
{
	return daemon_pages_number(json_array_get(peaks, index), "device");
}

/* "device 0", "devices 0-3, 5": of peaks in the order of their devices. */
static void peak_text_devices(FILE *out, const json_t *peaks, size_t first, size_t end)
{
	fprintf(out, "device%s %" PRIu64, end - first > 1 ? "s" : "",
		peak_text_device(peaks, first));
	for (size_t i = first + 1; i < end; i++) {
		size_t begin = i;

		if (peak_text_device(peaks, i) != peak_text_device(peaks, i - 1) + 1) {
			fprintf(out, ", %" PRIu64, peak_text_device(peaks, i));
			continue;
		}
		while (i + 1 < end &&
		       peak_text_device(peaks, i + 1) == peak_text_device(peaks, i) + 1)
			i++;
		fprintf(out, "%s%" PRIu64, i > begin ? "-" : ", ", peak_text_device(peaks, i));
	}
}

static const char *peak_text_or(const json_t *row, const char *key, const char *otherwise)
{
	const char *text = daemon_pages_text(row, key);

	return text ? text : otherwise;
}

/*
 * ", 72.0 KiB in each of 12 banks, 864.0 KiB together": what a region must have; that of L1 is passed per bank.
 * Nothing if it is not known.
 */
static void peak_text_per_bank(const struct peak_text *text, const json_t *peak)
{
	const json_t *per_bank = json_object_get(peak, "per_bank");
	uint64_t bytes = daemon_pages_number(per_bank, "bytes"), all;
	uint64_t banks = daemon_pages_number(per_bank, "banks");
	bool is_l1 = strncmp(peak_text_or(peak, "type", ""), "L1", 2) == 0;
	char size[TEXT_NUMBER_SIZE];

	if (!bytes)
		return;
	fprintf(text->out, ", %s%s in each ",
		strcmp(peak_text_or(per_bank, "bound", ""), "exact") == 0 ? "" : "at least ",
		text_size(bytes, size));
	if (banks && !is_l1 && !__builtin_mul_overflow(bytes, banks, &all))
		fprintf(text->out, "of %" PRIu64 " banks, %s together", banks,
			text_size(all, size));
	else
		fprintf(text->out, "bank");
}

static void peak_text_head(const struct peak_text *text, const json_t *peak, bool is_mesh)
{
	const char *bound = peak_text_or(peak, "bound", "");
	uint64_t known = daemon_pages_number(peak, "known_bytes");
	char size[TEXT_NUMBER_SIZE], when[PEAK_TEXT_TIME], again[PEAK_TEXT_TIME];
	bool ended = json_is_true(json_object_get(peak, "ended")) && !text->is_over;

	fprintf(text->out, " %s peak %s%s%s at %s (pid %" PRIu64 " ",
		peak_text_or(peak, "type", "?"),
		strcmp(bound, "at_least") == 0  ? "at least "
		: strcmp(bound, "at_most") == 0 ? "at most "
						: "",
		text_size(daemon_pages_number(peak, "bytes"), size), is_mesh ? " each" : "",
		peak_text_time(daemon_pages_number(peak, "time_ns"), when),
		daemon_pages_number(peak, "pid"));
	text_put(text->out, peak_text_or(peak, "comm", "?"));
	fprintf(text->out, "%s)", ended ? ", ended" : "");
	if (strcmp(peak_text_time(daemon_pages_number(peak, "moment_ns"), again), when) != 0)
		fprintf(text->out, ", reached again at %s", again);
	if (daemon_pages_number(peak, "unknown_bytes"))
		fprintf(text->out, ", %s of it known", text_size(known, size));
	else
		fprintf(text->out, "%s",
			json_is_true(json_object_get(peak, "exact")) ? ", exact" : "");
	peak_text_per_bank(text, peak);
	(void)fputc('\n', text->out);
}

/* Bytes, their share of the peak, buffers (0 = not known how many) and what they are. */
static void peak_text_row(const struct peak_text *text, const json_t *peak, uint64_t bytes,
			  uint64_t buffers, const char *what)
{
	uint64_t all = bits_max(daemon_pages_number(peak, "bytes"), 1);
	char size[TEXT_NUMBER_SIZE], count[TEXT_NUMBER_SIZE] = "";

	if (buffers)
		(void)snprintf(count, sizeof(count), "%" PRIu64, buffers);
	fprintf(text->out, "%s  %10s  %5.1f%%  %7s  ", text->indent, text_size(bytes, size),
		100 * (double)bytes / (double)all, count);
	text_put(text->out, *what ? what : "-");
	(void)fputc('\n', text->out);
}

/* A call site: its names, and its line of code. */
static const char *peak_text_site(const json_t *group, const char *place, char *ret_text,
				  size_t size)
{
	const char *name = daemon_pages_text(group, "name");
	uint64_t names = daemon_pages_number(group, "name_count");

	if (names > 1)
		(void)snprintf(ret_text, size, "%" PRIu64 " names at %s", names, place);
	else
		(void)snprintf(ret_text, size, "%s%s%s", name ? name : "", name ? " at " : "",
			       place);
	return ret_text;
}

static const char *peak_text_what(const json_t *group, const char *place, char *ret_text,
				  size_t size)
{
	const char *key = peak_text_or(group, "key", "-"), *type = daemon_pages_text(group, "type");

	if (json_is_object(json_object_get(group, "site")))
		return peak_text_site(group, place, ret_text, size);
	/* A site without a stack begins with its type, which the headline has said. */
	if (type && strncmp(key, type, strlen(type)) == 0)
		key += strlen(type);
	return *key == ' ' ? key + 1 : key;
}

/* The groups beyond those that are shown, in one row. */
static void peak_text_rest(const struct peak_text *text, const json_t *peak, size_t shown)
{
	const json_t *groups = json_object_get(peak, "groups");
	uint64_t bytes = 0, buffers = 0;
	char what[64];

	if (shown == json_array_size(groups))
		return;
	for (size_t i = shown; i < json_array_size(groups); i++) {
		bytes += daemon_pages_number(json_array_get(groups, i), "bytes");
		buffers += daemon_pages_number(json_array_get(groups, i), "buffers");
	}
	(void)snprintf(what, sizeof(what), "%zu more; --json has all",
		       json_array_size(groups) - shown);
	peak_text_row(text, peak, bytes, buffers, what);
}

static void peak_text_groups(const struct peak_text *text, const json_t *peak)
{
	const json_t *groups = json_object_get(peak, "groups");
	uint64_t unknown = daemon_pages_number(peak, "unknown_bytes");
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	size_t shown = json_array_size(groups);
	char what[PEAK_TEXT_KEY];

	/* One line more says as much as one that tells how many more there are. */
	if (text->rows && shown > text->rows + 1)
		shown = text->rows;
	for (size_t i = 0; i < shown; i++) {
		const struct site site =
			site_json_read(json_object_get(json_array_get(groups, i), "site"));

		site_rows_add(&rows, &site);
	}
	site_rows_finish(&rows);
	for (size_t i = 0; i < shown; i++) {
		const json_t *group = json_array_get(groups, i);

		peak_text_row(text, peak, daemon_pages_number(group, "bytes"),
			      daemon_pages_number(group, "buffers"),
			      peak_text_what(group, site_rows_text(&rows, i), what, sizeof(what)));
	}
	peak_text_rest(text, peak, shown);
	if (unknown)
		peak_text_row(text, peak, unknown, 0, "not known: freed too long ago");
	session_find_tip(&rows);
}

static bool peak_text_has_same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key)) == 1;
}

/* Whether the same was live at both, on two devices of a process. */
static bool peak_text_is_same(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"pid",         "start_ns", "type",  "bytes",
					   "known_bytes", "exact",    "bound", "per_bank"};
	const json_t *of_a = json_object_get(a, "groups"), *of_b = json_object_get(b, "groups");

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!peak_text_has_same(a, b, keys[i]))
			return false;
	}
	if (peak_text_has_same(a, b, "device") || json_array_size(of_a) != json_array_size(of_b))
		return false;
	for (size_t i = 0; i < json_array_size(of_a); i++) {
		const json_t *x = json_array_get(of_a, i), *y = json_array_get(of_b, i);

		if (!peak_text_has_same(x, y, "key") || !peak_text_has_same(x, y, "bytes") ||
		    !peak_text_has_same(x, y, "buffers"))
			return false;
	}
	return true;
}

void peak_text_put(const struct peak_text *text, const json_t *peaks)
{
	size_t end, count = json_array_size(peaks);

	for (size_t i = 0; i < count && !ferror(text->out); i = end) {
		const json_t *peak = json_array_get(peaks, i);

		for (end = i + 1; end < count; end++) {
			if (!peak_text_is_same(peak, json_array_get(peaks, end)))
				break;
		}
		if (i > 0 && text->is_spaced)
			(void)fputc('\n', text->out);
		(void)fputs(text->indent, text->out);
		peak_text_devices(text->out, peaks, i, end);
		peak_text_head(text, peak, end - i > 1);
		peak_text_groups(text, peak);
	}
}

static int peak_text_compare_numbers(const json_t *a, const json_t *b, const char *key)
{
	uint64_t x = daemon_pages_number(a, key), y = daemon_pages_number(b, key);

	return bits_compare(x, y);
}

static int peak_text_compare(const void *left, const void *right)
{
	const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
	int r = peak_text_compare_numbers(b, a, "bytes");

	if (r == 0)
		r = peak_text_compare_numbers(a, b, "pid");
	if (r == 0)
		r = peak_text_compare_numbers(a, b, "start_ns");
	if (r == 0)
		r = strcmp(peak_text_or(a, "type", ""), peak_text_or(b, "type", ""));
	return r ? r : peak_text_compare_numbers(a, b, "device");
}

void peak_text_sort(json_t *peaks)
{
	size_t count = json_array_size(peaks);
	json_t **rows = must_alloc(count + 1, sizeof(json_t *));

	for (size_t i = 0; i < count; i++)
		rows[i] = json_incref(json_array_get(peaks, i));
	qsort(rows, count, sizeof(json_t *), peak_text_compare);
	(void)json_array_clear(peaks); /* cannot fail for an array */
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(peaks, rows[i]); /* there was room for it */
	free(rows);
}
