/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For Perfetto: perfetto.protos.Trace, a row of packets. Each process is a track, and each of its devices
 * and types of memory a counter below it; phases are slices of its threads; marks, failed allocations and
 * gaps are instants of the process.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/text.h"
#include "book/format/layout.h"
#include "cli/common/must.h"
#include "cli/export/export-phases.h"
#include "cli/export/format/export-form.h"
#include "cli/export/format/export-proto.h"
#include "model/types.h"

/* Field numbers of the messages Trace, TracePacket, TrackDescriptor, TrackEvent and below. */
enum {
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_FLAGS = 13,
	PACKET_DESCRIPTOR = 60,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT = 3,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER = 30,
};

#define PERFETTO_BEGIN 1u
#define PERFETTO_END 2u
#define PERFETTO_INSTANT 3u
#define PERFETTO_COUNTER 4u
#define PERFETTO_BYTES 3u
#define PERFETTO_NAME_SIZE 4096u /* more is cut */
#define PERFETTO_THREADS \
	(UINT64_C(1) << 40)  /* beyond all devices: where threads are in the index */
#define PERFETTO_SEQUENCE 1u /* of all packets; any number but 0 */
#define PERFETTO_CLEARED 1u  /* the sequence begins here */

struct perfetto {
	struct export_target *target;
	struct map tracks; /* their uuids follow those of the processes */
	struct export_phases phases;
	struct export_proto packet, part, inner;
};

static void perfetto_put(struct perfetto *perfetto)
{
	struct export_proto *trace = &perfetto->part;

	export_proto_number(&perfetto->packet, PACKET_SEQUENCE, PERFETTO_SEQUENCE);
	export_proto_reset(trace);
	export_proto_message(trace, TRACE_PACKET, &perfetto->packet);

	(void)fwrite(trace->bytes, 1, trace->length,
		     perfetto->target->out); /* asked for at the end */
	export_proto_reset(trace);
}

/* Names come from processes, and are shown to people. */
static void perfetto_text(struct export_proto *proto, uint32_t field, const char *text)
{
	char shown[PERFETTO_NAME_SIZE];

	text_escape(text, shown, sizeof(shown));
	export_proto_text(proto, field, shown);
}

/* A process's uuid is its place in the list, from 1 on. */
static void perfetto_put_owner(struct perfetto *perfetto, size_t i)
{
	const struct export_owner *owner = &perfetto->target->owners[i];

	export_proto_number(&perfetto->inner, PROCESS_PID, owner->pid);
	perfetto_text(&perfetto->inner, PROCESS_NAME, owner->comm);
	export_proto_number(&perfetto->part, TRACK_UUID, i + 1);
	perfetto_text(&perfetto->part, TRACK_NAME, owner->comm);
	export_proto_message(&perfetto->part, TRACK_PROCESS, &perfetto->inner);
	export_proto_message(&perfetto->packet, PACKET_DESCRIPTOR, &perfetto->part);
	if (i == 0)
		export_proto_number(&perfetto->packet, PACKET_FLAGS, PERFETTO_CLEARED);
	perfetto_put(perfetto);
}

static void *perfetto_begin(struct export_target *target)
{
	struct perfetto *perfetto = must_alloc(1, sizeof(*perfetto));

	perfetto->target = target;
	for (size_t i = 0; i < target->owner_count; i++)
		perfetto_put_owner(perfetto, i);
	return perfetto;
}

/* The counter's track, which is described before its first value. */
static uint64_t perfetto_track(struct perfetto *perfetto, const struct export_event *event)
{
	uint32_t before = perfetto->tracks.count;
	uint32_t number = must_number(&perfetto->tracks, event->process,
				      (uint64_t)event->device << 32 | event->type);
	uint64_t uuid = perfetto->target->owner_count + number;
	char name[64];

	if (number <= before)
		return uuid;
	snprintf(name, sizeof(name), "%s of device %" PRIu32, types_name(event->type),
		 event->device);
	export_proto_number(&perfetto->inner, COUNTER_UNIT, PERFETTO_BYTES);
	export_proto_number(&perfetto->part, TRACK_UUID, uuid);
	export_proto_text(&perfetto->part, TRACK_NAME, name);
	export_proto_number(&perfetto->part, TRACK_PARENT, (uint64_t)event->process + 1);
	export_proto_message(&perfetto->part, TRACK_COUNTER, &perfetto->inner);
	export_proto_message(&perfetto->packet, PACKET_DESCRIPTOR, &perfetto->part);
	perfetto_put(perfetto);
	return uuid;
}

