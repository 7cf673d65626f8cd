/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What each event does to the state of an analysis.
 *
 * The server's log tells what the server did, so its count of references is followed, with one exception: a
 * live address allocated again with another size. No allocator hands out an address twice, so the old
 * buffer is gone and its free was missed; the server only counts a reference that nobody will ever free.
 * Here these are ghosts, and subtracted. The other logs tell what the application did: there the rules of a
 * book apply (the same size: one more reference; another size: replaced).
 */

#include <errno.h>

#include "base/bits.h"
#include "compat/logs/log-analysis-private.h"

/* An event with its rows. */
struct analysis_step {
	const struct logread_event *event;
	struct analysis_device *device;
	struct analysis_key key;
};

static struct analysis_sum *analysis_sum_of(const struct analysis *analysis,
					    const struct analysis_node *node)
{
	uint32_t format = analysis->processes[node->process].format;

	return &analysis->devices[format][node->device]->sums[node->type];
}

static int analysis_note(struct analysis *analysis, const struct analysis_step *step,
			 enum analysis_kind kind, enum analysis_cause cause,
			 const struct analysis_node *node)
{
	const struct logread_event *event = step->event;

	return analysis_rows_find(
		analysis, &(struct analysis_finding){
				  .address = event->address,
				  .size = node ? node->size : 0,
				  .other_size = event->has_size && node && node->size != event->size
							? event->size
							: 0,
				  .line = event->line,
				  .file = analysis->file,
				  .process = step->key.process,
				  .device = event->device,
				  .type = node ? node->type : (uint8_t)event->type,
				  .format = (uint8_t)event->format,
				  .kind = (uint8_t)kind,
				  .cause = (uint8_t)cause,
			  });
}

/* Bytes come or go with a node. */
static void analysis_add(struct analysis *analysis, const struct analysis_node *node)
{
	struct analysis_sum *sum = analysis_sum_of(analysis, node);

	sum->live++;
	sum->live_bytes += node->size;
	sum->peak_bytes = bits_max(sum->peak_bytes, sum->live_bytes);
}

static void analysis_subtract(struct analysis *analysis, const struct analysis_node *node)
{
	struct analysis_sum *sum = analysis_sum_of(analysis, node);

	sum->live--;
	sum->live_bytes -= node->size;
}

static int analysis_begin(struct analysis *analysis, const struct analysis_step *step)
{
	const struct logread_event *event = step->event;
	struct analysis_node *node = NULL;
	uint32_t site;
	int r = analysis_rows_site(analysis, event, &site);

	if (r == 0)
		r = analysis_nodes_begin(analysis, &step->key, &node);
	if (r == -ENOSPC) {
		analysis->is_inexact = true;
		return 0;
	}
	if (r < 0 || !node)
		return r;
	node->size = event->size;
	node->line = event->line;
	node->file = analysis->file;
	node->site = site;
	node->refs = event->refs > 0 ? event->refs : 1;
	if (node->lives > 1)
		analysis_sum_of(analysis, node)->reuses++;
	if (site != ANALYSIS_NONE) {
		analysis->sites[site].allocs++;
		analysis->sites[site].bytes += event->size;
	}
	analysis_add(analysis, node);
	return 0;
}

static void analysis_end(struct analysis *analysis, struct analysis_node *node,
			 enum analysis_state state)
{
	analysis_subtract(analysis, node);
	if (state == ANALYSIS_FREED && node->site != ANALYSIS_NONE)
		analysis->sites[node->site].frees++;
	analysis_nodes_end(analysis, node, state);
}

/* Gone without a free: its place was allocated again. */
static void analysis_replace(struct analysis *analysis, struct analysis_node *node)
{
	analysis_subtract(analysis, node);
	if (node->site != ANALYSIS_NONE)
		analysis->sites[node->site].replaced++;
	analysis_nodes_end(analysis, node, ANALYSIS_FREED);
}

static bool analysis_is_live(const struct analysis_node *node)
{
	return node && node->state == ANALYSIS_LIVE;
}

