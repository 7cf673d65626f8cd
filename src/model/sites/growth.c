/* SPDX-License-Identifier: Apache-2.0 */

/* Sites are kept sorted by key, so that adding a snapshot is a merge of two sorted lists. */

#include "model/sites/growth.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "model/merge.h"
#include "model/sites/group.h"
#include "model/sites/name-stem.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"

#define GROWTH_SURVIVORS_NS UINT64_C(600000000000) /* older buffers say nothing about the rate */
#define GROWTH_POINTS_NS UINT64_C(5000000000)
#define GROWTH_HIGH_NS UINT64_C(180000000000) /* three minutes, and so many buffers */
#define GROWTH_HIGH_BUFFERS 12u

/* Texts are in the growth's own pool: equal texts are equal pointers. */
static int growth_compare_keys(const void *left, const void *right)
{
	const struct growth_site *a = left, *b = right;
	int r = process_id_compare(a->process, b->process);

	if (r == 0)
		r = bits_compare(a->last.type, b->last.type);
	if (r == 0)
		r = bits_compare((uintptr_t)a->stem, (uintptr_t)b->stem);
	if (r == 0)
		r = bits_compare((uintptr_t)a->last.phase, (uintptr_t)b->last.phase);
	if (r == 0)
		r = bits_compare((uintptr_t)a->last.stack, (uintptr_t)b->last.stack);
	return r;
}

static int growth_keep(struct growth *growth, const char *text, const char **ret_text)
{
	*ret_text = text ? pool_text(&growth->texts, text, strlen(text)) : NULL;
	return text && !*ret_text ? -ENOMEM : 0;
}

/* What identifies a site, and its name. */
static int growth_keep_key(struct growth *growth, const struct call_site *group,
			   struct growth_site *site)
{
	char stem[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];
	int r = 0;

	site->last.stack = stack_copy(&growth->texts, group->stack);
	if (group->stack && !site->last.stack)
		r = -ENOMEM;
	if (r == 0 && !group->stack && group->name)
		r = growth_keep(growth, name_stem(group->name, stem, sizeof(stem)), &site->stem);
	if (r == 0)
		r = growth_keep(growth, group->stack ? NULL : group->phase, &site->last.phase);
	return r == 0 ? growth_keep(growth, group->name, &site->last.name) : r;
}

/* The names of a site, which replace those of the snapshot before. */
static int growth_keep_names(struct growth *growth, const struct group_list *list,
			     const struct call_site *group, struct growth_site *site)
{
	int r = 0;

	site->last.first_name = growth->name_count;
	site->listed = bits_min(group->names, GROUP_NAMES_LISTED);
	for (size_t i = 0; r == 0 && i < site->listed; i++) {
		const struct call_site *from = &list->names[group->first_name + i];
		struct call_site *to = &growth->names[growth->name_count++];

		*to = (struct call_site){.bytes = from->bytes, .buffers = from->buffers};
		r = growth_keep(growth, from->name, &to->name);
		if (r == 0)
			r = growth_keep(growth, from->phase, &to->phase);
	}
	return r;
}

/*
 * The sites of one snapshot, sorted by key. The names become its own, with room for those that there
 * were.
 */
static int growth_sample(struct growth *growth, const struct snapshot *snapshot,
			 struct growth_site **ret_sites, size_t *ret_count)
{
	CLEANUP_FREE struct growth_site *sites = NULL;
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	size_t n = 0;
	int r;

	r = group_buffers(snapshot, GROUP_SITE, true, &list);
	if (r < 0)
		return r;
	sites = calloc(list.count + 1, sizeof(*sites));
	growth->names = calloc(list.name_count + growth->name_count + 1, sizeof(*growth->names));
	growth->name_count = 0;
	if (!sites || !growth->names)
		return -ENOMEM;
	for (size_t i = 0; i < list.count; i++) {
		const struct call_site *group = &list.groups[i];
		const struct snapshot_process *process = &snapshot->processes[group->process];
		struct growth_site *site = &sites[n];

		if (!process->alive)
			continue;
		*site = (struct growth_site){
			.process = process->id,
			.last = *group,
		};
		if (growth_keep(growth, process->comm, &site->comm) < 0 ||
		    growth_keep_key(growth, group, site) < 0 ||
		    growth_keep_names(growth, &list, group, site) < 0)
			return -ENOMEM;
		n++;
	}
	qsort(sites, n, sizeof(*sites), growth_compare_keys);
	*ret_sites = cleanup_steal(sites);
	*ret_count = n;
	return 0;
}

