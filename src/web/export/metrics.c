/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Metrics of devices, of the daemon and of this server; metrics-process.c has those of processes,
 * metrics-card.c those of cards.
 */

#include "web/export/metrics.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "model/health.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "web/export/exposition.h"
#include "web/export/metrics-card.h"
#include "web/export/metrics-process.h"
#include "web/export/self-usage.h"
#include "web/server/web.h"

void metrics_label_device(struct exposition *to, uint32_t device, uint64_t unique_id)
{
	char uid[24] = "";

	if (device == TALLY_OTHER)
		exposition_label(to, "device", "other");
	else
		exposition_label_u64(to, "device", device);
	if (unique_id)
		snprintf(uid, sizeof(uid), "0x%" PRIx64, unique_id);
	exposition_label(to, "uid", uid);
}

/* One family over all devices and types; @value says whether there is one. */
static void metrics_devices(struct exposition *to, const struct snapshot *snapshot,
			    bool (*value)(const struct snapshot_memory *memory,
					  uint64_t *ret_value))
{
	size_t others = 0;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		/* Those of the driver, and sums, are never crowded out by others. */
		if (!device->present && !device->summed && others++ >= METRICS_DEVICES_MAX)
			continue;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			uint64_t figure = 0;

			if (!value(&device->memory[type], &figure))
				continue;
			exposition_begin(to);
			metrics_label_device(to, device->device, device->unique_id);
			exposition_label(to, "type", types_name(type));
			exposition_u64(to, figure);
		}
	}
}

static bool metrics_used(const struct snapshot_memory *memory, uint64_t *ret_value)
{
	*ret_value = memory->used;
	return true;
}

static bool metrics_occupied(const struct snapshot_memory *memory, uint64_t *ret_value)
{
	*ret_value = memory->occupied.bytes;
	return snapshot_is_occupied(&memory->occupied, memory->buffers, memory->used);
}

static bool metrics_buffers(const struct snapshot_memory *memory, uint64_t *ret_value)
{
	*ret_value = memory->buffers;
	return true;
}

static bool metrics_peak(const struct snapshot_memory *memory, uint64_t *ret_value)
{
	*ret_value = memory->peak;
	return !memory->peak_is_unknown;
}

static bool metrics_capacity(const struct snapshot_memory *memory, uint64_t *ret_value)
{
	*ret_value = memory->capacity;
	return memory->capacity != 0;
}

static void metrics_write_devices(struct exposition *to, const struct snapshot *snapshot)
{
	exposition_family(to, "ttmem_device_bytes", EXPOSITION_GAUGE, "bytes",
			  "Memory in use by living processes.");
	metrics_devices(to, snapshot, metrics_used);
	exposition_family(to, "ttmem_occupied_bytes", EXPOSITION_GAUGE, "bytes",
			  "What living processes' buffers take in all banks, where it is known.");
	metrics_devices(to, snapshot, metrics_occupied);
	exposition_family(to, "ttmem_device_buffers", EXPOSITION_GAUGE, NULL, "Live buffers.");
	metrics_devices(to, snapshot, metrics_buffers);
	exposition_family(to, "ttmem_device_peak_bytes", EXPOSITION_GAUGE, "bytes",
			  "Most memory that was in use at one time, where it is known.");
	metrics_devices(to, snapshot, metrics_peak);
	exposition_family(to, "ttmem_device_capacity_bytes", EXPOSITION_GAUGE, "bytes",
			  "Size of the memory, where a process has declared it.");
	metrics_devices(to, snapshot, metrics_capacity);
}

static void metrics_write_tally(struct exposition *to, const struct tally *tally, bool frees)
{
	for (size_t i = 0; i < tally->count; i++) {
		const struct tally_row *row = &tally->rows[i];

		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			exposition_begin(to);
			metrics_label_device(to, row->device, row->unique_id);
			exposition_label(to, "type", types_name(type));
			exposition_u64(to, frees ? row->frees[type] : row->allocs[type]);
		}
	}
}

/*
 * Live and exited processes. Rows keep their order, so that the same devices always end up in
 * "other".
 */
