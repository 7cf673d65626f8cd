/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.smi/1, ttmem.ps/1 and ttmem.cards/1: devices, processes and what they hold. */

#include "answers/document.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/cards/condition.h"
#include "model/cards/join.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

static void document_occupied(struct emit *json, const struct snapshot_occupied *occupied,
			      uint64_t buffers, uint64_t used)
{
	if (snapshot_is_occupied(occupied, buffers, used))
		emit_u64(json, "occupied", occupied->bytes);
	else
		emit_null(json, "occupied");
}

static void document_peak(struct emit *json, uint64_t peak, bool is_unknown)
{
	if (is_unknown)
		emit_null(json, "peak");
	else
		emit_u64(json, "peak", peak);
}

/* The first @count sensors, in the units that users expect; values are in thousandths except for
 * the last four. */
static void document_telemetry(struct emit *json, const char *name, uint32_t count,
			       const struct snapshot_telemetry *telemetry)
{
	static const char *const names[SNAPSHOT_SENSORS] = {
		[SNAPSHOT_TEMPERATURE] = "temperature_c", [SNAPSHOT_POWER] = "power_w",
		[SNAPSHOT_VOLTAGE] = "voltage_v",         [SNAPSHOT_CURRENT] = "current_a",
		[SNAPSHOT_AICLK] = "aiclk_mhz",           [SNAPSHOT_AXICLK] = "axiclk_mhz",
		[SNAPSHOT_ARCCLK] = "arcclk_mhz",         [SNAPSHOT_FAN] = "fan_rpm",
	};

	emit_open_object(json, name);
	for (uint32_t i = 0; i < count; i++) {
		double scale = i <= SNAPSHOT_CURRENT ? 1000 : 1;

		if (telemetry->known & UINT32_C(1) << i)
			emit_double(json, names[i], (double)telemetry->value[i] / scale);
		else
			emit_null(json, names[i]);
	}
	emit_close_object(json);
}

/* How the card does; null where that is not known. */
static void document_condition(struct emit *json, const struct snapshot_condition *condition)
{
	emit_string(json, "state", condition_state(condition->state));
	if (condition->has_heartbeat)
		emit_u64(json, "heartbeat", condition->heartbeat);
	else
		emit_null(json, "heartbeat");
	if (condition->has_trips)
		emit_u64(json, "thermal_trips", condition->trips);
	else
		emit_null(json, "thermal_trips");
	emit_u64(json, "opened_outside", condition->outside);
	emit_u64(json, "openers_ended", condition->ended);
	document_telemetry(json, "limits", SNAPSHOT_CURRENT + 1, &condition->limits);
}

/* What the driver and the table of cards report. */
static void document_machine(struct emit *json, const struct snapshot_device *device)
{
	emit_bool(json, "present", device->present);
	if (device->present)
		emit_u64(json, "number", device->number);
	else
		emit_null(json, "number");
	document_uid(json, "serial", device->serial);
	emit_string(json, "bus", device->bus);
	emit_string(json, "firmware", device->firmware);
	if (device->cores)
		emit_u64(json, "cores", device->cores);
	else
		emit_null(json, "cores");
	emit_u64(json, "untracked", device->untracked);
	document_condition(json, &device->condition);
	document_telemetry(json, "telemetry", SNAPSHOT_SENSORS, &device->telemetry);
}

/* What a map of the memory needs. */
static void document_bank(struct emit *json, const struct snapshot_window *bank)
{
	/* A process may declare anything. */
	if (!bank->banks || bank->base + bank->size <= bank->base)
		return;
	emit_open_object(json, "bank");
	emit_u64(json, "base", bank->base);
	emit_u64(json, "size", bank->size);
	emit_u64(json, "banks", bank->banks);
	emit_u64(json, "alignment", bits_max(bank->alignment, 1));
	emit_close_object(json);
}