/* A site before and now; either may be missing, which counts as 0 bytes. */
static struct growth_site growth_step(const struct growth_site *was, const struct growth_site *is,
				      bool first_sample)
{
	struct growth_site site;
	uint64_t before = was ? was->last.bytes : 0;

	assert(was || is);
	site = was ? *was : *is;
	site.last = is ? is->last
		       : (struct call_site){.type = was->last.type,
					    .stack = was->last.stack,
					    .phase = was->last.phase};
	site.listed = is ? is->listed : 0;
	if (first_sample) {
		site.first_bytes = site.last.bytes;
		site.first_buffers = site.last.buffers;
	} else {
		site.rises += site.last.bytes > before;
		site.fell = site.fell || site.last.bytes < before;
	}
	return site;
}

/* A site stays as it was, with its names of then. */
static struct growth_site growth_stay(struct growth *growth, const struct call_site *names,
				      const struct growth_site *was)
{
	struct growth_site site = *was;

	site.last.first_name = growth->name_count;
	for (size_t i = 0; i < was->listed; i++)
		growth->names[growth->name_count++] = names[was->last.first_name + i];
	return site;
}

int growth_add(struct growth *growth, const struct snapshot *snapshot)
{
	CLEANUP_FREE struct growth_site *sample = NULL;
	CLEANUP_FREE struct growth_site *merged = NULL;
	CLEANUP_FREE struct call_site *names = growth->names;
	size_t count = 0, i = 0, k = 0, n = 0;
	int r;

	growth->names = NULL;
	r = growth_sample(growth, snapshot, &sample, &count);
	if (r < 0)
		return r;
	merged = calloc(growth->count + count + 1, sizeof(*merged));
	if (!merged)
		return -ENOMEM;
	while (i < growth->count || k < count) {
		const struct growth_site *was = i < growth->count ? &growth->sites[i] : NULL;
		const struct growth_site *is = k < count ? &sample[k] : NULL;
		int order = !was ? 1 : !is ? -1 : growth_compare_keys(was, is);

		if (order < 0 && growth->keeps_ended &&
		    !snapshot_find_living(snapshot, was->process))
			merged[n++] = growth_stay(growth, names, was);
		else
			merged[n++] = growth_step(order <= 0 ? was : NULL, order >= 0 ? is : NULL,
						  growth->samples == 0);
		i += order <= 0;
		k += order >= 0;
	}
	free(growth->sites);
	growth->sites = cleanup_steal(merged);
	growth->count = n;
	if (growth->samples++ == 0)
		growth->first_ns = snapshot->time_ns;
	growth->last_ns = snapshot->time_ns;
	return 0;
}

/* The site of some buffers; NULL: it was not there when the snapshot was added. */
static int growth_find(struct growth *growth, const struct snapshot *snapshot,
		       const struct call_site *group, struct growth_site **ret_site)
{
	const struct snapshot_process *process = &snapshot->processes[group->process];
	struct growth_site key = {.process = process->id, .last = {.type = group->type}};
	int r = growth_keep_key(growth, group, &key);

	*ret_site = NULL;
	if (r == 0 && growth->count > 0)
		*ret_site = bsearch(&key, growth->sites, growth->count, sizeof(key),
				    growth_compare_keys);
	return r;
}

