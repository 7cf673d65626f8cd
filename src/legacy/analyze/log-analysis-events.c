/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How each event changes the state of an analysis.
 *
 * The server's log records what the server did, so its reference counts are followed, with one
 * exception: a live address allocated again with another size. No allocator hands out an address
 * twice, so the old buffer is gone and its free was missed; the server merely counts a reference
 * that will never be freed. These are ghosts here, and subtracted. The other logs record what the
 * application did: there the rules of a book apply (same size: one more reference; another size:
 * replaced).
 */

#include <errno.h>

#include "base/bits.h"
#include "legacy/analyze/log-analysis-private.h"

/* An event with its rows. */
struct log_analysis_step {
	const struct log_reader_event *event;
	struct log_analysis_device *device;
	struct log_analysis_key key;
};

static struct log_analysis_sum *log_analysis_sum_of(const struct log_analysis *analysis,
						    const struct log_analysis_node *node)
{
	uint32_t format = analysis->processes[node->process].format;

	return &analysis->devices[format][node->device]->sums[node->type];
}

static int log_analysis_note(struct log_analysis *analysis, const struct log_analysis_step *step,
			     enum log_analysis_kind kind, enum log_analysis_cause cause,
			     const struct log_analysis_node *node)
{
	const struct log_reader_event *event = step->event;

	return log_analysis_rows_find(
		analysis, &(struct log_analysis_finding){
				  .address = event->address,
				  .size = node ? node->size : 0,
				  .other_size = event->has_size && node && node->size != event->size
							? event->size
							: 0,
				  .line = event->line,
				  .file = analysis->file,
				  .process = step->key.process,
				  .device = event->device,
				  .type = node ? node->type : event->type,
				  .format = event->format,
				  .kind = kind,
				  .cause = cause,
			  });
}

/* Bytes come or go with a node. */
static void log_analysis_add(struct log_analysis *analysis, const struct log_analysis_node *node)
{
	struct log_analysis_sum *sum = log_analysis_sum_of(analysis, node);

	sum->live++;
	sum->live_bytes += node->size;
	sum->peak_bytes = bits_max(sum->peak_bytes, sum->live_bytes);
}

static void log_analysis_subtract(struct log_analysis *analysis,
				  const struct log_analysis_node *node)
{
	struct log_analysis_sum *sum = log_analysis_sum_of(analysis, node);

	sum->live--;
	sum->live_bytes -= node->size;
}

static int log_analysis_begin(struct log_analysis *analysis, const struct log_analysis_step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_node *node = NULL;
	uint32_t site;
	int r = log_analysis_rows_site(analysis, event, &site);

	if (r == 0)
		r = log_analysis_nodes_begin(analysis, &step->key, &node);
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
		log_analysis_sum_of(analysis, node)->reuses++;
	if (site != LOG_ANALYSIS_NONE) {
		analysis->sites[site].allocs++;
		analysis->sites[site].bytes += event->size;
	}
	log_analysis_add(analysis, node);
	return 0;
}

static void log_analysis_end(struct log_analysis *analysis, struct log_analysis_node *node,
			     enum log_analysis_state state)
{
	log_analysis_subtract(analysis, node);
	node->is_resized = false;
	if (state == LOG_ANALYSIS_FREED && node->site != LOG_ANALYSIS_NONE)
		analysis->sites[node->site].frees++;
	log_analysis_nodes_end(analysis, node, state);
}

/* Gone without a free: its address was allocated again. */
static void log_analysis_replace(struct log_analysis *analysis, struct log_analysis_node *node)
{
	log_analysis_subtract(analysis, node);
	if (node->site != LOG_ANALYSIS_NONE)
		analysis->sites[node->site].replaced++;
	log_analysis_nodes_end(analysis, node, LOG_ANALYSIS_FREED);
}

static bool log_analysis_is_live(const struct log_analysis_node *node)
{
	return node && node->state == LOG_ANALYSIS_LIVE;
}

/* A live node of the same place with another process. */
static struct log_analysis_node *log_analysis_other_process(struct log_analysis *analysis,
							    const struct log_analysis_key *key)
{
	uint32_t format = analysis->processes[key->process].format;
	struct log_analysis_key other = *key;

	/* The newest ones: the right one was probably active recently. */
	for (size_t n = 0, i = analysis->process_count; i-- > 0 && n < LOG_ANALYSIS_ELSEWHERE;
	     n++) {
		struct log_analysis_node *node;

		other.process = (uint32_t)i;
		if (i == key->process || analysis->processes[i].format != format)
			continue;
		node = log_analysis_nodes_find(analysis, &other);
		if (log_analysis_is_live(node))
			return node;
	}
	return NULL;
}