/* A live node of the same place with another process. */
static struct analysis_node *analysis_other_process(struct analysis *analysis,
						    const struct analysis_key *key)
{
	uint32_t format = analysis->processes[key->process].format;
	struct analysis_key other = *key;

	/* The newest ones: whoever is meant was there recently. */
	for (size_t n = 0, i = analysis->process_count; i-- > 0 && n < ANALYSIS_ELSEWHERE; n++) {
		struct analysis_node *node;

		other.process = (uint32_t)i;
		if (i == key->process || analysis->processes[i].format != format)
			continue;
		node = analysis_nodes_find(analysis, &other);
		if (analysis_is_live(node))
			return node;
	}
	return NULL;
}

static bool analysis_on_other_device(const struct analysis *analysis,
				     const struct analysis_key *key)
{
	struct analysis_key other = *key;

	for (size_t i = 0; i < analysis->seen_device_count; i++) {
		other.device = analysis->seen_devices[i];
		if (other.device != key->device &&
		    analysis_is_live(analysis_nodes_find(analysis, &other)))
			return true;
	}
	return false;
}

/* Live, and allocated again with another size. */
static int analysis_resize(struct analysis *analysis, const struct analysis_step *step,
			   struct analysis_node *node)
{
	const struct logread_event *event = step->event;
	int r = analysis_note(analysis, step, ANALYSIS_SIZE_CHANGE, ANALYSIS_WHILE_LIVE, node);
	struct analysis_key key = step->key;
	/* What the server still counts of the old one. */
	uint32_t ghosts = event->refs > 0 ? event->refs - 1 : node->ghosts + node->refs;

	if (r < 0)
		return r;
	analysis_replace(analysis, node);
	key.process = node->process;
	key.type = node->type; /* the old server kept it, and a line about the size has none */
	r = analysis_begin(analysis, &(struct analysis_step){event, step->device, key});
	node = analysis_nodes_find(analysis, &key);
	if (r == 0 && analysis_is_live(node)) {
		node->refs = 1;
		node->ghosts = event->format == LOGREAD_SERVER ? ghosts : 0;
	}
	return r;
}

/* The server counts a reference to something. */
static int analysis_server_ref(struct analysis *analysis, const struct analysis_step *step)
{
	const struct logread_event *event = step->event;
	struct analysis_key key = step->key;
	struct analysis_node *node;

	key.type = LOGREAD_NO_TYPE;
	node = analysis_nodes_find(analysis, &key);
	if (!analysis_is_live(node)) {
		node = analysis_other_process(analysis, &key);
		analysis->merged += node != NULL;
	}
	/* The first of its references lie before the log. */
	if (!node)
		return analysis_begin(analysis, step);
	/* Another size, unless a line before this one has told it already. */
	if (node->size != event->size)
		return analysis_resize(analysis, step, node);
	node->refs = event->refs > node->ghosts ? event->refs - node->ghosts : 1;
	return 0;
}

static int analysis_alloc(struct analysis *analysis, const struct analysis_step *step)
{
	const struct logread_event *event = step->event;
	struct analysis_sum *sum = &step->device->sums[event->type];
	struct analysis_node *node;

	if (event->is_hooked || (event->address == 0 && event->size == 0)) {
		sum->hooked++;
		return 0;
	}
	sum->allocs++;
	sum->bytes += event->size;
	analysis->processes[step->key.process].allocs++;
	/* Without frees there are no lives. */
	if (!logread_format_has_frees(event->format))
		return 0;
	if (event->format == LOGREAD_SERVER && event->refs > 1)
		return analysis_server_ref(analysis, step);
	node = analysis_nodes_find(analysis, &step->key);
	if (!analysis_is_live(node))
		return analysis_begin(analysis, step);
	if (event->format == LOGREAD_SERVER) {
		/* It did not know the old one any more; and the application must have freed it. */
		analysis_replace(analysis, node);
		return analysis_begin(analysis, step);
	}
	if (node->size != event->size)
		return analysis_resize(analysis, step, node);
	node->refs += node->refs < UINT32_MAX;
	return 0;
}