/* Whose word it is, and for how many devices the row stands. */
static void document_declarer(struct emit *json, const struct snapshot_device *device)
{
	if (device->declared_by) {
		emit_open_object(json, "declared_by");
		emit_string(json, "user", device->declared_by);
		emit_u64(json, "user_id", device->declarer_id);
		emit_close_object(json);
	} else {
		emit_null(json, "declared_by");
	}
	if (device->summed)
		emit_u64(json, "summed", device->summed);
}

static void document_device(struct emit *json, const struct snapshot_device *device)
{
	emit_open_object(json, NULL);
	emit_u64(json, "device", device->device);
	document_uid(json, "uid", device->unique_id);
	emit_string(json, "arch", device->arch);
	emit_string(json, "card", device->card);
	emit_bool(json, "remote", device->remote);
	emit_bool(json, "by_number", device->by_number);
	document_declarer(json, device);
	emit_string(json, "joined", device->is_joined ? join_name(device->joined) : NULL);
	document_machine(json, device);
	emit_open_object(json, "memory");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_device_memory *memory = &device->memory[type];

		emit_open_object(json, types_name(type));
		emit_u64(json, "used", memory->used);
		document_occupied(json, &memory->occupied, memory->buffers, memory->used);
		emit_u64(json, "buffers", memory->buffers);
		document_peak(json, memory->peak, memory->peak_is_unknown);
		if (memory->capacity)
			emit_u64(json, "capacity", memory->capacity);
		else
			emit_null(json, "capacity");
		document_bank(json, &memory->window);
		emit_string(json, "bound", document_bound(memory->bound));
		emit_close_object(json);
	}
	emit_close_object(json);
	emit_close_object(json);
}

static void document_counters(struct emit *json, const struct snapshot_memory *memory)
{
	emit_u64(json, "allocs", memory->allocs);
	emit_u64(json, "frees", memory->frees);
	emit_u64(json, "unknown_frees", memory->unknown_frees);
	emit_u64(json, "double_frees", memory->double_frees);
	emit_u64(json, "size_changes", memory->size_changes);
	emit_u64(json, "realloc_live", memory->realloc_live);
	emit_u64(json, "ambiguous_frees", memory->ambiguous_frees);
	emit_u64(json, "unplaced_frees", memory->unplaced_frees);
	emit_u64(json, "hooked", memory->hooked);
	emit_u64(json, "overflow_frees", memory->overflow_frees);
	if (memory->last_ns)
		emit_u64(json, "last_activity_ns", memory->last_ns);
	else
		emit_null(json, "last_activity_ns");
}

/* What tt-metal's region reports about it, next to what is counted. */
static void document_claimed(struct emit *json, const struct snapshot_part *part)
{
	if (!part->claimed) {
		emit_null(json, "region");
		return;
	}
	emit_open_object(json, "region");
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		emit_u64(json, types_name(type), part->claimed_used[type]);
	emit_close_object(json);
}

/* Reported by the driver, next to what is counted. */
static void document_driver_memory(struct emit *json, const struct snapshot_driver_memory *memory)
{
	if (!memory) {
		emit_null(json, "driver_memory");
		return;
	}
	emit_open_object(json, "driver_memory");
	emit_u64(json, "pinned", memory->pinned);
	emit_u64(json, "dma", memory->dma);
	emit_u64(json, "tlb", memory->tlb);
	emit_u64(json, "tlb_windows", memory->tlb_windows);
	emit_close_object(json);
}