static bool log_analysis_on_other_device(const struct log_analysis *analysis,
					 const struct log_analysis_key *key)
{
	struct log_analysis_key other = *key;

	for (size_t i = 0; i < analysis->seen_device_count; i++) {
		other.device = analysis->seen_devices[i];
		if (other.device != key->device &&
		    log_analysis_is_live(log_analysis_nodes_find(analysis, &other)))
			return true;
	}
	return false;
}

/* Live, and allocated again with another size. */
static int log_analysis_resize(struct log_analysis *analysis, const struct log_analysis_step *step,
			       struct log_analysis_node *node)
{
	const struct log_reader_event *event = step->event;
	int r = log_analysis_note(analysis, step, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_WHILE_LIVE,
				  node);
	struct log_analysis_key key = step->key;
	/* What the server still counts of the old one. */
	uint32_t ghosts = event->refs > 0 ? event->refs - 1 : node->ghosts + node->refs;

	if (r < 0)
		return r;
	log_analysis_replace(analysis, node);
	key.process = node->process;
	key.type = node->type; /* the old server kept it, and a line about the size has none */
	r = log_analysis_begin(analysis, &(struct log_analysis_step){event, step->device, key});
	node = log_analysis_nodes_find(analysis, &key);
	if (r == 0 && log_analysis_is_live(node)) {
		node->refs = 1;
		node->ghosts = event->format == LOG_READER_SERVER ? ghosts : 0;
	}
	return r;
}

/* The server counts a reference to something. */
static int log_analysis_server_ref(struct log_analysis *analysis,
				   const struct log_analysis_step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_key key = step->key;
	struct log_analysis_node *node;

	key.type = LOG_READER_NO_TYPE;
	node = log_analysis_nodes_find(analysis, &key);
	if (!log_analysis_is_live(node)) {
		node = log_analysis_other_process(analysis, &key);
		analysis->merged += node != NULL;
	}
	/* Its first references are older than the log. */
	if (!node)
		return log_analysis_begin(analysis, step);
	/* Another size, unless an earlier line has reported it already. */
	if (node->size != event->size)
		return log_analysis_resize(analysis, step, node);
	node->refs = event->refs > node->ghosts ? event->refs - node->ghosts : 1;
	node->is_resized = false;
	return 0;
}

/* The second half of a size change: of a free that said so, or of a line about the size. */
static int log_analysis_resized_alloc(struct log_analysis *analysis,
				      const struct log_analysis_step *step,
				      struct log_analysis_node *node)
{
	int r;

	node->is_resized = false;
	if (log_analysis_is_live(node) && node->size != step->event->size)
		return log_analysis_resize(analysis, step, node);
	if (log_analysis_is_live(node)) {
		node->ghosts = 0; /* this server counts no reference to what is gone */
		return 0;
	}
	r = log_analysis_note(analysis, step, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_WHILE_LIVE,
			      node);
	return r < 0 ? r : log_analysis_begin(analysis, step);
}

static int log_analysis_alloc(struct log_analysis *analysis, const struct log_analysis_step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_sum *sum = &step->device->sums[event->type];
	struct log_analysis_node *node;

	if (event->is_hooked || (event->address == 0 && event->size == 0)) {
		sum->hooked++;
		return 0;
	}
	sum->allocs++;
	sum->bytes += event->size;
	analysis->processes[step->key.process].allocs++;
	/* Without frees no lifetimes are known. */
	if (!log_reader_format_has_frees(event->format))
		return 0;
	if (event->format == LOG_READER_SERVER && event->refs > 1)
		return log_analysis_server_ref(analysis, step);
	node = log_analysis_nodes_find(analysis, &step->key);
	if (node && node->is_resized)
		return log_analysis_resized_alloc(analysis, step, node);
	if (!log_analysis_is_live(node))
		return log_analysis_begin(analysis, step);
	if (event->format == LOG_READER_SERVER) {
		/* The server had forgotten the old one, so the application must have freed it. */
		log_analysis_replace(analysis, node);
		return log_analysis_begin(analysis, step);
	}
	if (node->size != event->size)
		return log_analysis_resize(analysis, step, node);
	node->refs += node->refs < UINT32_MAX;
	return 0;
}

/* A free that matches nothing live: finds out why. */
static int log_analysis_lost(struct log_analysis *analysis, const struct log_analysis_step *step,
			     struct log_analysis_node *node)
{
	const struct log_reader_event *event = step->event;
	enum log_analysis_cause cause =
		analysis->forgotten ? LOG_ANALYSIS_LONG_AGO : LOG_ANALYSIS_BEFORE_LOG;
	struct log_analysis_key any = step->key;