/* A free of nothing that lives: why? */
static int analysis_lost(struct analysis *analysis, const struct analysis_step *step,
			 struct analysis_node *node)
{
	const struct logread_event *event = step->event;
	enum analysis_cause cause = analysis->forgotten ? ANALYSIS_LONG_AGO : ANALYSIS_BEFORE_LOG;
	struct analysis_key any = step->key;

	if (node && node->state == ANALYSIS_FREED)
		return analysis_note(
			analysis, step, ANALYSIS_DOUBLE_FREE,
			node->lives > 1 ? ANALYSIS_ADDRESS_REUSE : ANALYSIS_FREED_BEFORE, node);
	if (event->kind == LOGREAD_ALREADY_FREED)
		return analysis_note(analysis, step, ANALYSIS_DOUBLE_FREE, ANALYSIS_FREED_BEFORE,
				     NULL);
	if (event->address == 0) {
		uint64_t hooked = 0;

		for (size_t i = 0; i < ANALYSIS_TYPES; i++)
			hooked += step->device->sums[i].hooked;
		if (step->device->hooked_frees < hooked) {
			step->device->hooked_frees++;
			return 0;
		}
	}
	any.type = LOGREAD_NO_TYPE;
	if (node)
		cause = ANALYSIS_OWNER_ENDED;
	else if (analysis_is_live(analysis_nodes_find(analysis, &any)))
		cause = ANALYSIS_OTHER_TYPE;
	else if (analysis_other_process(analysis, &step->key))
		cause = ANALYSIS_OTHER_PROCESS;
	else if (analysis_on_other_device(analysis, &step->key))
		cause = ANALYSIS_OTHER_DEVICE;
	return analysis_note(analysis, step, ANALYSIS_UNKNOWN_FREE, cause, node);
}

/* The server freed something that it knew. */
static void analysis_server_free(struct analysis *analysis, const struct analysis_step *step,
				 struct analysis_node *node)
{
	uint32_t refs = step->event->refs;

	refs = refs > node->ghosts ? refs - node->ghosts : 0;
	if (refs == 0)
		analysis_end(analysis, node, ANALYSIS_FREED);
	else
		node->refs = refs;
}

static int analysis_client_free(struct analysis *analysis, const struct analysis_step *step,
				struct analysis_node *node)
{
	int r = 0;

	if (step->event->has_size && step->event->size != node->size)
		r = analysis_note(analysis, step, ANALYSIS_SIZE_CHANGE, ANALYSIS_AT_FREE, node);
	if (--node->refs == 0)
		analysis_end(analysis, node, ANALYSIS_FREED);
	return r;
}

static int analysis_freed(struct analysis *analysis, const struct analysis_step *step)
{
	const struct logread_event *event = step->event;
	struct analysis_node *node = analysis_nodes_find(analysis, &step->key);
	bool is_known = event->kind == LOGREAD_FREE;
	int r;

	/* The pid of such a log is only that of the last process that began to write. */
	if (!analysis_is_live(node) && event->format == LOGREAD_STACK_TRACE) {
		struct analysis_node *other = analysis_other_process(analysis, &step->key);

		node = other ? other : node;
	}
	if (analysis_is_live(node)) {
		analysis_sum_of(analysis, node)->frees++;
		analysis->processes[node->process].frees++;
		if (event->format != LOGREAD_SERVER)
			return analysis_client_free(analysis, step, node);
		r = is_known ? 0
			     : analysis_note(analysis, step, ANALYSIS_UNKNOWN_FREE,
					     ANALYSIS_RESTART, node);
		analysis_server_free(analysis, step, node);
		return r;
	}
	if (event->format != LOGREAD_SERVER || !is_known)
		return analysis_lost(analysis, step, node);
	step->device->sums[node ? node->type : event->type].frees++;
	analysis->processes[step->key.process].frees++;
	/* The late free of a buffer that was replaced, taken by the server for one of the new. */
	if (node && node->ghosts > 0) {
		node->ghosts--;
		return analysis_note(analysis, step, ANALYSIS_DOUBLE_FREE, ANALYSIS_ADDRESS_REUSE,
				     node);
	}
	step->device->sums[event->type].early_frees++;
	return 0;
}