/* @row: the part's. */
static void document_part(struct emit *json, const struct snapshot_part *part,
			  const struct snapshot_device *row, bool counters)
{
	emit_open_object(json, NULL);
	emit_u64(json, "device", part->device);
	document_uid(json, "uid", part->facts.unique_id);
	emit_string(json, "joined", join_name(part->joined));
	if (part->summed)
		emit_u64(json, "summed", part->summed);
	if (row->present)
		emit_u64(json, "node", row->number);
	else
		emit_null(json, "node");
	emit_bool(json, "closed", part->facts.closed_ns != 0);
	emit_bool(json, "differs", part->differs);
	emit_bool(json, "stale_after_reset", part->before_reset);
	document_claimed(json, part);
	emit_open_object(json, "memory");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		emit_open_object(json, types_name(type));
		emit_u64(json, "used", memory->used);
		document_occupied(json, &memory->occupied, memory->buffers, memory->used);
		emit_u64(json, "buffers", memory->buffers);
		document_peak(json, memory->peak, memory->peak_is_unknown);
		emit_string(json, "bound", document_bound(memory->bound));
		if (counters)
			document_counters(json, memory);
		emit_close_object(json);
	}
	emit_close_object(json);
	document_driver_memory(json, part->driver_memory);
	emit_close_object(json);
}

static void document_rejected(struct emit *json, const struct book_rejected *rejected)
{
	emit_open_object(json, "rejected");
	emit_u64(json, "device", rejected->device);
	emit_u64(json, "type", rejected->type);
	emit_u64(json, "size", rejected->size);
	emit_u64(json, "arguments", rejected->arguments);
	emit_u64(json, "room", rejected->room);
	emit_u64(json, "reentry", rejected->reentry);
	emit_u64(json, "lock", rejected->lock);
	emit_u64(json, "paused", rejected->paused);
	emit_close_object(json);
}

static bool document_wants_part(const struct snapshot *snapshot, const struct filter *filter,
				const struct snapshot_part *part)
{
	const struct snapshot_device *row = &snapshot->devices[part->row];

	return filter_wants_device(filter, row->device, row->unique_id);
}

static bool document_wants_process(const struct snapshot *snapshot, const struct filter *filter,
				   const struct snapshot_process *process)
{
	if (!filter_wants_pid(filter, process->pid) ||
	    !filter_wants_user(filter, process->user, process->user_id))
		return false;
	for (size_t i = 0; i < process->part_count; i++) {
		if (document_wants_part(snapshot, filter, &process->parts[i]))
			return true;
	}
	return filter->device_count == 0;
}

/* What is written of processes. */
struct document_scope {
	const struct filter *filter;
	struct document_commands *commands;
	bool counters;
};

static void document_process(struct emit *json, const struct snapshot *snapshot,
			     const struct snapshot_process *process,
			     const struct document_scope *scope)
{
	emit_open_object(json, NULL);
	emit_u64(json, "pid", process->pid);
	emit_u64(json, "ns_pid", process->ns_pid);
	emit_u64(json, "start_ns", process->start_ns);
	emit_string(json, "comm", process->comm);
	emit_string(json, "user", process->user);
	emit_u64(json, "user_id", process->user_id);
	emit_u64(json, "book_user_id", process->maker_id);
	emit_string(json, "container", process->container);
	if (scope->commands)
		scope->commands->write(scope->commands, json, process);
	/*
	 * Converted from another clock, it has other microseconds each time it is read: then every row
	 * would have changed whenever one has.
	 */
	emit_u64(json, "last_activity_ns", process->last_ns - process->last_ns % NS_PER_MS);
	emit_string(json, "source", process->source);
	emit_bool(json, "alive", process->alive);
	emit_bool(json, "exact", process->exact);
	emit_string(json, "gave_up", process->gave_up);
	emit_bool(json, "stale", process->stale);
	emit_bool(json, "claim", process->unproven);
	emit_bool(json, "untracked", process->untracked);
	emit_bool(json, "differs", process->differs);
	if (scope->counters) {
		document_rejected(json, &process->rejected);
		emit_u64(json, "stray_frees", process->stray_frees);
	}
	emit_open_array(json, "devices");
	for (size_t i = 0; i < process->part_count; i++) {
		if (document_wants_part(snapshot, scope->filter, &process->parts[i]))
			document_part(json, &process->parts[i],
				      &snapshot->devices[process->parts[i].row], scope->counters);
	}
	emit_close_array(json);
	emit_close_object(json);
}

