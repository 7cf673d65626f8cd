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
 *
 * Lines as people quote them in reports lack what is taken from the buffers that are known: a free without an
 * address is that of the newest live buffer of its size, one without a device is on the device that has the address.
 */

#include "base/bits.h"
#include "legacy/analyze/log-analysis-private.h"

#define EVENTS_LOOKS 65536u /* buffers that a free without an address is compared with */

/* An event with its rows. */
struct step {
	const struct log_reader_event *event;
	struct log_analysis_process *process;
	struct log_analysis_device *device;
};

/* The node of an event, if it were of that type. */
static struct log_analysis_node *find(const struct log_analysis *analysis, const struct step *step,
				      uint32_t type)
{
	return log_analysis_nodes_find(analysis, step->event, step->process, step->event->device,
				       type);
}

static void note(struct log_analysis *analysis, const struct step *step,
		 enum log_analysis_kind kind, enum log_analysis_cause cause,
		 const struct log_analysis_node *node)
{
	const struct log_reader_event *event = step->event;
	bool differs = event->has_size && node && node->size != event->size;
	const struct log_analysis_finding finding = {
		.process = step->process,
		.path = analysis->paths[analysis->file],
		.last_path = analysis->paths[analysis->file],
		.address = event->address,
		.size = node ? node->size : 0,
		.other_size = differs ? event->size : 0,
		.count = event->is_report ? event->count : 1,
		.line = event->line,
		.last_line = event->line,
		.file = analysis->file,
		.device = event->device,
		.type = node ? node->type : event->type,
		.format = event->format,
		.kind = kind,
		.cause = cause,
	};

	if (event->is_report)
		log_analysis_rows_report(analysis, &finding);
	else
		log_analysis_rows_find(analysis, &finding);
}

static void end_freed(struct log_analysis *analysis, struct log_analysis_node *node)
{
	node->site->sum.frees++;
	node->is_resized = false;
	log_analysis_nodes_end(analysis, node, LOG_ANALYSIS_FREED);
}

/* Gone without a free: its address was allocated again. */
static void replace(struct log_analysis *analysis, struct log_analysis_node *node)
{
	node->site->sum.replaced++;
	log_analysis_nodes_end(analysis, node, LOG_ANALYSIS_FREED);
}

/* A live node of the same place with another process. */
static struct log_analysis_node *of_other_process(struct log_analysis *analysis,
						  const struct step *step, uint32_t type)
{
	/* The newest ones: the right one was probably active recently. */
	for (size_t n = 0, i = analysis->process_count; i-- > 0 && n < LOG_ANALYSIS_ELSEWHERE;
	     n++) {
		struct step other = {step->event, analysis->processes[i], step->device};
		struct log_analysis_node *node;

		if (other.process == step->process || other.process->format != step->event->format)
			continue;
		node = find(analysis, &other, type);
		if (log_analysis_is_live(node))
			return node;
	}
	return NULL;
}

/* The first device but its own that has the address. Return: whether there is one. */
static bool on_other_device(const struct log_analysis *analysis, const struct step *step,
			    uint32_t type)
{
	for (size_t i = 0; i < analysis->seen_device_count; i++) {
		uint32_t device = analysis->seen_devices[i];

		if (device != step->event->device &&
		    log_analysis_is_live(log_analysis_nodes_find(analysis, step->event,
								 step->process, device, type)))
			return true;
	}
	return false;
}

/* Live, and allocated again with another size. */
static void resize(struct log_analysis *analysis, const struct step *step,
		   struct log_analysis_node *node)
{
	const struct log_reader_event *event = step->event;
	/* What the server still counts of the old one. */
	uint32_t ghosts = event->refs > 0 ? event->refs - 1 : node->ghosts + node->refs;

	note(analysis, step, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_WHILE_LIVE, node);
	replace(analysis, node);
	/* The old server kept the type, and a line about the size has none. */
	node = log_analysis_nodes_begin(analysis, event, node->process, node->type);
	if (!node)
		return;
	node->refs = 1;
	node->ghosts = event->format == LOG_READER_SERVER ? ghosts : 0;
}

/* The server counts a reference to something. */
static void server_ref(struct log_analysis *analysis, const struct step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_node *node = find(analysis, step, LOG_READER_NO_TYPE);

	if (!log_analysis_is_live(node)) {
		node = of_other_process(analysis, step, LOG_READER_NO_TYPE);
		analysis->merged += node != NULL;
	}
	if (!node) { /* its first references are older than the log */
		(void)log_analysis_nodes_begin(analysis, event, step->process, event->type);
	} else if (node->size != event->size) { /* unless an earlier line has reported it already */
		resize(analysis, step, node);
	} else {
		node->refs = event->refs > node->ghosts ? event->refs - node->ghosts : 1;
		node->is_resized = false;
	}
}

