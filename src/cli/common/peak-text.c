/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks in words. */

#include "cli/common/peak-text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers/peak.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/session.h"
#include "model/sites/site-rows.h"
#include "model/snapshot.h"
#include "model/types.h"

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

/* "device 0", "devices 0-3, 5": of peaks in the order of their devices. */
static void peak_text_devices(FILE *out, const struct peak_row *peaks, size_t count)
{
	fprintf(out, "device%s %" PRIu32, count > 1 ? "s" : "", peaks[0].device);
	for (size_t i = 1; i < count; i++) {
		size_t begin = i;

		if (peaks[i].device != peaks[i - 1].device + 1) {
			fprintf(out, ", %" PRIu32, peaks[i].device);
			continue;
		}
		while (i + 1 < count && peaks[i + 1].device == peaks[i].device + 1)
			i++;
		fprintf(out, "%s%" PRIu32, i > begin ? "-" : ", ", peaks[i].device);
	}
}

static const char *peak_text_type(const struct peak_row *peak)
{
	const char *type = types_name(peak->type);

	return type ? type : "?";
}

/*
 * ", 72.0 KiB in each of 12 banks, 864.0 KiB together": what a region must have; that of L1 is passed per bank.
 * Nothing if it is not known.
 */
static void peak_text_per_bank(const struct peak_text *text, const struct peak_row *peak)
{
	const struct peak_per_bank *per_bank = &peak->per_bank;
	bool is_exact = per_bank->bound && strcmp(per_bank->bound, "exact") == 0;
	bool is_l1 = strncmp(peak_text_type(peak), "L1", 2) == 0;
	char size[TEXT_NUMBER_SIZE];
	uint64_t all;

	if (!per_bank->bytes)
		return;
	fprintf(text->out, ", %s%s in each ", is_exact ? "" : "at least ",
		text_size(per_bank->bytes, size));
	if (per_bank->banks && !is_l1 &&
	    !__builtin_mul_overflow(per_bank->bytes, per_bank->banks, &all))
		fprintf(text->out, "of %" PRIu32 " banks, %s together", per_bank->banks,
			text_size(all, size));
	else
		fprintf(text->out, "bank");
}

static void peak_text_head(const struct peak_text *text, const struct peak_row *peak, bool is_mesh)
{
	char size[TEXT_NUMBER_SIZE], when[PEAK_TEXT_TIME], again[PEAK_TEXT_TIME];

	fprintf(text->out, " %s peak %s%s%s at %s (pid %" PRIu32 " ", peak_text_type(peak),
		peak->bound == SNAPSHOT_AT_LEAST  ? "at least "
		: peak->bound == SNAPSHOT_AT_MOST ? "at most "
						  : "",
		text_size(peak->bytes, size), is_mesh ? " each" : "",
		peak_text_time(peak->time_ns, when), peak->pid);
	text_put(text->out, peak->comm ? peak->comm : "?");
	fprintf(text->out, "%s)", peak->is_ended && !text->is_over ? ", ended" : "");
	if (strcmp(peak_text_time(peak->moment_ns, again), when) != 0)
		fprintf(text->out, ", reached again at %s", again);
	if (peak->unknown)
		fprintf(text->out, ", %s of it known", text_size(peak->known, size));
	else
		fprintf(text->out, "%s", peak->is_exact ? ", exact" : "");
	peak_text_per_bank(text, peak);
	(void)fputc('\n', text->out);
}

/* Bytes, their share of the peak, buffers (0 = not known how many) and what they are. */
static void peak_text_row(const struct peak_text *text, const struct peak_row *peak, uint64_t bytes,
			  uint64_t buffers, const char *what)
{
	uint64_t all = bits_max(peak->bytes, 1);
	char size[TEXT_NUMBER_SIZE], count[TEXT_NUMBER_SIZE] = "";

	if (buffers)
		(void)snprintf(count, sizeof(count), "%" PRIu64, buffers);
	fprintf(text->out, "%s  %10s  %5.1f%%  %7s  ", text->indent, text_size(bytes, size),
		100 * (double)bytes / (double)all, count);
	text_put(text->out, *what ? what : "-");
	(void)fputc('\n', text->out);
}

/* A call site: its names, and its line of code. Others: what they have in common. */
static const char *peak_text_what(const struct buffers_group *group, const char *place,
				  char *ret_text, size_t size)
{
	const struct site_names *names = &group->site.names;
	const char *type = types_name(group->site.type), *key = group->key ? group->key : "-";

	if (group->site.stack.site) {
		if (names->count > 1)
			(void)snprintf(ret_text, size, "%" PRIu64 " names at %s", names->count,
				       place);
		else
			(void)snprintf(ret_text, size, "%s%s%s", names->name ? names->name : "",
				       names->name ? " at " : "", place);
		return ret_text;
	}
	/* A site without a stack begins with its type, which the headline has said. */
	if (group->is_site && type && strncmp(key, type, strlen(type)) == 0)
		key += strlen(type);
	return *key == ' ' ? key + 1 : key;
}

