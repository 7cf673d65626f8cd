/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Folded stacks, "process;TYPE;outermost;...;innermost BYTES" per line, as flame graph tools read them. A
 * process has no number here, so that two runs can be compared.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/export/export-sites.h"
#include "cli/export/format/export-form.h"
#include "cli/export/visualizer/export-stacks.h"
#include "model/snapshot.h"
#include "model/types.h"

static void *folded_begin(struct export_target *target)
{
	return target;
}

static void folded_put_label(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(*text == ';' ? ':' : *text, out); /* which separates frames */
}

static void folded_put_line(const struct export_stacks *stacks, uint32_t node, uint64_t bytes,
			    FILE *out)
{
	uint32_t path[EXPORT_STACK_DEPTH + 2];
	size_t count = export_stacks_path(stacks, node, path, EXPORT_STACK_DEPTH + 2);
	char label[EXPORT_LABEL_SIZE];

	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			fputc(';', out);
		folded_put_label(out, export_stacks_label_of(
					      stacks, stacks->nodes[path[i] - 1].frame, label));
	}
	fprintf(out, " %" PRIu64 "\n", bytes);
}

static uint32_t folded_node(const struct snapshot *snapshot, const struct export_site *site,
			    struct export_stacks *stacks)
{
	uint32_t root = export_stacks_label(stacks, 0, snapshot->processes[site->process].comm);

	root = export_stacks_label(stacks, root, types_name(site->type));
	return export_stacks_site(stacks, root, site->stack, site->name);
}

static void folded_write(struct export_target *target, const struct export_sites *sites,
			 struct export_stacks *stacks)
{
	CLEANUP_FREE uint32_t *nodes = must_alloc(sites->count + 1, sizeof(*nodes));
	CLEANUP_FREE uint64_t *bytes = NULL;

	for (size_t i = 0; i < sites->count; i++)
		nodes[i] = folded_node(target->snapshot, &sites->list[i], stacks);
	bytes = must_alloc((size_t)stacks->node_index.count + 1, sizeof(*bytes));
	for (size_t i = 0; i < sites->count; i++)
		bytes[nodes[i]] += sites->list[i].bytes;
	for (uint32_t node = 1; node <= stacks->node_index.count; node++) {
		if (bytes[node])
			folded_put_line(stacks, node, bytes[node], target->out);
	}
}

static void folded_finish(void *state)
{
	CLEANUP(export_stacks_deinit) struct export_stacks stacks = EXPORT_STACKS_NULL;
	CLEANUP(export_sites_deinit) struct export_sites sites = export_sites_find(state);

	folded_write(state, &sites, &stacks);
}

const struct export_form export_folded = {
	.name = "folded",
	.begin = folded_begin,
	.finish = folded_finish,
};