/* The second half of a size change: of a free that said so, or of a line about the size. */
static void resized_alloc(struct log_analysis *analysis, const struct step *step,
			  struct log_analysis_node *node)
{
	node->is_resized = false;
	if (!log_analysis_is_live(node)) {
		note(analysis, step, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_WHILE_LIVE, node);
		(void)log_analysis_nodes_begin(analysis, step->event, step->process,
					       step->event->type);
	} else if (node->size != step->event->size) {
		resize(analysis, step, node);
	} else {
		node->ghosts = 0; /* this server counts no reference to what is gone */
	}
}

static void alloc(struct log_analysis *analysis, const struct step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_sum *sum = &step->device->sums[event->type];
	bool is_server = event->format == LOG_READER_SERVER;
	struct log_analysis_node *node;

	if (event->is_hooked || (event->address == 0 && event->size == 0)) {
		sum->hooked++;
		return;
	}
	sum->allocs++;
	sum->bytes += event->size;
	step->process->sum.allocs++;
	/* Without frees no lifetimes are known. */
	if (!log_reader_format_has_frees(event->format))
		return;
	node = find(analysis, step, event->type);
	if (is_server && event->refs > 1) {
		server_ref(analysis, step);
	} else if (node && node->is_resized) {
		resized_alloc(analysis, step, node);
	} else if (node && node->is_listed && node->size == event->size) {
		node->is_listed = false; /* its line comes after its process's end */
	} else if (!log_analysis_is_live(node) || is_server) {
		/* The server had forgotten the old one, so the application must have freed it. */
		if (log_analysis_is_live(node))
			replace(analysis, node);
		(void)log_analysis_nodes_begin(analysis, event, step->process, event->type);
	} else if (node->size != event->size) {
		resize(analysis, step, node);
	} else {
		node->refs += node->refs < UINT32_MAX;
	}
}

/* Whether nothing is behind the address 0: a free of what was hooked. */
static bool is_hooked_free(struct log_analysis_device *device)
{
	uint64_t hooked = 0;

	for (size_t i = 0; i < LOG_ANALYSIS_TYPES; i++)
		hooked += device->sums[i].hooked;
	if (device->hooked_frees >= hooked)
		return false;
	device->hooked_frees++;
	return true;
}

/* A free that matches nothing live: finds out why. */
static void lost(struct log_analysis *analysis, const struct step *step,
		 struct log_analysis_node *node)
{
	const struct log_reader_event *event = step->event;
	enum log_analysis_cause cause =
		analysis->forgotten ? LOG_ANALYSIS_LONG_AGO : LOG_ANALYSIS_BEFORE_LOG;
	bool is_freed = node && node->state == LOG_ANALYSIS_FREED;

	if (is_freed || event->kind == LOG_READER_ALREADY_FREED) {
		note(analysis, step, LOG_ANALYSIS_DOUBLE_FREE,
		     is_freed && node->lives > 1 ? LOG_ANALYSIS_ADDRESS_REUSE
						 : LOG_ANALYSIS_FREED_BEFORE,
		     is_freed ? node : NULL);
		return;
	}
	if (event->address == 0 && is_hooked_free(step->device))
		return;
	if (node)
		cause = LOG_ANALYSIS_OWNER_ENDED;
	else if (log_analysis_is_live(find(analysis, step, LOG_READER_NO_TYPE)))
		cause = LOG_ANALYSIS_OTHER_TYPE;
	else if (of_other_process(analysis, step, event->type))
		cause = LOG_ANALYSIS_OTHER_PROCESS;
	else if (on_other_device(analysis, step, event->type))
		cause = LOG_ANALYSIS_OTHER_DEVICE;
	note(analysis, step, LOG_ANALYSIS_UNKNOWN_FREE, cause, node);
}

/* The server freed something that it knew. */
static void server_free(struct log_analysis *analysis, const struct step *step,
			struct log_analysis_node *node)
{
	uint32_t refs = step->event->refs;

	if (step->event->kind != LOG_READER_FREE)
		note(analysis, step, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_RESTART, node);
	if (refs > node->ghosts)
		node->refs = refs - node->ghosts;
	else
		end_freed(analysis, node);
}

static void client_free(struct log_analysis *analysis, const struct step *step,
			struct log_analysis_node *node)
{
	if (step->event->has_size && step->event->size != node->size)
		note(analysis, step, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_AT_FREE, node);
	if (--node->refs == 0)
		end_freed(analysis, node);
}