/* The groups beyond those that are shown, in one row. */
static void peak_text_rest(const struct peak_text *text, const struct peak_row *peak, size_t shown,
			   struct buffers_group_room *room)
{
	const struct buffers_groups *groups = &peak->groups;
	uint64_t bytes = 0, buffers = 0;
	char what[64];

	if (shown == groups->count)
		return;
	for (size_t i = shown; i < groups->count; i++) {
		const struct buffers_group *group = buffers_groups_at(groups, i, room);

		bytes += group->bytes;
		buffers += group->buffers;
	}
	(void)snprintf(what, sizeof(what), "%zu more; --json has all", groups->count - shown);
	peak_text_row(text, peak, bytes, buffers, what);
}

static void peak_text_groups(const struct peak_text *text, const struct peak_row *peak)
{
	const struct buffers_groups *groups = &peak->groups;
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	struct buffers_group_room room;
	size_t shown = groups->count;
	char what[PEAK_TEXT_KEY];

	/* One line more says as much as one that tells how many more there are. */
	if (text->rows && shown > text->rows + 1)
		shown = text->rows;
	for (size_t i = 0; i < shown; i++) {
		const struct site site =
			call_stack_site(buffers_groups_at(groups, i, &room)->site.stack.site);

		site_rows_add(&rows, &site);
	}
	site_rows_finish(&rows);
	for (size_t i = 0; i < shown; i++) {
		const struct buffers_group *group = buffers_groups_at(groups, i, &room);

		peak_text_row(text, peak, group->bytes, group->buffers,
			      peak_text_what(group, site_rows_text(&rows, i), what, sizeof(what)));
	}
	peak_text_rest(text, peak, shown, &room);
	if (peak->unknown)
		peak_text_row(text, peak, peak->unknown, 0, "not known: freed too long ago");
	session_find_tip(&rows);
}

static bool peak_text_is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool peak_text_has_same_groups(const struct buffers_groups *a,
				      const struct buffers_groups *b)
{
	struct buffers_group_room of_a, of_b;
	bool is_same = a->count == b->count;

	for (size_t i = 0; is_same && i < a->count; i++) {
		const struct buffers_group *x = buffers_groups_at(a, i, &of_a);
		const struct buffers_group *y = buffers_groups_at(b, i, &of_b);

		is_same = peak_text_is_same_text(x->key, y->key) && x->bytes == y->bytes &&
			  x->buffers == y->buffers;
	}
	return is_same;
}

/* Whether the same was live at both, on two devices of a process. */
static bool peak_text_is_same(const struct peak_row *a, const struct peak_row *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns && a->type == b->type &&
	       a->bytes == b->bytes && a->known == b->known && a->is_exact == b->is_exact &&
	       a->bound == b->bound && a->has_per_bank == b->has_per_bank &&
	       a->per_bank.bytes == b->per_bank.bytes && a->per_bank.banks == b->per_bank.banks &&
	       peak_text_is_same_text(a->per_bank.bound, b->per_bank.bound) &&
	       a->device != b->device && peak_text_has_same_groups(&a->groups, &b->groups);
}

void peak_text_put(const struct peak_text *text, const struct peak_list *peaks)
{
	size_t end;

	for (size_t i = 0; i < peaks->count && !ferror(text->out); i = end) {
		const struct peak_row *peak = &peaks->rows[i];

		for (end = i + 1; end < peaks->count; end++) {
			if (!peak_text_is_same(peak, &peaks->rows[end]))
				break;
		}
		if (i > 0 && text->is_spaced)
			(void)fputc('\n', text->out);
		(void)fputs(text->indent, text->out);
		peak_text_devices(text->out, peak, end - i);
		peak_text_head(text, peak, end - i > 1);
		peak_text_groups(text, peak);
	}
}

static int peak_text_compare(const void *left, const void *right)
{
	const struct peak_row *a = left, *b = right;
	int r = bits_compare(b->bytes, a->bytes);

	if (r == 0)
		r = bits_compare(a->pid, b->pid);
	if (r == 0)
		r = bits_compare(a->start_ns, b->start_ns);
	if (r == 0)
		r = strcmp(peak_text_type(a), peak_text_type(b));
	return r ? r : bits_compare(a->device, b->device);
}

void peak_text_sort(struct peak_list *peaks)
{
	if (peaks->count > 0)
		qsort(peaks->rows, peaks->count, sizeof(*peaks->rows), peak_text_compare);
}
