/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The old server's lists, byte by byte, against files that people have reviewed: the examples of
 * the old system's documents, with the same devices, buffers and names. A case that fails prints
 * what it got; after an intended change that text, once reviewed, is the new file in
 * tests/corpus/remaining-report.
 */

#include "answers/remaining-report.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"

#define RTEST_NOW UINT64_C(1700000000000000000)
#define RTEST_KB UINT64_C(1024)
#define RTEST_PID 845661u

enum {
	RTEST_DRAM = 0,
	RTEST_L1 = 1,
	RTEST_TRACE = 4,
	RTEST_KERNEL = 6
};

static struct snapshot *rtest_snapshot(void)
{
	struct snapshot_process process = {.id.pid = RTEST_PID,
					   .ns_pid = RTEST_PID,
					   .id.start_ticks = 1,
					   .comm = "python",
					   .user = "somebody",
					   .source = "socket",
					   .alive = true,
					   .exact = true};
	struct snapshot *snapshot = snapshot_new(RTEST_NOW);
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0 && index == 0);
	return snapshot;
}

static void rtest_add(struct snapshot *snapshot, struct snapshot_buffer buffer, uint64_t age)
{
	buffer.born_ns = RTEST_NOW - age * NS_PER_S - 1;
	buffer.refs = buffer.refs ? buffer.refs : 1;
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

static void rtest_expect(const char *name, const char *text)
{
	char path[512], expected[65536];
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/remaining-report/%s.txt", testing_corpus(), name);
	{
		CLEANUP_FCLOSE FILE *file = fopen(path, "re");

		n = file ? fread(expected, 1, sizeof(expected) - 1, file) : 0;
		expected[n] = '\0';
	}
	if (strcmp(expected, text) != 0)
		fprintf(stderr, "%s is not:\n%s", path, text);
	assert(strcmp(expected, text) == 0);
}

static void rtest_check(const char *name, struct snapshot *snapshot, bool kernels,
			const struct remaining_report_history *history)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert(out && snapshot_finish(snapshot) == 0);
	if (kernels)
		assert(remaining_report_kernels(out, snapshot) == 0);
	else
		assert(remaining_report_buffers(out, snapshot, history) == 0);
	assert(fclose(out) == 0);
	rtest_expect(name, text);
	snapshot_free(snapshot);
}

/* 23 buffers in DRAM, 83.26 MB; 29 in L1, 6.62 MB; one of these on eight devices. */
static struct snapshot *rtest_llama(void)
{
	struct snapshot *snapshot = rtest_snapshot();

	rtest_add(snapshot,
		  (struct snapshot_buffer){
			  .address = 0x1b233ee0,
			  .size = 16128 * RTEST_KB,
			  .name = "model_weights_shard_0",
			  .stack = testing_stack(
				  "llama_model.py:234:load_weights -> ttnn_ops.py:567:to_device "
				  "-> allocation_client.py:140:allocate")},
		  108);
	rtest_add(snapshot,
		  (struct snapshot_buffer){
			  .address = 0x11e66820,
			  .size = 30464 * RTEST_KB,
			  .name = "attention_qkv_weights",
			  .stack = testing_stack(
				  "attention.py:123:create_qkv -> model_init.py:456:init_layer -> "
				  "allocation_client.py:140:allocate")},
		  110);
	for (uint64_t i = 0; i < 21; i++)
		rtest_add(snapshot,
			  (struct snapshot_buffer){.address = 0x20000000 + (i << 21),
						   .size = (i < 20 ? 1840 : 1866) * RTEST_KB},
			  111 + i);
	for (uint32_t device = 0; device < 8; device++)
		rtest_add(snapshot,
			  (struct snapshot_buffer){
				  .device = device,
				  .type = RTEST_L1,
				  .address = 0x168380,
				  .size = 64 * RTEST_KB,
				  .refs = 4,
				  .name = "circular_buffer_0",
				  .stack = testing_stack("circular_buffer.cpp:89:create_cb -> "
							 "program.cpp:234:allocate_cb -> "
							 "allocation_client.py:140:allocate")},
			  14);
	for (uint64_t i = 0; i < 28; i++)
		rtest_add(snapshot,
			  (struct snapshot_buffer){.type = RTEST_L1,
						   .address = 0x170000 + (i << 18),
						   .size = (i < 27 ? 240 : 235) * RTEST_KB},
			  15 + i);
	return snapshot;
}

UNIT(remaining_buffers_of_the_documents_example)
{
	rtest_check("remaining", rtest_llama(), false, NULL);
}

UNIT(perfect_cleanup)
{
	rtest_check("perfect", rtest_snapshot(), false, NULL);
}

/*
 * A name that would redraw the screen, a size that is not a whole number of kilobytes, a clock that
 * went backwards.
 */
UNIT(odd_buffers_are_printed_safely)
{
	struct snapshot *snapshot = rtest_snapshot();

	rtest_add(snapshot,
		  (struct snapshot_buffer){.device = 1023,
					   .type = RTEST_TRACE,
					   .address = UINT64_MAX,
					   .size = 1000,
					   .name = "\033[2Jgone\n"},
		  0);
	snapshot->buffers[0].born_ns = RTEST_NOW + 5 * NS_PER_S;
	rtest_check("odd", snapshot, false, NULL);
}

UNIT(kernels_are_summed_by_kind)
{
	struct snapshot *snapshot = rtest_snapshot();

	for (uint8_t sort = 0; sort < 3; sort++) {
		for (uint64_t i = 0; i <= sort; i++)
			rtest_add(snapshot,
				  (struct snapshot_buffer){.device = 1,
							   .type = RTEST_KERNEL,
							   .kernel_sort = sort,
							   .address = 0x10u * sort + i,
							   .size = 50 * RTEST_KB},
				  i);
	}
	/* Not a kernel: not listed. */
	rtest_add(snapshot, (struct snapshot_buffer){.address = 1, .size = 1}, 1);
	rtest_check("kernels", snapshot, true, NULL);
}

static void rtest_put(void *context, FILE *out, const struct snapshot_process *process,
		      const struct snapshot_buffer *buffer)
{
	fprintf(out, "      History of 0x%x of %u: %s\n", (unsigned int)buffer->address,
		process->id.pid, (const char *)context);
}

static void rtest_put_double_freed(void *context, FILE *out)
{
	fprintf(out, "Buffer 0x10: %s\n", (const char *)context);
}

static char rtest_context[] = "freed twice";

static const struct remaining_report_history rtest_history = {
	.context = rtest_context,
	.double_freed = 1,
	.put = rtest_put,
	.put_double_freed = rtest_put_double_freed,
};

UNIT(history_is_below_each_buffer_and_double_freed_buffers_are_at_the_end)
{
	struct snapshot *snapshot = rtest_snapshot();

	rtest_add(snapshot,
		  (struct snapshot_buffer){
			  .address = 0x20,
			  .size = RTEST_KB,
			  .stack = testing_stack("model.py:12:load"),
		  },
		  1);
	rtest_check("history", snapshot, false, &rtest_history);
}

UNIT(perfect_cleanup_mentions_double_freed_buffers)
{
	rtest_check("double-freed", rtest_snapshot(), false, &rtest_history);
}