/* The server freed what the log does not have. */
static void early_free(struct log_analysis *analysis, const struct step *step,
		       struct log_analysis_node *node)
{
	step->device->sums[node ? node->type : step->event->type].frees++;
	step->process->sum.frees++;
	/* The late free of a replaced buffer, which the server took for a free of the new one. */
	if (node && node->ghosts > 0) {
		node->ghosts--;
		note(analysis, step, LOG_ANALYSIS_DOUBLE_FREE, LOG_ANALYSIS_ADDRESS_REUSE, node);
	} else {
		step->device->sums[step->event->type].early_frees++;
	}
}

static void freed(struct log_analysis *analysis, const struct step *step)
{
	const struct log_reader_event *event = step->event;
	struct log_analysis_node *node = find(analysis, step, event->type), *other;

	/* The pid in such a log is only that of the last process that started to write. */
	if (!log_analysis_is_live(node) && event->format == LOG_READER_STACK_TRACE) {
		other = of_other_process(analysis, step, event->type);
		node = other ? other : node;
	}
	if (!log_analysis_is_live(node)) {
		if (event->format == LOG_READER_SERVER && event->kind == LOG_READER_FREE)
			early_free(analysis, step, node);
		else
			lost(analysis, step, node);
	} else if (event->is_resize) {
		replace(analysis, node);
		node->is_resized = true;
	} else {
		log_analysis_rows_sum(analysis, node)->frees++;
		node->process->sum.frees++;
		if (event->format == LOG_READER_SERVER)
			server_free(analysis, step, node);
		else
			client_free(analysis, step, node);
	}
}

static void resized(struct log_analysis *analysis, const struct step *step)
{
	struct log_analysis_node *node = find(analysis, step, step->event->type);

	if (!log_analysis_is_live(node) || node->size == step->event->size)
		return;
	resize(analysis, step, node);
	node = find(analysis, step, step->event->type);
	if (log_analysis_is_live(node))
		node->is_resized = true;
}

/* What ttmemd has found out. */
static void report(struct log_analysis *analysis, const struct step *step)
{
	enum log_reader_kind kind = step->event->kind;

	note(analysis, step,
	     kind == LOG_READER_ALREADY_FREED  ? LOG_ANALYSIS_DOUBLE_FREE
	     : kind == LOG_READER_UNKNOWN_FREE ? LOG_ANALYSIS_UNKNOWN_FREE
					       : LOG_ANALYSIS_SIZE_CHANGE,
	     LOG_ANALYSIS_REPORTED, NULL);
}

/* Circular buffers and kernels: only sums are known. */
static void counted(const struct step *step)
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
}

/* What a shortened line lacks, from what is known. */
static void complete(struct log_analysis *analysis, struct log_reader_event *event)
{
	struct step step = {event, log_analysis_rows_process(analysis, event), NULL};
	struct log_analysis_node *node;
	uint32_t looks = 0;

	for (size_t i = 0; event->lacks_device && i < analysis->seen_device_count; i++) {
		event->device = analysis->seen_devices[i];
		if (find(analysis, &step, LOG_READER_NO_TYPE))
			return;
	}
	event->device = 0;
	TAILQ_FOREACH(node, &step.process->live, list)
	{
		if (event->lacks_device || looks++ == EVENTS_LOOKS)
			return;
		if (node->size == event->size) {
			event->address = node->address;
			event->device = node->device;
			event->type = node->type;
			return;
		}
	}
}

void log_analysis_take(void *context, const struct log_reader_event *event)
{
	struct log_analysis *analysis = context;
	struct log_reader_event whole = *event;
	struct step step = {.event = &whole};

	if (event->kind != LOG_READER_LEFT_BUFFER)
		log_analysis_ended_end_list(analysis);
	if (event->lacks_device || event->lacks_address)
		complete(analysis, &whole);
	analysis->rejected += whole.kind == LOG_READER_REJECTED;
	analysis->restarts += whole.kind == LOG_READER_STARTED;
	if (whole.kind >= LOG_READER_DEAD && whole.kind <= LOG_READER_LEFT)
		log_analysis_ended_event(analysis, &whole);
	if (whole.kind == LOG_READER_LEFT_BUFFER)
		log_analysis_ended_listed(analysis, &whole);
	if (whole.kind <= LOG_READER_LEFT_BUFFER ||
	    (analysis->has_only_device && whole.device != analysis->only_device))
		return;
	step.device = log_analysis_rows_device(analysis, whole.format, whole.device);
	if (whole.kind == LOG_READER_COUNTED_ALLOC || whole.kind == LOG_READER_COUNTED_FREE) {
		counted(&step);
		return;
	}
	step.process = log_analysis_rows_process(analysis, &whole);
	if (whole.is_report) {
		report(analysis, &step);
		return;
	}
	step.process->has_events = true;
	if (whole.kind == LOG_READER_ALLOC)
		alloc(analysis, &step);
	else if (whole.kind == LOG_READER_RESIZED)
		resized(analysis, &step);
	else
		freed(analysis, &step);
}