	if (node && node->state == LOG_ANALYSIS_FREED)
		return log_analysis_note(analysis, step, LOG_ANALYSIS_DOUBLE_FREE,
					 node->lives > 1 ? LOG_ANALYSIS_ADDRESS_REUSE
							 : LOG_ANALYSIS_FREED_BEFORE,
					 node);
	if (event->kind == LOG_READER_ALREADY_FREED)
		return log_analysis_note(analysis, step, LOG_ANALYSIS_DOUBLE_FREE,
					 LOG_ANALYSIS_FREED_BEFORE, NULL);
	if (event->address == 0) {
		uint64_t hooked = 0;

		for (size_t i = 0; i < LOG_ANALYSIS_TYPES; i++)
			hooked += step->device->sums[i].hooked;
		if (step->device->hooked_frees < hooked) {
			step->device->hooked_frees++;
			return 0;
		}
	}
	any.type = LOG_READER_NO_TYPE;
	if (node)
		cause = LOG_ANALYSIS_OWNER_ENDED;
	else if (log_analysis_is_live(log_analysis_nodes_find(analysis, &any)))
		cause = LOG_ANALYSIS_OTHER_TYPE;
	else if (log_analysis_other_process(analysis, &step->key))
		cause = LOG_ANALYSIS_OTHER_PROCESS;
	else if (log_analysis_on_other_device(analysis, &step->key))
		cause = LOG_ANALYSIS_OTHER_DEVICE;
	return log_analysis_note(analysis, step, LOG_ANALYSIS_UNKNOWN_FREE, cause, node);
}

/* The server freed something that it knew. */
static void log_analysis_server_free(struct log_analysis *analysis,
				     const struct log_analysis_step *step,
				     struct log_analysis_node *node)
{
	uint32_t refs = step->event->refs;

	refs = refs > node->ghosts ? refs - node->ghosts : 0;
	if (refs == 0)
		log_analysis_end(analysis, node, LOG_ANALYSIS_FREED);
	else
		node->refs = refs;
}

static int log_analysis_client_free(struct log_analysis *analysis,
				    const struct log_analysis_step *step,
				    struct log_analysis_node *node)
{
	int r = 0;

	if (step->event->has_size && step->event->size != node->size)
		r = log_analysis_note(analysis, step, LOG_ANALYSIS_SIZE_CHANGE,
				      LOG_ANALYSIS_AT_FREE, node);
	if (--node->refs == 0)
		log_analysis_end(analysis, node, LOG_ANALYSIS_FREED);
	return r;
}

static int log_analysis_freed(struct log_analysis *analysis, const struct log_analysis_step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_node *node = log_analysis_nodes_find(analysis, &step->key);
	bool is_known = event->kind == LOG_READER_FREE;
	int r;

	/* The pid in such a log is only that of the last process that started to write. */
	if (!log_analysis_is_live(node) && event->format == LOG_READER_STACK_TRACE) {
		struct log_analysis_node *other = log_analysis_other_process(analysis, &step->key);

		node = other ? other : node;
	}
	if (log_analysis_is_live(node) && event->is_resize) {
		log_analysis_replace(analysis, node);
		node->is_resized = true;
		return 0;
	}
	if (log_analysis_is_live(node)) {
		log_analysis_sum_of(analysis, node)->frees++;
		analysis->processes[node->process].frees++;
		if (event->format != LOG_READER_SERVER)
			return log_analysis_client_free(analysis, step, node);
		r = is_known ? 0
			     : log_analysis_note(analysis, step, LOG_ANALYSIS_UNKNOWN_FREE,
						 LOG_ANALYSIS_RESTART, node);
		log_analysis_server_free(analysis, step, node);
		return r;
	}
	if (event->format != LOG_READER_SERVER || !is_known)
		return log_analysis_lost(analysis, step, node);
	step->device->sums[node ? node->type : event->type].frees++;
	analysis->processes[step->key.process].frees++;
	/* The late free of a replaced buffer, which the server took for a free of the new one. */
	if (node && node->ghosts > 0) {
		node->ghosts--;
		return log_analysis_note(analysis, step, LOG_ANALYSIS_DOUBLE_FREE,
					 LOG_ANALYSIS_ADDRESS_REUSE, node);
	}
	step->device->sums[event->type].early_frees++;
	return 0;
}

static int log_analysis_resized(struct log_analysis *analysis, const struct log_analysis_step *step)
{
	struct log_analysis_node *node = log_analysis_nodes_find(analysis, &step->key);
	int r;

	if (!log_analysis_is_live(node) || node->size == step->event->size)
		return 0;
	r = log_analysis_resize(analysis, step, node);
	node = log_analysis_nodes_find(analysis, &step->key);
	if (log_analysis_is_live(node))
		node->is_resized = true;
	return r;
}

