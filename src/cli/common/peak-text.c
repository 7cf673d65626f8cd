/* SPDX-License-Identifier: Apache-2.0 */

/* Peaks in words. */

#include "cli/common/peak-text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/snapshot-peak.h"
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
static void peak_text_devices(FILE *out, const struct snapshot_peak *peaks, size_t count)
{
	fprintf(out, "device%s %" PRIu32, count > 1 ? "s" : "", peaks->device);
	for (size_t i = 1; i < count; i++) {
		size_t first = i;

		if (peaks[i].device != peaks[i - 1].device + 1) {
			fprintf(out, ", %" PRIu32, peaks[i].device);
			continue;
		}
		while (i + 1 < count && peaks[i + 1].device == peaks[i].device + 1)
			i++;
		fprintf(out, "%s%" PRIu32, i > first ? "-" : ", ", peaks[i].device);
	}
}

static void peak_text_head(const struct peak_text *text, const struct snapshot *snapshot,
			   const struct snapshot_peak *peak, size_t devices)
{
	const struct snapshot_process *process = &snapshot->processes[peak->process];
	char size[TEXT_NUMBER_SIZE], when[PEAK_TEXT_TIME], again[PEAK_TEXT_TIME];

	(void)fputs(text->indent, text->out);
	peak_text_devices(text->out, peak, devices);
	fprintf(text->out, " %s peak %s%s%s at %s (pid %" PRIu32 " ", types_name(peak->type),
		peak->bound == SNAPSHOT_AT_LEAST  ? "at least "
		: peak->bound == SNAPSHOT_AT_MOST ? "at most "
						  : "",
		text_size(peak->bytes, size), devices > 1 ? " each" : "",
		peak_text_time(peak->time_ns, when), process->pid);
	text_put(text->out, process->comm);
	fprintf(text->out, "%s)", process->alive || text->is_over ? "" : ", ended");
	peak_text_time(peak->time_ns, when);
	if (strcmp(peak_text_time(peak->moment_ns, again), when) != 0)
		fprintf(text->out, ", reached again at %s", again);
	if (peak->known < peak->bytes)
		fprintf(text->out, ", %s of it known\n", text_size(peak->known, size));
	else
		fprintf(text->out, "%s\n", peak->exact ? ", exact" : "");
}

/* Bytes, their share of the peak, buffers (0 = not known how many) and what they are. */
static void peak_text_row(const struct peak_text *text, const struct snapshot_peak *peak,
			  uint64_t bytes, uint64_t buffers, const char *what)
{
	char size[TEXT_NUMBER_SIZE], count[TEXT_NUMBER_SIZE] = "";
	double share = 100 * (double)bytes / (double)bits_max(peak->bytes, 1);

	if (buffers)
		(void)snprintf(count, sizeof(count), "%" PRIu64, buffers);
	fprintf(text->out, "%s  %10s  %5.1f%%  %7s  ", text->indent, text_size(bytes, size), share,
		count);
	text_put(text->out, *what ? what : "-");
	(void)fputc('\n', text->out);
}

/* The groups beyond those that are shown, in one row. */
static void peak_text_rest(const struct peak_text *text, const struct snapshot_peak *peak,
			   const struct group_list *list, size_t shown)
{
	uint64_t bytes = 0, buffers = 0;
	char what[64];

	if (shown == list->count)
		return;
	for (size_t i = shown; i < list->count; i++) {
		bytes += list->groups[i].bytes;
		buffers += list->groups[i].buffers;
	}
	(void)snprintf(what, sizeof(what), "%zu more; --json has all", list->count - shown);
	peak_text_row(text, peak, bytes, buffers, what);
}

static void peak_text_groups(const struct peak_text *text, const struct snapshot *snapshot,
			     const struct snapshot_peak *peak, const struct group_list *list)
{
	char key[PEAK_TEXT_KEY];
	size_t shown = list->count;

	/* One line more says as much as one that tells how many more there are. */
	if (text->rows && list->count > text->rows + 1)
		shown = text->rows;
	for (size_t i = 0; i < shown; i++) {
		const struct group *group = &list->groups[i];
		const char *what = text->kind == GROUP_SITE ? group_place(group, key, sizeof(key))
							    : group_key(snapshot, text->kind, group,
									key, sizeof(key));

		peak_text_row(text, peak, group->bytes, group->buffers, what ? what : "-");
	}
	peak_text_rest(text, peak, list, shown);
	if (snapshot_peak_unknown(peak))
		peak_text_row(text, peak, snapshot_peak_unknown(peak), 0,
			      "not known: freed too long ago");
}

/* Whether the same was live at both, on two devices of a process. */
static bool peak_text_is_same(const struct snapshot_peak *a, const struct group_list *of_a,
			      const struct snapshot_peak *b, const struct group_list *of_b)
{
	if (a->process != b->process || a->type != b->type || a->device == b->device ||
	    a->bytes != b->bytes || a->known != b->known || a->exact != b->exact ||
	    a->bound != b->bound || of_a->count != of_b->count)
		return false;
	for (size_t i = 0; i < of_a->count; i++) {
		const struct group *x = &of_a->groups[i], *y = &of_b->groups[i];

		/* A snapshot's texts are interned. */
		if (x->bytes != y->bytes || x->buffers != y->buffers || x->stack != y->stack ||
		    x->name != y->name || x->phase != y->phase)
			return false;
	}
	return true;
}

int peak_text_put(const struct peak_text *text, const struct snapshot *snapshot)
{
	const struct snapshot_peak *peaks = snapshot->peaks;
	size_t end;

	for (size_t i = 0; i < snapshot->peak_count && !ferror(text->out); i = end) {
		CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
		int r = group_peak(snapshot, &peaks[i], text->kind, &list);

		for (end = i + 1; r == 0 && end < snapshot->peak_count; end++) {
			CLEANUP(group_list_deinit) struct group_list other = GROUP_LIST_NULL;

			r = group_peak(snapshot, &peaks[end], text->kind, &other);
			if (r < 0 || !peak_text_is_same(&peaks[i], &list, &peaks[end], &other))
				break;
		}
		if (r < 0)
			return r;
		if (i > 0 && text->is_spaced)
			(void)fputc('\n', text->out);
		peak_text_head(text, snapshot, &peaks[i], end - i);
		peak_text_groups(text, snapshot, &peaks[i], &list);
	}
	return 0;
}
