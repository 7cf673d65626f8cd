/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For speedscope: a profile of weights in bytes for each process and type of memory, because types are
 * different memories and the file has no other place for them.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "cli/common/must.h"
#include "cli/export/export-sites.h"
#include "cli/export/format/export-form.h"
#include "cli/export/visualizer/export-stacks.h"
#include "model/snapshot.h"
#include "model/types.h"

#define SPEEDSCOPE_SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
	const struct snapshot *snapshot;
	struct export_sites sites;
	struct export_stacks stacks;
	uint32_t *nodes; /* of the sites */
	struct emit json;
};

static void *speedscope_begin(struct export_target *target)
{
	struct speedscope *scope = must_alloc(1, sizeof(*scope));
	scope->snapshot = target->snapshot;
	scope->json = EMIT_INIT(target->out);
	scope->sites = export_sites_find(target);
	return scope;
}

static void speedscope_put_frames(struct speedscope *scope)
{
	const struct export_stacks *stacks = &scope->stacks;
	struct emit *json = &scope->json;

	emit_open_object(json, "shared");
	emit_open_array(json, "frames");
	for (uint32_t i = 0; i < stacks->frame_index.count; i++) {
		const struct export_frame *frame = &stacks->frames[i];

		emit_open_object(json, NULL);
		emit_string(json, "name", export_stacks_string(stacks, frame->function));
		if (frame->file || frame->module)
			emit_string(json, "file",
				    export_stacks_string(stacks, frame->file ? frame->file
									     : frame->module));
		if (frame->line)
			emit_u64(json, "line", frame->line);
		emit_close_object(json);
	}
	emit_close_array(json);
	emit_close_object(json);
}

static bool speedscope_is_of(const struct export_site *site, const struct export_site *first)
{
	return site->process == first->process && site->type == first->type && site->bytes;
}

static void speedscope_put_sample(struct speedscope *scope, uint32_t node)
{
	uint32_t path[EXPORT_STACK_DEPTH];
	size_t count = export_stacks_path(&scope->stacks, node, path, EXPORT_STACK_DEPTH);

	emit_open_array(&scope->json, NULL);
	for (size_t i = 0; i < count; i++)
		emit_u64(&scope->json, NULL, scope->stacks.nodes[path[i] - 1].frame - 1);
	emit_close_array(&scope->json);
}

/* The profile of all sites with the process and the type of @first. */
static void speedscope_put_profile(struct speedscope *scope, const struct export_site *first)
{
	const struct snapshot_process *process = &scope->snapshot->processes[first->process];
	const struct export_sites *sites = &scope->sites;
	struct emit *json = &scope->json;
	uint64_t total = 0;
	char name[128];

	snprintf(name, sizeof(name), "%s of %s (pid %" PRIu32 ")", types_name(first->type),
		 process->comm, process->id.pid);
	emit_open_object(json, NULL);
	emit_string(json, "type", "sampled");
	emit_string(json, "name", name);
	emit_string(json, "unit", "bytes");
	emit_open_array(json, "samples");
	for (size_t i = 0; i < sites->count; i++) {
		if (speedscope_is_of(&sites->list[i], first))
			speedscope_put_sample(scope, scope->nodes[i]);
	}
	emit_close_array(json);
	emit_open_array(json, "weights");
	for (size_t i = 0; i < sites->count; i++) {
		if (speedscope_is_of(&sites->list[i], first)) {
			emit_u64(json, NULL, sites->list[i].bytes);
			total += sites->list[i].bytes;
		}
	}
	emit_close_array(json);
	emit_u64(json, "startValue", 0);
	emit_u64(json, "endValue", total);
	emit_close_object(json);
}

static bool speedscope_is_first(const struct export_sites *sites, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (speedscope_is_of(&sites->list[k], &sites->list[i]))
			return false;
	}
	return sites->list[i].bytes > 0;
}

static void speedscope_finish(void *state)
{
	struct speedscope *scope = state;
	struct emit *json = &scope->json;
	char version[32];

	scope->nodes = must_alloc(scope->sites.count + 1, sizeof(*scope->nodes));
	for (size_t i = 0; i < scope->sites.count; i++)
		scope->nodes[i] = export_stacks_site(&scope->stacks, 0, scope->sites.list[i].stack,
						     scope->sites.list[i].name);
	snprintf(version, sizeof(version), "ttmem@%d.%d.%d", TTMEM_VERSION_MAJOR,
		 TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH);
	emit_open_object(json, NULL);
	emit_string(json, "$schema", SPEEDSCOPE_SCHEMA);
	emit_string(json, "exporter", version);
	emit_string(json, "name", "device memory in use");
	emit_u64(json, "activeProfileIndex", 0);
	speedscope_put_frames(scope);
	emit_open_array(json, "profiles");
	for (size_t i = 0; i < scope->sites.count; i++) {
		if (speedscope_is_first(&scope->sites, i))
			speedscope_put_profile(scope, &scope->sites.list[i]);
	}
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}

static void speedscope_free(void *state)
{
	struct speedscope *scope = state;

	export_sites_deinit(&scope->sites);
	export_stacks_deinit(&scope->stacks);
	free(scope->nodes);
	free(scope);
}

const struct export_form export_speedscope = {
	.name = "speedscope",
	.begin = speedscope_begin,
	.finish = speedscope_finish,
	.free = speedscope_free,
};