/* Circular buffers and kernels: only sums are known. */
static int log_analysis_counted(const struct log_analysis_step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_sum *sum = &step->device->sums[event->type];

	if (event->kind == LOG_READER_COUNTED_ALLOC) {
		sum->allocs++;
		sum->live++;
		sum->bytes += event->size;
		sum->live_bytes += event->size;
	} else {
		sum->frees++;
		sum->live -= sum->live > 0;
		sum->live_bytes -= bits_min(sum->live_bytes, event->size);
	}
	/* It leaves out what ended processes had. But sums of sizes are more exact. */
	if (event->has_total && (sum->live_bytes > event->total + event->total_rounded ||
				 event->total > sum->live_bytes + event->total_rounded))
		sum->live_bytes = event->total;
	sum->peak_bytes = bits_max(sum->peak_bytes, sum->live_bytes);
	return 0;
}

static int log_analysis_dead(struct log_analysis *analysis, uint32_t row)
{
	analysis->processes[row].has_ended = true;
	analysis->processes[row].ended_live = 0;
	while (analysis->processes[row].live != LOG_ANALYSIS_NONE) {
		struct log_analysis_node *node = &analysis->nodes[analysis->processes[row].live];
		int r = log_analysis_rows_leak(analysis, node, LOG_ANALYSIS_PROCESS_ENDED);

		if (r < 0)
			return r;
		analysis->processes[row].ended_live++;
		log_analysis_end(analysis, node, LOG_ANALYSIS_ENDED);
	}
	return 0;
}

/* Circular buffers or kernels of an ended process. The line names no device, so only if there is no choice. */
static void log_analysis_removed_counted(struct log_analysis *analysis,
					 const struct log_reader_event *event)
{
	struct log_analysis_sum *only = NULL;

	for (uint32_t i = 0; i < BOOK_DEVICES; i++) {
		struct log_analysis_device *device = analysis->devices[event->format][i];

		if (!device || device->sums[event->type].live == 0)
			continue;
		if (only)
			return;
		only = &device->sums[event->type];
	}
	if (!only)
		return;
	only->live -= bits_min(only->live, event->count);
	only->live_bytes -= only->live ? bits_min(only->live_bytes, event->size) : only->live_bytes;
}

/* Events that have no device. */
static int log_analysis_general(struct log_analysis *analysis, const struct log_reader_event *event)
{
	struct log_analysis_process *process;
	uint32_t row;
	int r;

	if (event->kind == LOG_READER_REJECTED || event->kind == LOG_READER_STARTED) {
		*(event->kind == LOG_READER_REJECTED ? &analysis->rejected : &analysis->restarts) +=
			1;
		return 0;
	}
	r = log_analysis_rows_process(analysis, event, &row);
	if (r < 0 || event->kind == LOG_READER_DEAD)
		return r < 0 ? r : log_analysis_dead(analysis, row);
	if (event->type != LOG_READER_NO_TYPE)
		log_analysis_removed_counted(analysis, event);
	process = &analysis->processes[row];
	/* If only one device was chosen, those of the others are not missing. */
	if (event->type == LOG_READER_NO_TYPE && analysis->only_device == LOG_ANALYSIS_NONE) {
		analysis->unseen += event->count - bits_min(event->count, process->ended_live);
		process->ended_live = 0;
	}
	return 0;
}

/* Events that have a device and a process. */
static int log_analysis_device_event(struct log_analysis *analysis,
				     const struct log_analysis_step *step)
{
	enum log_reader_kind kind = step->event->kind;

	if (kind == LOG_READER_ALLOC)
		return log_analysis_alloc(analysis, step);
	if (kind == LOG_READER_RESIZED)
		return log_analysis_resized(analysis, step);
	return log_analysis_freed(analysis, step);
}

static int log_analysis_take_whole(struct log_analysis *analysis,
				   const struct log_reader_event *event)
{
	struct log_analysis_step step = {
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

	if (event->kind == LOG_READER_DEAD || event->kind == LOG_READER_REMOVED ||
	    event->kind == LOG_READER_REJECTED || event->kind == LOG_READER_STARTED)
		return log_analysis_general(analysis, event);
	if (event->kind == LOG_READER_DESTRUCTOR ||
	    (analysis->only_device != LOG_ANALYSIS_NONE && event->device != analysis->only_device))
		return 0;
	r = log_analysis_rows_device(analysis, event, &step.device);
	if (r == 0 &&
	    (event->kind == LOG_READER_COUNTED_ALLOC || event->kind == LOG_READER_COUNTED_FREE))
		return log_analysis_counted(&step);
	if (r == 0)
		r = log_analysis_rows_process(analysis, event, &step.key.process);
	return r < 0 ? r : log_analysis_device_event(analysis, &step);
}

int log_analysis_take(void *context, const struct log_reader_event *event)
{
	struct log_analysis *analysis = context;
	struct log_reader_event whole = *event;
	int r = event->lacks_device || event->lacks_address
			? log_analysis_brief_complete(analysis, &whole)
			: 0;

	return r < 0 ? r : log_analysis_take_whole(analysis, &whole);
}