static void metrics_write_events(struct exposition *to, const struct metrics_input *input,
				 struct tally *last)
{
	struct tally *now = calloc(1, sizeof(*now));

	if (!now)
		return; /* a gap, as if it had not been scraped */
	for (size_t i = 0; i < last->count; i++)
		(void)tally_row(now, last->rows[i].device, last->rows[i].unique_id);
	tally_add(now, &input->health->past);
	for (uint32_t i = 0; i < input->snapshot->process_count; i++) {
		if (input->snapshot->processes[i].alive && !input->snapshot->processes[i].untracked)
			tally_add_process(now, input->snapshot, i);
	}
	tally_raise(now, last);
	*last = *now;
	free(now);
	exposition_family(to, "ttmem_allocations", EXPOSITION_COUNTER, NULL,
			  "Allocations, of processes that have ended too.");
	metrics_write_tally(to, last, false);
	exposition_family(to, "ttmem_frees", EXPOSITION_COUNTER, NULL,
			  "Frees, of processes that have ended too.");
	metrics_write_tally(to, last, true);
}

static void metrics_write_books(struct exposition *to, const struct snapshot *snapshot,
				const struct health *health)
{
	uint64_t processes = 0, inexact = 0, last_ns = 0;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		processes += process->alive;
		/* Early regions are never exact: that is no news, and an alert on it would stay. */
		inexact += process->alive && process->books > 0 && !process->exact;
		last_ns = bits_max(last_ns, process->last_ns);
	}
	exposition_one(to, "ttmem_books", EXPOSITION_GAUGE, health->books,
		       "Books of living processes that are held.");
	exposition_one(to, "ttmem_processes", EXPOSITION_GAUGE, processes,
		       "Living processes that are tracked.");
	exposition_one(to, "ttmem_inexact_processes", EXPOSITION_GAUGE, inexact,
		       "Of them, those whose books have only bounds.");
	exposition_one(to, "ttmem_books_refused", EXPOSITION_COUNTER, health->books_refused,
		       "Books and offers that were not what they should be.");
	exposition_one(to, "ttmem_capacities_refused", EXPOSITION_GAUGE,
		       snapshot->capacities_refused,
		       "Capacities that processes declare and no card has.");
	exposition_one(to, "ttmem_devices_summed", EXPOSITION_GAUGE, snapshot->devices_summed,
		       "Devices that are in no row of their own: their user declares too many.");
	exposition_one(to, "ttmem_devices_old", EXPOSITION_GAUGE, snapshot->devices_old,
		       "Of them, those whose sum is from an earlier reading.");
	exposition_one(to, "ttmem_devices_looks", EXPOSITION_GAUGE, snapshot->devices_looks,
		       "Reads that the last reading made to keep such sums up to date.");
	exposition_one(
		to, "ttmem_regions_left_out", EXPOSITION_GAUGE, snapshot->regions_left_out,
		"Regions of tt-metal that are not read: there are too many, or of one user.");
	exposition_one(to, "ttmem_processes_ended", EXPOSITION_COUNTER, health->ended,
		       "Tracked processes that have ended.");
	exposition_one(to, "ttmem_processes_leaked", EXPOSITION_COUNTER, health->leaked,
		       "Of them, those that left buffers behind.");
	exposition_one(to, "ttmem_unobserved_exits", EXPOSITION_COUNTER, health->unobserved_exits,
		       "Processes that ended while nobody held their books.");
	exposition_family(to, "ttmem_last_activity_timestamp_seconds", EXPOSITION_GAUGE, "seconds",
			  "When any living process last allocated or freed.");
	if (last_ns) {
		exposition_begin(to);
		exposition_seconds(to, last_ns);
	}
}

static void metrics_write_incidents(struct exposition *to, const struct health *health)
{
	exposition_family(to, "ttmem_incidents", EXPOSITION_COUNTER, NULL,
			  "What a person should look at, since the daemon started.");
	for (uint32_t i = 0; i < TYPES_INCIDENTS; i++) {
		exposition_begin(to);
		exposition_label(to, "kind", types_incident_kind(i));
		exposition_u64(to, health->incidents[i]);
	}
}