static void document_processes(struct emit *json, const struct snapshot *snapshot,
			       const struct document_scope *scope)
{
	emit_open_array(json, "processes");
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		/* Only tracked processes have counters. */
		if (scope->counters && process->untracked)
			continue;
		if (document_wants_process(snapshot, scope->filter, process))
			document_process(json, snapshot, process, scope);
	}
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
}

void document_smi(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		  struct document_commands *commands)
{
	document_smi_users(json, snapshot, filter, commands, NULL);
}

void document_smi_users(struct emit *json, const struct snapshot *snapshot,
			const struct filter *filter, struct document_commands *commands,
			const struct by_user *users)
{
	const struct document_scope scope = {.filter = filter, .commands = commands};
	uint64_t bytes = 0, buffers = 0;

	document_open_moment(json, "ttmem.smi/1", snapshot);
	emit_open_array(json, "devices");
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		if (!filter_wants_device(filter, device->device, device->unique_id))
			continue;
		document_device(json, device);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			bytes = merge_add(bytes, device->memory[type].used);
			buffers = merge_add(buffers, device->memory[type].buffers);
		}
	}
	emit_close_array(json);
	document_processes(json, snapshot, &scope);
	if (users)
		document_users(json, snapshot, users);
	emit_open_object(json, "totals");
	emit_u64(json, "bytes", bytes);
	emit_u64(json, "buffers", buffers);
	emit_close_object(json);
	emit_open_object(json, "not_taken");
	emit_u64(json, "capacities", snapshot->capacities_refused);
	emit_u64(json, "devices", snapshot->devices_summed);
	emit_u64(json, "regions", snapshot->regions_left_out);
	emit_close_object(json);
	document_close(json, snapshot);
}

void document_ps(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		 struct document_commands *commands)
{
	const struct document_scope scope = {
		.filter = filter, .commands = commands, .counters = true};

	document_open_moment(json, "ttmem.ps/1", snapshot);
	document_processes(json, snapshot, &scope);
	document_close(json, snapshot);
}

static void document_card(struct emit *json, const struct snapshot_device *device)
{
	emit_open_object(json, NULL);
	emit_u64(json, "number", device->number);
	emit_string(json, "bus", device->bus);
	document_uid(json, "uid", device->unique_id);
	document_uid(json, "serial", device->serial);
	emit_string(json, "arch", device->arch);
	emit_string(json, "card", device->card);
	emit_string(json, "firmware", device->firmware);
	emit_string(json, "state", condition_state(device->condition.state));
	if (device->condition.has_heartbeat)
		emit_u64(json, "heartbeat", device->condition.heartbeat);
	else
		emit_null(json, "heartbeat");
	emit_close_object(json);
}

static void document_stale(struct emit *json, const struct snapshot *snapshot,
			   const struct snapshot_process *process)
{
	for (size_t i = 0; process->alive && i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		if (!part->before_reset)
			continue;
		emit_open_object(json, NULL);
		emit_u64(json, "pid", process->pid);
		emit_u64(json, "start_ticks", process->start_ticks);
		emit_u64(json, "device", part->device);
		emit_string(json, "bus", snapshot->devices[part->row].bus);
		emit_close_object(json);
	}
}

void document_cards(struct emit *json, const struct snapshot *snapshot)
{
	document_open_at(json, "ttmem.cards/1", snapshot);
	emit_open_array(json, "cards");
	for (size_t i = 0; i < snapshot->device_count; i++) {
		if (snapshot->devices[i].condition.state != SNAPSHOT_STATE_UNKNOWN)
			document_card(json, &snapshot->devices[i]);
	}
	emit_close_array(json);
	emit_open_array(json, "stale");
	for (size_t i = 0; i < snapshot->process_count; i++)
		document_stale(json, snapshot, &snapshot->processes[i]);
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
