/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Folded stacks, "process;TYPE;outermost;...;innermost BYTES" per line, as flame graph tools read them. A
 * process has no number here, so that two runs can be compared.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/export/export-sites.h"
#include "cli/export/format/export-form.h"
#include "cli/export/visualizer/export-stacks.h"
#include "model/snapshot.h"
#include "model/types.h"

static int folded_begin(struct export_target *target, void **ret_state)
{
	*ret_state = target;
	return 0;
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

static int folded_node(const struct snapshot *snapshot, const struct export_site *site,
		       struct export_stacks *stacks, uint32_t *ret_node)
{
	uint32_t root;
	int r = export_stacks_label(stacks, 0, snapshot->processes[site->process].comm, &root);

	if (r == 0)
		r = export_stacks_label(stacks, root, types_name(site->type), &root);
	return r == 0 ? export_stacks_site(stacks, root, site->stack, site->name, ret_node) : r;
}

static int folded_write(struct export_target *target, const struct export_sites *sites,
			struct export_stacks *stacks)
{
	CLEANUP_FREE uint32_t *nodes = calloc(sites->count + 1, sizeof(*nodes));
	CLEANUP_FREE uint64_t *bytes = NULL;
	int r = nodes ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < sites->count; i++)
		r = folded_node(target->snapshot, &sites->list[i], stacks, &nodes[i]);
	if (r == 0)
		bytes = calloc((size_t)stacks->node_index.count + 1, sizeof(*bytes));
	if (r < 0 || !bytes)
		return -ENOMEM;
	for (size_t i = 0; i < sites->count; i++)
		bytes[nodes[i]] += sites->list[i].bytes;
	for (uint32_t node = 1; node <= stacks->node_index.count; node++) {
		if (bytes[node])
			folded_put_line(stacks, node, bytes[node], target->out);
	}
	return 0;
}

static int folded_finish(void *state)
{
	CLEANUP(export_stacks_deinit) struct export_stacks stacks = EXPORT_STACKS_NULL;
	CLEANUP(export_sites_deinit) struct export_sites sites = EXPORT_SITES_NULL;
	int r = export_sites_find(state, &sites);

	return r == 0 ? folded_write(state, &sites, &stacks) : r;
}

const struct export_form export_folded = {
	.name = "folded",
	.begin = folded_begin,
	.finish = folded_finish,
};