static void metrics_write_doors(struct exposition *to, const struct health *health)
{
	exposition_family(
		to, "ttmem_door_open", EXPOSITION_GAUGE, NULL,
		"1 if the daemon has this socket, port or file, 0 if something is in the way.");
	for (uint32_t i = 0; i < HEALTH_DOORS; i++) {
		if (!health->doors[i].is_wanted)
			continue;
		exposition_begin(to);
		exposition_label(to, "door", health_door_name(i));
		exposition_u64(to, health->doors[i].is_open);
	}
}

static void metrics_write_daemon(struct exposition *to, const struct health *health)
{
	exposition_one(to, "ttmem_store_up", EXPOSITION_GAUGE, health->store_runs,
		       "1 if the past can be written at present.");
	exposition_one(to, "ttmem_store_queued", EXPOSITION_GAUGE, health->store_queued,
		       "Records that wait to be written.");
	exposition_family(to, "ttmem_store_size_bytes", EXPOSITION_GAUGE, "bytes",
			  "Size of the database.");
	exposition_begin(to);
	exposition_u64(to, health->store_bytes);
	exposition_one(to, "ttmem_store_written", EXPOSITION_COUNTER, health->store_written,
		       "Records written.");
	exposition_one(to, "ttmem_store_dropped", EXPOSITION_COUNTER, health->store_dropped,
		       "Records that found no room in the queue.");
	exposition_one(to, "ttmem_legacy_connections", EXPOSITION_GAUGE, health->legacy_connections,
		       "Connections of old clients.");
	exposition_one(to, "ttmem_legacy_messages", EXPOSITION_COUNTER, health->legacy_messages,
		       "Messages of old clients.");
	exposition_one(to, "ttmem_legacy_refused", EXPOSITION_COUNTER, health->legacy_refused,
		       "Messages of old clients that made no sense.");
	exposition_one(to, "ttmem_legacy_taken_over", EXPOSITION_COUNTER, health->legacy_taken_over,
		       "Connections of old clients that an earlier daemon had.");
	exposition_one(to, "ttmem_legacy_in_doubt", EXPOSITION_COUNTER, health->legacy_in_doubt,
		       "Messages of old clients during which an earlier daemon was killed.");
	exposition_one(to, "ttmem_log_lines_dropped", EXPOSITION_COUNTER, health->lines_dropped,
		       "Lines of output that nobody took in time.");
	/* For links: whoever has the series has the page. */
	if (health->has_fleet)
		exposition_one(to, "ttmem_fleet_page", EXPOSITION_GAUGE, 1,
			       "1 where the dashboard shows other machines.");
}

static void metrics_write_exits(struct exposition *to, const struct health *health)
{
	exposition_one(to, "ttmem_exits_waiting", EXPOSITION_GAUGE, health->exits_waiting,
		       "Books of exited processes that are held until their reports are on disk.");
	exposition_family(to, "ttmem_exits_waiting_bytes", EXPOSITION_GAUGE, "bytes",
			  "Memory of these books.");
	exposition_begin(to);
	exposition_u64(to, health->exits_waiting_bytes);
}

/* Of base/quota.def. */
static void metrics_write_limit(struct exposition *to, enum quota_id id, uint64_t count)
{
	const struct quota_metric *metric = quota_metric(id);

	if (metric->name)
		exposition_one(to, metric->name, EXPOSITION_COUNTER, count, metric->help);
}

static void metrics_write_limits(struct exposition *to, const struct health *health)
{
	metrics_write_exits(to, health);
	exposition_family(to, "ttmem_legacy_memory_bytes", EXPOSITION_GAUGE, "bytes",
			  "Memory of the books of old clients.");
	exposition_begin(to);
	exposition_u64(to, health->legacy_bytes);
	for (uint32_t i = 0; i < QUOTA_IDS; i++) {
		/* These are with the others of their subject. */
		if (i != QUOTA_PUSH && i != QUOTA_HTTP_CONNECTIONS)
			metrics_write_limit(to, i, health->limits[i]);
	}
}

