/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.smi/1 and ttmem.cards/1: devices. */

#include "answers/document.h"

#include <math.h>

#include "answers/document-processes.h"
#include "answers/fields.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/amount.h"
#include "model/cards/condition.h"
#include "model/cards/join.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "model/types.h"

/* In the units that users expect; NAN = not known. */
struct smi_sensors {
	double value[SNAPSHOT_SENSORS];
};

#define SENSOR(KEY, AT) FIELD_OR_NULL(KEY, DOUBLE, value[AT])
#define ROW struct smi_sensors

static const struct field smi_limits[] = {
	SENSOR("temperature_c", SNAPSHOT_TEMPERATURE),
	SENSOR("power_w", SNAPSHOT_POWER),
	SENSOR("voltage_v", SNAPSHOT_VOLTAGE),
	SENSOR("current_a", SNAPSHOT_CURRENT),
	FIELD_END,
};

static const struct field smi_telemetry[] = {
	FIELD_MORE(smi_limits),
	SENSOR("aiclk_mhz", SNAPSHOT_AICLK),
	SENSOR("axiclk_mhz", SNAPSHOT_AXICLK),
	SENSOR("arcclk_mhz", SNAPSHOT_ARCCLK),
	SENSOR("fan_rpm", SNAPSHOT_FAN),
	FIELD_END,
};

#undef ROW

/* Values are in thousandths except for the last four. */
static void smi_put_sensors(struct emit *json, const char *key, const struct field *fields,
			    const struct snapshot_telemetry *telemetry)
{
	struct smi_sensors row;

	for (uint32_t i = 0; i < SNAPSHOT_SENSORS; i++)
		row.value[i] =
			telemetry->known & UINT32_C(1) << i
				? (double)telemetry->value[i] / (i <= SNAPSHOT_CURRENT ? 1000 : 1)
				: NAN;
	fields_put_object(json, key, fields, &row);
}

static void smi_put_limits(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_device *device = row;

	smi_put_sensors(json, key, smi_limits, &device->condition.limits);
}

static void smi_put_telemetry(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_device *device = row;

	smi_put_sensors(json, key, smi_telemetry, &device->telemetry);
}

#define ROW struct snapshot_window

static const struct field smi_bank_fields[] = {
	FIELD("base", NUMBER, base),
	FIELD("size", BYTES, size),
	FIELD("banks", SHORT, banks, .least = 1),
	FIELD("alignment", SHORT, alignment, .least = 1),
	FIELD_END,
};

#undef ROW

/* What a map of the memory needs. */
static void smi_put_bank(struct emit *json, const char *key, const void *row)
{
	struct snapshot_window bank = ((const struct snapshot_memory *)row)->window;

	/* A process may declare anything. */
	if (!bank.banks || bank.base + bank.size <= bank.base)
		return;
	bank.alignment += !bank.alignment;
	fields_put_object(json, key, smi_bank_fields, &bank);
}

#define ROW struct snapshot_device

static const struct field smi_declarer_fields[] = {
	FIELD("user", TEXT, declared_by),
	FIELD("user_id", SHORT, declarer_id),
	FIELD_END,
};

/* Whose word it is. */
static void smi_put_declarer(struct emit *json, const char *key, const void *row)
{
	const struct snapshot_device *device = row;

	if (device->declared_by)
		fields_put_object(json, key, smi_declarer_fields, device);
	else
		emit_null(json, key);
}

/* The shapes of what is written above. */
static const struct field smi_limits_shape[] = {
	FIELD_STRUCT("limits", condition, smi_limits),
	FIELD_END,
};

static const struct field smi_telemetry_shape[] = {
	FIELD_STRUCT("telemetry", telemetry, smi_telemetry),
	FIELD_END,
};

