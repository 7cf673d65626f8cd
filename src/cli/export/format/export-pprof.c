/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For pprof: perftools.profiles.Profile, compressed by gzip. A sample is a call site of a process, a device
 * and a type, which are its labels. Its values are what is in use and, of a recording, what was allocated
 * up to then.
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/export/export-sites.h"
#include "cli/export/format/export-form.h"
#include "cli/export/format/export-proto.h"
#include "cli/export/visualizer/export-stacks.h"
#include "model/snapshot.h"
#include "model/types.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_DEFAULT_TYPE = 14,
	VALUE_TYPE = 1,
	VALUE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_TEXT = 2,
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINE = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILE = 4,
};

#define PPROF_GZIP 31      /* zlib's window bits for the format of gzip */
#define PPROF_CHUNK 65536u /* bytes that are compressed at once */

struct pprof {
	struct export_target *target;
	struct export_sites sites;
	struct export_stacks stacks;
	struct map modules; /* a mapping for each module's text */
	struct map functions;
	struct export_proto profile, part, inner;
};

static void *pprof_begin(struct export_target *target)
{
	struct pprof *pprof = must_alloc(1, sizeof(*pprof));

	pprof->target = target;
	pprof->sites = export_sites_find(target);
	return pprof;
}

/* The number of a text in the profile's table is that of the tree: 0 is "" in both. */
static uint32_t pprof_text(struct pprof *pprof, const char *text)
{
	return export_stacks_text(&pprof->stacks, text);
}

static void pprof_put_type(struct pprof *pprof, const char *type, const char *unit)
{
	export_proto_number(&pprof->part, VALUE_TYPE, pprof_text(pprof, type));
	export_proto_number(&pprof->part, VALUE_UNIT, pprof_text(pprof, unit));
	export_proto_message(&pprof->profile, PROFILE_SAMPLE_TYPE, &pprof->part);
}

static void pprof_put_types(struct pprof *pprof)
{
	if (pprof->target->counts) {
		pprof_put_type(pprof, "alloc_objects", "count");
		pprof_put_type(pprof, "alloc_space", "bytes");
	}
	pprof_put_type(pprof, "inuse_objects", "count");
	pprof_put_type(pprof, "inuse_space", "bytes");
}

/* All are texts: pprof takes the number 0 for none. */
static void pprof_put_label(struct pprof *pprof, const char *key, const char *text)
{
	export_proto_number(&pprof->inner, LABEL_KEY, pprof_text(pprof, key));
	export_proto_number(&pprof->inner, LABEL_TEXT, pprof_text(pprof, text));
	export_proto_message(&pprof->part, SAMPLE_LABEL, &pprof->inner);
}

static void pprof_put_labels(struct pprof *pprof, const struct export_site *site)
{
	const struct snapshot_process *process = &pprof->target->snapshot->processes[site->process];
	char number[16];

	pprof_put_label(pprof, "type", types_name(site->type));
	pprof_put_label(pprof, "process", process->comm);
	snprintf(number, sizeof(number), "%" PRIu32, process->id.pid);
	pprof_put_label(pprof, "pid", number);
	snprintf(number, sizeof(number), "%" PRIu32, site->device);
	pprof_put_label(pprof, "device", number);
}

static void pprof_put_sample(struct pprof *pprof, const struct export_site *site)
{
	uint32_t path[EXPORT_STACK_DEPTH];
	uint32_t node = export_stacks_site(&pprof->stacks, 0, site->stack, site->name);
	struct export_proto *inner = &pprof->inner;
	size_t count;

	count = export_stacks_path(&pprof->stacks, node, path, EXPORT_STACK_DEPTH);
	while (count > 0)
		export_proto_varint(inner, pprof->stacks.nodes[path[--count] - 1].frame);
	export_proto_message(&pprof->part, SAMPLE_LOCATION, inner);
	if (pprof->target->counts) {
		export_proto_varint(inner, site->allocs);
		export_proto_varint(inner, site->alloc_bytes);
	}
	export_proto_varint(inner, site->buffers);
	export_proto_varint(inner, site->bytes);
	export_proto_message(&pprof->part, SAMPLE_VALUE, inner);
	pprof_put_labels(pprof, site);
	export_proto_message(&pprof->profile, PROFILE_SAMPLE, &pprof->part);
}