static void metrics_write_push(struct exposition *to, const struct health *health)
{
	exposition_one(to, "ttmem_push_sent", EXPOSITION_COUNTER, health->push_sent,
		       "Messages that the collector took.");
	exposition_one(to, "ttmem_push_failed", EXPOSITION_COUNTER, health->push_failed,
		       "Messages that it did not take, or that did not reach it.");
	metrics_write_limit(to, QUOTA_PUSH, health->limits[QUOTA_PUSH]);
	exposition_one(to, "ttmem_push_partial", EXPOSITION_COUNTER, health->push_partial,
		       "Messages of which it took only a part.");
	exposition_one(to, "ttmem_push_queued", EXPOSITION_GAUGE, health->push_queued,
		       "Incidents that wait for it.");
}

static void metrics_write_server(struct exposition *to, const struct metrics_server *server)
{
	static const char *const classes[] = {"", "1xx", "2xx", "3xx", "4xx", "5xx"};

	exposition_family(to, "ttmem_http_requests", EXPOSITION_COUNTER, NULL,
			  "Answers of this server, by status.");
	for (size_t i = 2; i < ARRAY_SIZE(classes); i++) {
		exposition_begin(to);
		exposition_label(to, "code", classes[i]);
		exposition_u64(to, server->answers[i]);
	}
	exposition_one(to, "ttmem_http_subscribers", EXPOSITION_GAUGE, server->subscribers,
		       "Listeners of the stream.");
	exposition_one(to, "ttmem_http_subscribers_dropped", EXPOSITION_COUNTER,
		       server->subscribers_dropped, "Listeners that were too slow, or made room.");
	exposition_one(to, "ttmem_http_connections_dropped", EXPOSITION_COUNTER, server->thrown_out,
		       "Connections that took too long.");
	metrics_write_limit(to, QUOTA_HTTP_CONNECTIONS, quota_counted(QUOTA_HTTP_CONNECTIONS));
}

/* Under the names that every monitoring system knows. */
static void metrics_write_cost(struct exposition *to, const struct health *health)
{
	struct self_usage cost;

	self_usage_read(&cost);
	exposition_family(to, "process_cpu_seconds", EXPOSITION_COUNTER, "seconds",
			  "Processor time of the daemon.");
	exposition_begin(to);
	exposition_seconds(to, cost.cpu_ns);
	exposition_family(to, "process_resident_memory_bytes", EXPOSITION_GAUGE, "bytes",
			  "Resident memory of the daemon.");
	exposition_begin(to);
	exposition_u64(to, cost.resident_bytes);
	exposition_one(to, "process_open_fds", EXPOSITION_GAUGE, cost.open_fds,
		       "Open descriptors of the daemon.");
	exposition_one(to, "process_max_fds", EXPOSITION_GAUGE, cost.max_fds,
		       "Descriptors that it may have.");
	exposition_family(to, "process_start_time_seconds", EXPOSITION_GAUGE, "seconds",
			  "When the daemon started.");
	exposition_begin(to);
	exposition_seconds(to, health->start_ns);
}

void metrics_write(const struct metrics_input *input, struct tally *last,
		   enum exposition_format format, FILE *out)
{
	struct exposition to = {.out = out, .format = format, .origin = input->origin};

	exposition_start(&to);
	metrics_write_devices(&to, input->snapshot);
	metrics_card_write(&to, input->snapshot);
	metrics_process_write(&to, input);
	metrics_write_events(&to, input, last);
	metrics_write_incidents(&to, input->health);
	metrics_write_books(&to, input->snapshot, input->health);
	metrics_write_daemon(&to, input->health);
	metrics_write_doors(&to, input->health);
	metrics_write_limits(&to, input->health);
	if (input->health->pushes)
		metrics_write_push(&to, input->health);
	if (input->server)
		metrics_write_server(&to, input->server);
	metrics_write_cost(&to, input->health);
	exposition_end(&to);
}