static int analysis_resized(struct analysis *analysis, const struct analysis_step *step)
{
	struct analysis_node *node = analysis_nodes_find(analysis, &step->key);

	return analysis_is_live(node) && node->size != step->event->size
		       ? analysis_resize(analysis, step, node)
		       : 0;
}

/* Circular buffers and kernels: only sums are known. */
static int analysis_counted(const struct analysis_step *step)
{
	const struct logread_event *event = step->event;
	struct analysis_sum *sum = &step->device->sums[event->type];

	if (event->kind == LOGREAD_COUNTED_ALLOC) {
		sum->allocs++;
		sum->live++;
		sum->bytes += event->size;
		sum->live_bytes += event->size;
		sum->peak_bytes = bits_max(sum->peak_bytes, sum->live_bytes);
	} else {
		sum->frees++;
		sum->live -= sum->live > 0;
		sum->live_bytes -= bits_min(sum->live_bytes, event->size);
	}
	return 0;
}

static int analysis_dead(struct analysis *analysis, uint32_t row)
{
	analysis->processes[row].has_ended = true;
	analysis->processes[row].ended_live = 0;
	while (analysis->processes[row].live != ANALYSIS_NONE) {
		struct analysis_node *node = &analysis->nodes[analysis->processes[row].live];
		int r = analysis_rows_leak(analysis, node, ANALYSIS_PROCESS_ENDED);

		if (r < 0)
			return r;
		analysis->processes[row].ended_live++;
		analysis_end(analysis, node, ANALYSIS_ENDED);
	}
	return 0;
}

/* Events that have no device. */
static int analysis_general(struct analysis *analysis, const struct logread_event *event)
{
	struct analysis_process *process;
	uint32_t row;
	int r;

	if (event->kind == LOGREAD_REJECTED || event->kind == LOGREAD_STARTED) {
		*(event->kind == LOGREAD_REJECTED ? &analysis->rejected : &analysis->restarts) += 1;
		return 0;
	}
	r = analysis_rows_process(analysis, event, &row);
	if (r < 0 || event->kind == LOGREAD_DEAD)
		return r < 0 ? r : analysis_dead(analysis, row);
	process = &analysis->processes[row];
	/* With one device chosen the others' are not missing. */
	if (event->type == LOGREAD_NO_TYPE && analysis->only_device == ANALYSIS_NONE) {
		analysis->unseen += event->count - bits_min(event->count, process->ended_live);
		process->ended_live = 0;
	}
	return 0;
}

/* Events that have a device and a process. */
static int analysis_device_event(struct analysis *analysis, const struct analysis_step *step)
{
	enum logread_kind kind = step->event->kind;

	if (kind == LOGREAD_ALLOC)
		return analysis_alloc(analysis, step);
	if (kind == LOGREAD_RESIZED)
		return analysis_resized(analysis, step);
	return analysis_freed(analysis, step);
}

int analysis_take(void *context, const struct logread_event *event)
{
	struct analysis *analysis = context;
	struct analysis_step step = {
		.event = event,
		.key =
			{
				.address = event->address,
				.device = event->device,
				.type = event->type,
				.has_size = event->has_size,
				.size = event->size,
			},
	};
	int r;

	if (event->kind == LOGREAD_DEAD || event->kind == LOGREAD_REMOVED ||
	    event->kind == LOGREAD_REJECTED || event->kind == LOGREAD_STARTED)
		return analysis_general(analysis, event);
	if (event->kind == LOGREAD_DESTRUCTOR ||
	    (analysis->only_device != ANALYSIS_NONE && event->device != analysis->only_device))
		return 0;
	r = analysis_rows_device(analysis, event, &step.device);
	if (r == 0 && (event->kind == LOGREAD_COUNTED_ALLOC || event->kind == LOGREAD_COUNTED_FREE))
		return analysis_counted(&step);
	if (r == 0)
		r = analysis_rows_process(analysis, event, &step.key.process);
	return r < 0 ? r : analysis_device_event(analysis, &step);
}