/* From the first to the last birth, as far as they are of the time that a past has. */
static double growth_survivors(const struct growth_birth *births, size_t count, uint64_t now_ns)
{
	uint64_t from = now_ns - bits_min(now_ns, GROWTH_SURVIVORS_NS);
	double bytes = 0;
	size_t first = 0;

	while (first < count && births[first].time_ns < from)
		first++;
	for (size_t i = first + 1; i < count; i++)
		bytes += (double)births[i].bytes;
	if (first + 2 >= count || births[first].time_ns >= now_ns)
		return 0;
	return bytes / ((double)(now_ns - births[first].time_ns) / 1e9);
}

static void growth_judge(struct growth *growth, struct growth_site *site,
			 const struct growth_past *past, const struct growth_birth *births,
			 size_t count)
{
	uint64_t watched = growth->last_ns - growth->first_ns;
	struct growth_verdict verdict;

	if (!past) {
		site->survivors_per_second = growth_survivors(births, count, growth->last_ns);
		return;
	}
	verdict = growth_past_judge(past, site->last.type, births, count);
	if (verdict.span_ns > site->past.span_ns)
		site->past = verdict;
	site->has_past = site->has_past || past->known_ns;
	if (past->known_ns && past->end_ns - past->known_ns >= GROWTH_PAST_LEAST_NS)
		site->past_is_known = true;
	/* The daemon's last point may be a second old, and more on a busy machine. */
	watched = bits_max(watched, GROWTH_POINTS_NS);
	if (site->past_is_known && site->last.bytes > site->first_bytes &&
	    growth_past_has_seen(past, site->last.type, watched,
				 site->last.bytes - site->first_bytes))
		site->was_held = true;
}

int growth_recall(struct growth *growth, const struct snapshot *snapshot,
		  const struct growth_past *past)
{
	CLEANUP_FREE struct growth_birth *births = NULL;
	CLEANUP_FREE struct call_site *groups = NULL;
	size_t count = snapshot->buffer_count;
	int r = group_births(snapshot, &groups);

	if (r < 0)
		return r;
	births = calloc(count + 1, sizeof(*births));
	if (!births)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		births[i] = (struct growth_birth){groups[i].oldest_ns, groups[i].bytes};
	for (size_t first = 0, end; first < count; first = end) {
		const struct snapshot_process *process =
			&snapshot->processes[groups[first].process];
		struct growth_site *site;

		for (end = first + 1;
		     end < count && call_site_compare(&groups[first], &groups[end]) == 0;)
			end++;
		if (!process->alive || (past && process->id.pid != past->pid))
			continue;
		r = growth_find(growth, snapshot, &groups[first], &site);
		if (r < 0)
			return r;
		if (site)
			growth_judge(growth, site, past, &births[first], end - first);
	}
	if (past && past->known_ns)
		growth->past_ns = bits_max(growth->past_ns, past->end_ns - past->known_ns);
	return 0;
}

uint64_t growth_span(const struct growth *growth, const struct growth_site *site)
{
	return site->past.span_ns ? site->past.span_ns : growth->last_ns - growth->first_ns;
}

uint64_t growth_bytes(const struct growth_site *site)
{
	if (site->past.span_ns)
		return bits_min(site->past.bytes, site->last.bytes);
	return site->last.bytes - bits_min(site->first_bytes, site->last.bytes);
}

uint64_t growth_buffers(const struct growth_site *site)
{
	if (site->past.span_ns)
		return bits_min(site->past.buffers, site->last.buffers);
	return site->last.buffers - bits_min(site->first_buffers, site->last.buffers);
}

/* A few steps seen in a few seconds are a bad measure: the ages of all that is alive are better. */
double growth_per_second(const struct growth *growth, const struct growth_site *site)
{
	double seconds = (double)growth_span(growth, site) / 1e9;
	double rate = seconds > 0 ? (double)growth_bytes(site) / seconds : 0;

	if (!site->past.span_ns && site->survivors_per_second > 0 &&
	    site->survivors_per_second < rate)
		return site->survivors_per_second;
	return rate;
}

