/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks as a tree. */

#include "cli/export/visualizer/export-stacks.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

static const char first[] = "/a/run.py:3:<module> -> /a/model.py:12:load";
static const char second[] = "/a/run.py:3:<module> -> /a/model.py:20:step";
static const char native[] = "main @ app -> lib.so+0x1f (build abc) @ lib.so";

static void check_label(const struct export_stacks *stacks, uint32_t node, const char *label)
{
	char text[EXPORT_LABEL_SIZE];

	assert(strcmp(export_stacks_label_of(stacks, stacks->nodes[node - 1].frame, text), label) ==
	       0);
}

UNIT(stacks_share_their_callers)
{
	struct export_stacks stacks = EXPORT_STACKS_NULL;
	uint32_t load, step, again, path[4];

	load = export_stacks_add(&stacks, 0, testing_stack(first));
	step = export_stacks_add(&stacks, 0, testing_stack(second));
	again = export_stacks_add(&stacks, 0, testing_stack(first));
	assert(load == again && load != step && stacks.node_index.count == 3);
	assert(stacks.nodes[load - 1].parent == stacks.nodes[step - 1].parent);
	assert(export_stacks_path(&stacks, step, path, 4) == 2 && path[1] == step);
	check_label(&stacks, path[0], "module (run.py:3)");
	check_label(&stacks, path[1], "step (model.py:20)");
	export_stacks_deinit(&stacks);
}

UNIT(code_outside_of_functions_is_not_a_template)
{
	struct export_stacks stacks = EXPORT_STACKS_NULL;

	(void)export_stacks_add(&stacks, 0, testing_stack("/a/run.py:3:<module>"));
	assert(strcmp(export_stacks_string(&stacks, stacks.frames[0].function),
		      "module (run.py)") == 0);
	(void)export_stacks_add(&stacks, 0, testing_stack("std::vector<int>::push @ app"));
	assert(strcmp(export_stacks_string(&stacks, stacks.frames[1].function),
		      "std::vector<int>::push") == 0);
	export_stacks_deinit(&stacks);
}

UNIT(native_frames_have_their_module)
{
	struct export_stacks stacks = EXPORT_STACKS_NULL;
	uint32_t node;

	node = export_stacks_add(&stacks, 0, testing_stack(native));
	check_label(&stacks, node, "lib.so+0x1f");
	check_label(&stacks, stacks.nodes[node - 1].parent, "main (app)");
	export_stacks_deinit(&stacks);
}

UNIT(without_a_stack_a_name_stands_for_it)
{
	struct export_stacks stacks = EXPORT_STACKS_NULL;
	uint32_t root, a, b, c;

	root = export_stacks_label(&stacks, 0, "DRAM");
	a = export_stacks_site(&stacks, root, NULL, "kv.1");
	b = export_stacks_site(&stacks, root, NULL, "kv.22");
	c = export_stacks_site(&stacks, root, NULL, NULL);
	assert(a == b && a != c && stacks.nodes[a - 1].parent == root);
	check_label(&stacks, a, "[no stack] kv.#");
	check_label(&stacks, c, "[no stack]");
	export_stacks_deinit(&stacks);
}

UNIT(names_cannot_control_a_terminal)
{
	struct export_stacks stacks = EXPORT_STACKS_NULL;
	uint32_t node;

	node = export_stacks_add(&stacks, 0, testing_stack("/a/x.py:1:f\x1b[31m\n"));
	check_label(&stacks, node, "f\\x1b[31m\\x0a (x.py:1)");
	export_stacks_deinit(&stacks);
}
