/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.smi/1 and ttmem.cards/1: devices. */

#include "answers/document.h"

#include "answers/document-processes.h"
#include "answers/fields.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/cards/condition.h"
#include "model/cards/join.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

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

static void document_put_limits(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_device *device = row;

	document_telemetry(json, key, SNAPSHOT_CURRENT + 1, &device->condition.limits);
}

static void document_put_telemetry(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_device *device = row;

	document_telemetry(json, key, SNAPSHOT_SENSORS, &device->telemetry);
}

/* What a map of the memory needs. */
static void document_put_bank(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_window *bank = &((const struct snapshot_memory *)row)->window;

	/* A process may declare anything. */
	if (!bank->banks || bank->base + bank->size <= bank->base)
		return;
	emit_open_object(json, key);
	emit_u64(json, "base", bank->base);
	emit_u64(json, "size", bank->size);
	emit_u64(json, "banks", bank->banks);
	emit_u64(json, "alignment", bits_max(bank->alignment, 1));
	emit_close_object(json);
}

/* Whose word it is. */
static void document_put_declarer(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_device *device = row;

	if (device->declared_by) {
		emit_open_object(json, key);
		emit_string(json, "user", device->declared_by);
		emit_u64(json, "user_id", device->declarer_id);
		emit_close_object(json);
	} else {
		emit_null(json, key);
	}
}

#define ROW struct snapshot_memory

static const struct field document_device_memory[] = {
	FIELD("used", BYTES, used),
	FIELD_CODED("occupied", document_put_occupied),
	FIELD("buffers", NUMBER, buffers),
	FIELD_UNLESS(peak_is_unknown, "peak", BYTES, peak),
	FIELD_OR_NULL("capacity", BYTES, capacity),
	FIELD_CODED("bank", document_put_bank),
	FIELD("bound", NAME, bound, .names = document_bound),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_device

static const struct field document_device[] = {
	FIELD("device", SHORT, device),
	FIELD_OR_NULL("uid", HEX, unique_id),
	FIELD("arch", TEXT, arch),
	FIELD("card", TEXT, card),
	FIELD("remote", BOOL, remote),
	FIELD("by_number", BOOL, by_number),
	FIELD_CODED("declared_by", document_put_declarer),
	FIELD_OR_NOTHING("summed", SHORT, summed),
	FIELD_IF(is_joined, "joined", NAME, joined, .names = join_name),
	FIELD("present", BOOL, present),
	FIELD_IF(present, "number", SHORT, number),
	FIELD_OR_NULL("serial", HEX, serial),
	FIELD("bus", TEXT, bus),
	FIELD("firmware", TEXT, firmware),
	FIELD_OR_NULL("cores", SHORT, cores),
	FIELD("untracked", SHORT, untracked),
	FIELD("state", NAME, condition.state, .names = condition_state),
	FIELD_IF(condition.has_heartbeat, "heartbeat", SHORT, condition.heartbeat),
	FIELD_IF(condition.has_trips, "thermal_trips", SHORT, condition.trips),
	FIELD("opened_outside", SHORT, condition.outside),
	FIELD("openers_ended", SHORT, condition.ended),
	FIELD_CODED("limits", document_put_limits),
	FIELD_CODED("telemetry", document_put_telemetry),
	FIELD_BY_TYPE("memory", memory, document_device_memory),
	FIELD_END,
};

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
		fields_put_row(json, document_device, device);
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

static const struct field document_card[] = {
	FIELD("number", SHORT, number),
	FIELD("bus", TEXT, bus),
	FIELD_OR_NULL("uid", HEX, unique_id),
	FIELD_OR_NULL("serial", HEX, serial),
	FIELD("arch", TEXT, arch),
	FIELD("card", TEXT, card),
	FIELD("firmware", TEXT, firmware),
	FIELD("state", NAME, condition.state, .names = condition_state),
	FIELD_IF(condition.has_heartbeat, "heartbeat", SHORT, condition.heartbeat),
	FIELD_END,
};

static void document_stale(struct emit *json, const struct snapshot *snapshot,
			   const struct snapshot_process *process)
{
	for (size_t i = 0; process->alive && i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		if (!part->before_reset)
			continue;
		emit_open_object(json, NULL);
		emit_u64(json, "pid", process->id.pid);
		emit_u64(json, "start_ticks", process->id.start_ticks);
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
			fields_put_row(json, document_card, &snapshot->devices[i]);
	}
	emit_close_array(json);
	emit_open_array(json, "stale");
	for (size_t i = 0; i < snapshot->process_count; i++)
		document_stale(json, snapshot, &snapshot->processes[i]);
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