enum growth_confidence growth_confidence(const struct growth *growth,
					 const struct growth_site *site)
{
	uint64_t span = growth_span(growth, site);

	if (!site->past.span_ns)
		return span >= GROWTH_PAST_LEAST_NS ? GROWTH_MEDIUM : GROWTH_LOW;
	return span >= GROWTH_HIGH_NS && site->past.buffers >= GROWTH_HIGH_BUFFERS ? GROWTH_HIGH
										   : GROWTH_MEDIUM;
}

const char *growth_confidence_name(enum growth_confidence confidence)
{
	static const char *const names[] = {
		[GROWTH_LOW] = "low", [GROWTH_MEDIUM] = "medium", [GROWTH_HIGH] = "high"};

	return names[confidence];
}

static bool growth_was_seen(const struct growth *growth, const struct growth_site *site)
{
	return !site->fell && site->rises >= (growth->samples > 3 ? 2u : 1u);
}

/* Whether a process is only at its beginning: then loading looks like growing. */
static bool growth_is_undecided(const struct growth_site *site, bool is_asked)
{
	return site->has_past && !site->past_is_known && !is_asked;
}

static bool growth_is_wanted(const struct growth *growth, const struct growth_site *site,
			     bool is_asked)
{
	if (site->past.span_ns)
		return true;
	if (!growth_was_seen(growth, site) || site->was_held)
		return false;
	return is_asked || !site->has_past;
}

/* Most first. */
static int growth_compare_speed(const void *left, const void *right)
{
	const struct growth_site *a = left, *b = right;
	int r = bits_compare(growth_bytes(b), growth_bytes(a));

	if (r == 0)
		r = bits_compare(a->process.pid, b->process.pid);
	if (r == 0)
		r = strcmp(a->stem ? a->stem : "", b->stem ? b->stem : "");
	return r ? r : growth_compare_keys(left, right);
}

void growth_finish(struct growth *growth, bool is_asked)
{
	uint32_t young = 0;
	size_t n = 0;

	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_site site = growth->sites[i];

		/* Sites of a process are together. */
		if (growth_was_seen(growth, &site) && site.process.pid != young &&
		    growth_is_undecided(&site, is_asked)) {
			growth->too_young++;
			young = site.process.pid;
		}
		if (growth_is_wanted(growth, &site, is_asked))
			growth->sites[n++] = site;
	}
	growth->count = n;
	if (n > 0)
		qsort(growth->sites, n, sizeof(*growth->sites), growth_compare_speed);
}

void growth_deinit(struct growth *growth)
{
	free(growth->sites);
	free(growth->names);
	pool_deinit(&growth->texts);
	*growth = GROWTH_NULL;
}

void growth_line_add(struct growth_line *line, uint64_t time_ns, uint64_t bytes)
{
	double s, from_mean;

	if (line->count == 0) {
		line->first_ns = time_ns;
		line->first_bytes = bytes;
	}
	s = time_ns > line->first_ns ? (double)(time_ns - line->first_ns) / 1e9 : 0;
	line->count++;
	line->last_ns = bits_max(line->first_ns, time_ns);
	line->last_bytes = bytes;
	/* Updated point by point, so that large numbers do not lose the precision of small ones. */
	from_mean = s - line->mean_s;
	line->mean_s += from_mean / (double)line->count;
	line->mean_bytes += ((double)bytes - line->mean_bytes) / (double)line->count;
	line->product += from_mean * ((double)bytes - line->mean_bytes);
	line->spread += from_mean * (s - line->mean_s);
}

void growth_trend_add(struct growth_trend *trend, const struct growth_line *line)
{
	if (line->count == 0)
		return;
	if (trend->first_ns == 0 || line->first_ns < trend->first_ns)
		trend->first_ns = line->first_ns;
	trend->last_ns = bits_max(trend->last_ns, line->last_ns);
	trend->first_bytes = merge_add(trend->first_bytes, line->first_bytes);
	trend->last_bytes = merge_add(trend->last_bytes, line->last_bytes);
	if (line->spread > 0)
		trend->per_second += line->product / line->spread;
}
