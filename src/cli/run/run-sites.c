/* SPDX-License-Identifier: Apache-2.0 */

/* What was left, by call site, and which of it the baseline has. */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/run/run-family.h"
#include "cli/run/run-report.h"
#include "model/merge.h"
#include "model/sites/name-stem.h"
#include "model/sites/stack.h"
#include "model/types.h"

/* Buffers with the same stack and name. */
struct report_part {
	struct call_site group;
	const char *calls;
};

const char *report_calls_key(const char *type, const char *calls, char *buffer, size_t size)
{
	(void)snprintf(buffer, size, "%s: %s", type, calls);
	return buffer;
}

const char *report_label(const char *type, const char *name, const char *phase, char *buffer,
			 size_t size)
{
	char stem[REPORT_LABEL];

	if (name)
		(void)snprintf(buffer, size, "%s %s", type, name_stem(name, stem, sizeof(stem)));
	else
		(void)snprintf(buffer, size, "%s%s%s", type, phase ? " in " : "",
			       phase ? phase : "");
	return buffer;
}

static const char *report_group_label(const struct call_site *group, char *buffer, size_t size)
{
	return report_label(types_name(group->type), group->name, group->phase, buffer, size);
}

const char *report_key(const struct report_site *site, char *buffer, size_t size)
{
	const struct call_site *group = report_group(site);

	if (*site->calls)
		return report_calls_key(types_name(group->type), site->calls, buffer, size);
	return report_group_label(group, buffer, size);
}

/* The order of sites. Without calls names are compared as labels have them. */
static int report_compare_parts(const void *left, const void *right)
{
	const struct report_part *a = left, *b = right;
	const char *phase = a->group.phase ? a->group.phase : "";
	int r;

	if (a->group.type != b->group.type)
		return bits_compare(a->group.type, b->group.type);
	r = strcmp(a->calls, b->calls);
	/* Of one build, lines tell sites apart; texts of a snapshot are interned. */
	if (r == 0 && *a->calls)
		r = (a->group.stack > b->group.stack) - (a->group.stack < b->group.stack);
	if (r || *a->calls)
		return r;
	r = name_stem_compare(a->group.name, b->group.name);
	return r ? r : strcmp(phase, b->group.phase ? b->group.phase : "");
}

/* Largest first; then by what is shown, so that the order is stable. */
static int report_compare_sizes(const void *left, const void *right)
{
	const struct report_site *a = left, *b = right;
	const struct call_site *x = report_group(a), *y = report_group(b);
	int r = bits_compare(y->bytes, x->bytes);

	if (r == 0)
		r = strcmp(x->name ? x->name : "", y->name ? y->name : "");
	if (r == 0)
		r = strcmp(a->calls, b->calls);
	return r ? r : bits_compare(x->type, y->type);
}

/* The calls of a stack, kept by the report. */
static const char *report_keep_calls(struct report *report, const struct stack *stack)
{
	char calls[STACK_LINE];

	return report->calls[report->call_count++] =
		       must_copy(stack_calls(stack, calls, sizeof(calls)));
}

/* One part for each stack and name, without ignored types. Return: their number. */
static size_t report_take_parts(struct report *report, uint32_t ignored,
				const struct group_list *list, struct report_part *parts)
{
	const struct stack *stack = NULL;
	const char *calls = NULL;
	size_t n = 0;

	for (size_t i = 0; i < list->name_count; i++) {
		const struct call_site *name = &list->names[i];

		if (ignored >> name->type & 1) {
			report->ignored_buffers += name->buffers;
			continue;
		}
		/* Those of one stack are adjacent. */
		if (!calls || stack != name->stack)
			calls = report_keep_calls(report, name->stack);
		stack = name->stack;
		parts[n++] = (struct report_part){.group = *name, .calls = calls};
	}
	return n;
}

/* Adds a site's parts up twice: by name, and by stack. */
static void report_add_site(struct report *report, const struct report_part *parts, size_t count)
{
	struct report_site *site = &report->sites[report->site_count++];
	struct call_site *names = must_alloc(count, sizeof(*names)),
			 *stacks = must_alloc(count, sizeof(*stacks));

	for (size_t i = 0; i < count; i++) {
		names[i] = stacks[i] = parts[i].group;
		names[i].stack = *parts[i].calls ? parts[0].group.stack : NULL;
		stacks[i].name = stacks[i].phase = NULL;
	}
	*site = (struct report_site){.calls = parts[0].calls};
	must_not_lack(group_list_consume(GROUP_SITE, names, count, &site->sum));
	must_not_lack(group_list_consume(GROUP_SITE, stacks, count, &site->stacks));
}