static const struct field smi_declarer_shape[] = {
	FIELD_STRUCT("declared_by", declared_by, smi_declarer_fields, .absent = FIELD_NULL),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_memory

static const struct field smi_bank_shape[] = {
	FIELD_STRUCT("bank", window, smi_bank_fields, .absent = FIELD_NOTHING),
	FIELD_END,
};

static const struct field document_device_memory[] = {
	FIELD("used", BYTES, used),
	FIELD_CODED("occupied", document_put_occupied, .fields = document_occupied),
	FIELD("buffers", NUMBER, buffers),
	FIELD_UNLESS(peak_is_unknown, "peak", BYTES, peak),
	FIELD_OR_NULL("capacity", BYTES, capacity),
	FIELD_CODED("bank", smi_put_bank, .fields = smi_bank_shape),
	FIELD("bound", NAME, bound, .names = document_bound),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_device

const struct field document_device[] = {
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_OR_NULL("uid", HEX, unique_id),
	FIELD_OR_NULL("arch", TEXT, arch),
	FIELD_OR_NULL("card", TEXT, card),
	FIELD("remote", BOOL, remote),
	FIELD("by_number", BOOL, by_number),
	FIELD_CODED("declared_by", smi_put_declarer, .fields = smi_declarer_shape),
	FIELD_OR_NOTHING("summed", SHORT, summed),
	FIELD_IF(is_joined, "joined", NAME, joined, .names = join_name),
	FIELD("present", BOOL, present),
	FIELD_IF(present, "number", SHORT, number),
	FIELD_OR_NULL("serial", HEX, serial),
	FIELD_OR_NULL("bus", TEXT, bus),
	FIELD_OR_NULL("firmware", TEXT, firmware),
	FIELD_OR_NULL("cores", SHORT, cores),
	FIELD("untracked", SHORT, untracked),
	FIELD_OR_NULL("state", NAME, condition.state, .names = condition_state),
	FIELD_IF(condition.has_heartbeat, "heartbeat", SHORT, condition.heartbeat),
	FIELD_IF(condition.has_trips, "thermal_trips", SHORT, condition.trips),
	FIELD("opened_outside", SHORT, condition.outside),
	FIELD("openers_ended", SHORT, condition.ended),
	FIELD_CODED("limits", smi_put_limits, .fields = smi_limits_shape),
	FIELD_CODED("telemetry", smi_put_telemetry, .fields = smi_telemetry_shape),
	FIELD_BY_TYPE("memory", memory, document_device_memory),
	FIELD_END,
};

#undef ROW
#define ROW struct process_id

const struct field document_process_id[] = {
	FIELD("pid", SHORT, pid),
	FIELD_END,
};

static const void *smi_each_device(const void *context, size_t *at, struct fields_room *room)
{
	const struct document_scope *scope = context;

	(void)room;
	while (*at < scope->snapshot->device_count) {
		const struct snapshot_device *device = &scope->snapshot->devices[(*at)++];

		if (filter_wants_device(scope->filter, device->device, device->unique_id))
			return device;
	}
	return NULL;
}

#undef ROW
#define ROW struct snapshot_memory

static const struct field smi_totals[] = {
	FIELD("bytes", BYTES, used),
	FIELD("buffers", NUMBER, buffers),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot

static const struct field smi_not_taken[] = {
	FIELD("capacities", NUMBER, capacities_refused),
	FIELD("devices", NUMBER, devices_summed),
	FIELD("regions", NUMBER, regions_left_out),
	FIELD_END,
};

#undef ROW
#define ROW struct document_scope

static const struct field smi_members[] = {
	FIELD_MADE("devices", smi_each_device, document_device),
	FIELD_MADE("processes", document_each_process, document_smi_process),
	FIELD_CODED("users", document_put_users, .fields = document_users,
		    .absent = FIELD_ELSEWHERE),
	FIELD_STRUCT("totals", totals, smi_totals),
	FIELD_WITHIN("not_taken", snapshot, smi_not_taken),
	FIELD_END,
};

const struct document smi_document = {
	.schema = "ttmem.smi/1",
	.title = "ttmem smi --json: devices and the processes that hold their memory",
	.members = smi_members,
	.has = DOCUMENT_FROM | DOCUMENT_MOMENT | DOCUMENT_LIST,
};

void document_smi_users(struct emit *json, const struct snapshot *snapshot,
			const struct filter *filter, struct document_commands *commands,
			const struct by_user *users)
{
	struct document_scope scope = {
		.snapshot = snapshot, .filter = filter, .commands = commands, .users = users};
	const struct snapshot_device *device;
	size_t at = 0;

	while ((device = smi_each_device(&scope, &at, NULL))) {
		const struct snapshot_memory all = amount_of_device(device, AMOUNT_ALL);

		snapshot_add_memory(&scope.totals, &all);
	}
	document_put(json, &smi_document, snapshot, &scope);
}

void document_smi(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		  struct document_commands *commands)
{
	document_smi_users(json, snapshot, filter, commands, NULL);
}

#undef ROW
#define ROW struct snapshot_card

const struct field cards_fields[] = {
	FIELD("number", SHORT, number),
	FIELD_OR_NULL("bus", TEXT, bus),
	FIELD_OR_NULL("uid", HEX, unique_id),
	FIELD_OR_NULL("serial", HEX, serial),
	FIELD_OR_NULL("arch", TEXT, arch),
	FIELD_OR_NULL("card", TEXT, card),
	FIELD_OR_NULL("firmware", TEXT, firmware),
	FIELD_OR_NULL("state", NAME, condition.state, .names = condition_state),
	FIELD_IF(condition.has_heartbeat, "heartbeat", SHORT, condition.heartbeat),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_left

const struct field cards_stale_fields[] = {
	FIELD("pid", SHORT, process.pid, .least = 1),
	FIELD("start_ticks", NUMBER, process.start_ticks),
	FIELD("device", SHORT, device),
	FIELD_OR_NULL("bus", TEXT, bus),
	FIELD_END,
};

/* Lists of two levels: processes, and their devices. */
static void cards_put_stale(struct emit *json, const char *key, const void *row)
{
	const struct snapshot *snapshot = row;

	emit_open_array(json, key);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; process->alive && k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];
			const struct snapshot_left stale = {
				.process = process->id,
				.device = part->device,
				.bus = snapshot->devices[part->row].bus,
			};

			if (part->before_reset)
				fields_put_row(json, cards_stale_fields, &stale);
		}
	}
	emit_close_array(json);
}

static const void *cards_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct snapshot *snapshot = context;
	struct snapshot_card *card = FIELDS_IN(room, struct snapshot_card);

	while (*at < snapshot->device_count) {
		const struct snapshot_device *device = &snapshot->devices[(*at)++];

		if (device->condition.state == SNAPSHOT_STATE_UNKNOWN)
			continue;
		*card = (struct snapshot_card){
			.number = device->number,
			.unique_id = device->unique_id,
			.serial = device->serial,
			.arch = device->arch,
			.card = device->card,
			.bus = device->bus,
			.firmware = device->firmware,
			.condition = device->condition,
		};
		return card;
	}
	return NULL;
}

static const struct field cards_stale_list[] = {
	FIELD_LISTED("stale", cards_stale_fields),
	FIELD_END,
};

static const struct field cards_members[] = {
	FIELD_MADE("cards", cards_each, cards_fields),
	FIELD_CODED("stale", cards_put_stale, .fields = cards_stale_list),
	FIELD_END,
};

const struct document cards_document = {
	.schema = "ttmem.cards/1",
	.title = "/api/v1/cards: what ttmemd knows of the cards; for commands",
	.members = cards_members,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};