static void perfetto_put_event(struct perfetto *perfetto, uint64_t time_ns)
{
	export_proto_message(&perfetto->packet, PACKET_EVENT, &perfetto->part);
	export_proto_number(&perfetto->packet, PACKET_TIMESTAMP, time_ns);
	perfetto_put(perfetto);
}

static uint64_t perfetto_thread(struct perfetto *perfetto, const struct export_phase *phase)
{
	uint32_t before = perfetto->tracks.count;
	uint32_t number =
		must_number(&perfetto->tracks, phase->process, PERFETTO_THREADS + phase->thread);
	uint64_t uuid = perfetto->target->owner_count + number;

	if (number <= before)
		return uuid;
	export_proto_number(&perfetto->inner, THREAD_PID,
			    perfetto->target->owners[phase->process].pid);
	export_proto_number(&perfetto->inner, THREAD_TID, phase->thread);
	export_proto_number(&perfetto->part, TRACK_UUID, uuid);
	export_proto_number(&perfetto->part, TRACK_PARENT, (uint64_t)phase->process + 1);
	export_proto_message(&perfetto->part, TRACK_THREAD, &perfetto->inner);
	export_proto_message(&perfetto->packet, PACKET_DESCRIPTOR, &perfetto->part);
	perfetto_put(perfetto);
	return uuid;
}

/* Perfetto sorts by time: a slice may come later in the file than what happened meanwhile. */
static void perfetto_put_phase(void *context, const struct export_phase *phase)
{
	struct perfetto *perfetto = context;
	uint64_t uuid = perfetto_thread(perfetto, phase);
	export_proto_number(&perfetto->part, EVENT_TYPE, PERFETTO_BEGIN);
	export_proto_number(&perfetto->part, EVENT_TRACK, uuid);
	perfetto_text(&perfetto->part, EVENT_NAME, phase->name);
	perfetto_put_event(perfetto, phase->begin_ns);
	export_proto_number(&perfetto->part, EVENT_TYPE, PERFETTO_END);
	export_proto_number(&perfetto->part, EVENT_TRACK, uuid);
	perfetto_put_event(perfetto, phase->end_ns);
}

static void perfetto_put_counter(struct perfetto *perfetto, const struct export_event *event)
{
	uint64_t uuid = perfetto_track(perfetto, event);
	export_proto_number(&perfetto->part, EVENT_TYPE, PERFETTO_COUNTER);
	export_proto_number(&perfetto->part, EVENT_TRACK, uuid);
	export_proto_number(&perfetto->part, EVENT_COUNTER, event->used);
	perfetto_put_event(perfetto, event->time_ns);
}

static void perfetto_put_instant(struct perfetto *perfetto, const struct export_event *event,
				 const char *name)
{
	export_proto_number(&perfetto->part, EVENT_TYPE, PERFETTO_INSTANT);
	export_proto_number(&perfetto->part, EVENT_TRACK, (uint64_t)event->process + 1);
	perfetto_text(&perfetto->part, EVENT_NAME, name);
	perfetto_put_event(perfetto, event->time_ns);
}

static void perfetto_event(void *state, const struct export_event *event)
{
	struct perfetto *perfetto = state;
	char text[96];

	if (event->kind == EXPORT_MARK) {
		perfetto_put_instant(perfetto, event, event->name ? event->name : "mark");
	} else if (event->kind == EXPORT_GAP) {
		snprintf(text, sizeof(text), "%" PRIu64 " event%s missed", event->missed,
			 event->missed == 1 ? "" : "s");
		perfetto_put_instant(perfetto, event, text);
	} else if (event->op == BOOK_OP_ALLOC || event->op == BOOK_OP_FREE) {
		perfetto_put_counter(perfetto, event);
	} else if (event->op == BOOK_OP_FAILED) {
		snprintf(text, sizeof(text), "allocation of %" PRIu64 " bytes of %s failed",
			 event->size, types_name(event->type));
		perfetto_put_instant(perfetto, event, text);
	}
	export_phases_event(&perfetto->phases, event, perfetto_put_phase, perfetto);
}

static void perfetto_finish(void *state)
{
	struct perfetto *perfetto = state;

	export_phases_end(&perfetto->phases, perfetto_put_phase, perfetto);
}

static void perfetto_free(void *state)
{
	struct perfetto *perfetto = state;

	map_deinit(&perfetto->tracks);
	export_phases_deinit(&perfetto->phases);
	export_proto_deinit(&perfetto->packet);
	export_proto_deinit(&perfetto->part);
	export_proto_deinit(&perfetto->inner);
	free(perfetto);
}

const struct export_form export_perfetto = {
	.name = "perfetto",
	.is_course = true,
	.is_binary = true,
	.begin = perfetto_begin,
	.event = perfetto_event,
	.finish = perfetto_finish,
	.free = perfetto_free,
};