static void report_add_sites(struct report *report, struct report_part *parts, size_t count)
{
	if (count > 0)
		qsort(parts, count, sizeof(*parts), report_compare_parts);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1;
		     end < count && report_compare_parts(&parts[first], &parts[end]) == 0;)
			end++;
		report_add_site(report, &parts[first], end - first);
	}
	for (size_t i = 0; i < report->site_count; i++) {
		const struct call_site *group = report_group(&report->sites[i]);

		report->leaked_bytes = merge_add(report->leaked_bytes, group->bytes);
		report->leaked_buffers += group->buffers;
	}
}

/* What was left, as a baseline has it: by keys, which several sites may have, and by labels. */
static struct baseline *report_sums(const struct report *report)
{
	struct baseline *sums = baseline_new();
	char text[REPORT_KEY];

	for (size_t i = 0; i < report->site_count; i++) {
		const struct report_site *site = &report->sites[i];
		const struct group_list *sum = &site->sum;

		if (*site->calls)
			baseline_add(sums, BASELINE_SITES, report_key(site, text, sizeof(text)),
				     report_group(site)->bytes);
		for (size_t k = 0; k < sum->name_count; k++)
			baseline_add(sums, BASELINE_LABELS,
				     report_group_label(&sum->names[k], text, sizeof(text)),
				     sum->names[k].bytes);
	}
	return sums;
}

/*
 * A site is known if the baseline has it with its calls. If it has no stack, here or there, only
 * type and name identify it: then all sites with these are compared together.
 */
static bool report_is_known(const struct report_site *site, struct baseline *sums,
			    struct baseline *baseline)
{
	enum baseline_what what = *site->calls ? BASELINE_BARE : BASELINE_LABELS;
	char text[REPORT_KEY];
	const char *key = report_key(site, text, sizeof(text));

	if (*site->calls && baseline_bytes(baseline, BASELINE_SITES, key) >=
				    baseline_bytes(sums, BASELINE_SITES, key))
		return true;
	for (size_t i = 0; i < site->sum.name_count; i++) {
		const char *label = report_group_label(&site->sum.names[i], text, sizeof(text));

		if (baseline_bytes(baseline, what, label) <
		    baseline_bytes(sums, BASELINE_LABELS, label))
			return false;
	}
	return true;
}

static void report_judge(struct report *report, struct baseline *baseline)
{
	struct baseline *sums = report_sums(report);

	for (size_t i = 0; i < report->site_count; i++) {
		struct report_site *site = &report->sites[i];

		site->known = baseline && report_is_known(site, sums, baseline);
		if (!site->known) {
			report->new_bytes += report_group(site)->bytes;
			report->new_buffers += report_group(site)->buffers;
		}
	}
	baseline_free(sums);
}

static void report_fill(struct report *report, uint32_t ignored, struct baseline *baseline)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	CLEANUP_FREE struct report_part *parts = NULL;
	must_not_lack(group_buffers(report->family->ended, GROUP_SITE, false, &list));
	parts = must_alloc(list.name_count + 1, sizeof(*parts));
	report->calls = must_alloc(list.name_count + 1, sizeof(*report->calls));
	report->sites = must_alloc(list.name_count + 1, sizeof(*report->sites));
	report_add_sites(report, parts, report_take_parts(report, ignored, &list, parts));
	if (report->site_count > 0)
		qsort(report->sites, report->site_count, sizeof(*report->sites),
		      report_compare_sizes);
	report_judge(report, baseline);
}

static void report_count_held(struct report *report, uint32_t ignored)
{
	const struct snapshot *ended = report->family->ended;

	for (size_t i = 0; i < ended->incident_count; i++) {
		const struct snapshot_incident *incident = &ended->incidents[i];

		if (strcmp(incident->kind, TYPES_HELD_AT_CLOSE) != 0 ||
		    ignored >> incident->type & 1)
			continue;
		report->held_bytes += incident->size;
		report->held_buffers += incident->count;
	}
}

void report_init(struct report *report, const struct family *family, uint32_t ignored,
		 struct baseline *baseline)
{
	*report = (struct report){
		.family = family,
		.baseline = baseline,
		.is_tracked = family->end_count > 0 || family->still_running > 0,
	};
	report_count_held(report, ignored);
	report_fill(report, ignored, baseline);
}

void report_deinit(struct report *report)
{
	for (size_t i = 0; i < report->site_count; i++) {
		group_list_deinit(&report->sites[i].sum);
		group_list_deinit(&report->sites[i].stacks);
	}
	for (size_t i = 0; i < report->call_count; i++)
		free(report->calls[i]);
	free(report->calls);
	free(report->sites);
	*report = (struct report){0};
}