/* One for each module; pprof need not look for names, there are none to be found but ours. */
static uint32_t pprof_put_mapping(struct pprof *pprof, uint32_t module)
{
	uint32_t before = pprof->modules.count, number = must_number(&pprof->modules, module, 0);

	if (number <= before)
		return number;
	export_proto_number(&pprof->part, MAPPING_ID, number);
	export_proto_number(&pprof->part, MAPPING_FILE, module);
	for (uint32_t field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINE; field++)
		export_proto_number(&pprof->part, field, 1);
	export_proto_message(&pprof->profile, PROFILE_MAPPING, &pprof->part);
	return number;
}

/* A function is a name in a file; several frames may be in it. */
static uint32_t pprof_put_function(struct pprof *pprof, const struct export_frame *frame)
{
	uint32_t before = pprof->functions.count;
	uint32_t number = must_number(&pprof->functions, frame->function, frame->file);

	if (number <= before)
		return number;
	export_proto_number(&pprof->part, FUNCTION_ID, number);
	export_proto_number(&pprof->part, FUNCTION_NAME, frame->function);
	if (frame->file)
		export_proto_number(&pprof->part, FUNCTION_FILE, frame->file);
	export_proto_message(&pprof->profile, PROFILE_FUNCTION, &pprof->part);
	return number;
}

static void pprof_put_location(struct pprof *pprof, uint32_t number)
{
	const struct export_frame *frame = &pprof->stacks.frames[number - 1];
	uint32_t mapping = frame->module ? pprof_put_mapping(pprof, frame->module) : 0;
	uint32_t function = pprof_put_function(pprof, frame);

	export_proto_number(&pprof->part, LOCATION_ID, number);
	if (mapping)
		export_proto_number(&pprof->part, LOCATION_MAPPING, mapping);
	export_proto_number(&pprof->inner, LINE_FUNCTION, function);
	if (frame->line)
		export_proto_number(&pprof->inner, LINE_LINE, frame->line);
	export_proto_message(&pprof->part, LOCATION_LINE, &pprof->inner);
	export_proto_message(&pprof->profile, PROFILE_LOCATION, &pprof->part);
}

static void pprof_put_rest(struct pprof *pprof)
{
	const struct export_target *target = pprof->target;
	uint64_t now = target->snapshot->time_ns;
	uint32_t chosen = pprof_text(pprof, "inuse_space");

	for (uint32_t i = 1; i <= pprof->stacks.frame_index.count; i++)
		pprof_put_location(pprof, i);
	for (uint32_t i = 0; i <= pprof->stacks.text_index.count; i++)
		export_proto_text(&pprof->profile, PROFILE_STRING,
				  export_stacks_string(&pprof->stacks, i));
	export_proto_number(&pprof->profile, PROFILE_TIME, now);
	if (target->start_ns && target->start_ns < now)
		export_proto_number(&pprof->profile, PROFILE_DURATION, now - target->start_ns);
	export_proto_number(&pprof->profile, PROFILE_DEFAULT_TYPE, chosen);
}

static void pprof_compress(struct export_proto *profile, FILE *out)
{
	unsigned char room[PPROF_CHUNK];
	z_stream stream = {.next_in = profile->bytes};
	size_t left = profile->length;
	int r = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, PPROF_GZIP, 8,
			     Z_DEFAULT_STRATEGY);

	if (r != Z_OK)
		must_end();
	while (r == Z_OK) {
		size_t n = bits_min(left, PPROF_CHUNK);

		if (stream.avail_in == 0) {
			stream.avail_in = (uInt)n;
			left -= n;
		}
		stream.next_out = room;
		stream.avail_out = sizeof(room);
		r = deflate(&stream, left > 0 ? Z_NO_FLUSH : Z_FINISH);
		(void)fwrite(room, 1, sizeof(room) - stream.avail_out,
			     out); /* asked for at the end */
	}
	deflateEnd(&stream);
	assert(r == Z_STREAM_END); /* it has room and gets all */
}

static void pprof_finish(void *state)
{
	struct pprof *pprof = state;

	pprof_put_types(pprof);
	for (size_t i = 0; i < pprof->sites.count; i++)
		pprof_put_sample(pprof, &pprof->sites.list[i]);
	pprof_put_rest(pprof);
	pprof_compress(&pprof->profile, pprof->target->out);
}

static void pprof_free(void *state)
{
	struct pprof *pprof = state;

	export_sites_deinit(&pprof->sites);
	export_stacks_deinit(&pprof->stacks);
	map_deinit(&pprof->modules);
	map_deinit(&pprof->functions);
	export_proto_deinit(&pprof->profile);
	export_proto_deinit(&pprof->part);
	export_proto_deinit(&pprof->inner);
	free(pprof);
}

const struct export_form export_pprof = {
	.name = "pprof",
	.is_binary = true,
	.begin = pprof_begin,
	.finish = pprof_finish,
	.free = pprof_free,
};
