/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claims as packets, one per row of a region or per card that a process has open: the client resolves them,
 * because it knows its books.
 */

#include "daemon/native/native-regions.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/native/native-answer.h"
#include "daemon/native/native-server.h"
#include "model/snapshot.h"
#include "source/proc/namespaces.h"
#include "wire/native.h"

struct native_regions_packet {
	struct native_process process;
	struct native_part part;
};

_Static_assert(sizeof(struct native_regions_packet) ==
		       sizeof(struct native_process) + sizeof(struct native_part),
	       "no gap between them");

/* Copies text into a field that is already zeroed. */
static void native_regions_field(char *field, size_t size, const char *text)
{
	if (text)
		memcpy(field, text, strnlen(text, size - 1));
}

static uint64_t native_regions_facts(const struct snapshot_claim *claim)
{
	return (claim->region_version & NATIVE_REGION_VERSION) |
	       (claim->region_is_full ? NATIVE_REGION_FULL : 0) |
	       (claim->region_is_private ? NATIVE_REGION_PRIVATE : 0) |
	       (claim->process.unproven ? NATIVE_REGION_UNPROVEN : 0);
}

static void native_regions_fill(const struct snapshot_claim *claim,
				struct native_regions_packet *ret_packet)
{
	const struct snapshot_process *who = &claim->process;
	struct native_regions_packet packet = {
		.process = {.book_device = claim->region,
			    .book_inode = native_regions_facts(claim),
			    .start_ticks = who->id.start_ticks,
			    .start_ns = who->start_ns,
			    .last_ns = who->last_ns,
			    .pid = who->id.pid,
			    .ns_pid = who->ns_pid,
			    .user = who->user_id,
			    .maker = who->maker_id,
			    .flags = NATIVE_EXACT | (who->alive ? NATIVE_ALIVE : 0),
			    .parts = 1},
		.part = {.device = claim->device,
			 .flags = claim->facts.remote ? NATIVE_REMOTE : 0,
			 .unique_id = claim->facts.unique_id},
	};

	native_regions_field(packet.process.comm, sizeof(packet.process.comm), who->comm);
	native_regions_field(packet.process.container, sizeof(packet.process.container),
			     who->container);
	native_regions_field(packet.part.arch, sizeof(packet.part.arch), claim->facts.arch);
	native_regions_field(packet.part.card, sizeof(packet.part.card), claim->facts.card);
	for (uint32_t type = 0; type < NATIVE_TYPES; type++)
		packet.part.memory[type] = (struct native_memory){
			.used = claim->used[type],
			.last_ns = claim->last_ns,
			.bound = claim->bound,
			.flags = NATIVE_PEAK_UNKNOWN |
				 (claim->types & UINT32_C(1) << type ? 0 : NATIVE_NOT_TOLD),
		};
	*ret_packet = packet;
}

int native_regions_put(const struct native_hooks *hooks, uint64_t came_ns,
		       struct native_answer *answer)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	int r = hooks->totals(hooks->context, came_ns, &snapshot);

	if (r == 0 && snapshot->closed_regions)
		r = -EACCES;
	for (size_t i = 0; r == 0 && i < snapshot->claim_count; i++) {
		struct native_regions_packet packet;

		if (snapshot->claims[i].is_open_only)
			continue;
		native_regions_fill(&snapshot->claims[i], &packet);
		r = native_answer_put(answer, &packet, sizeof(packet), NULL);
	}
	return r;
}

/* Clients that count pids differently cannot use the rest. */
static int native_openers_begin(struct native_answer *answer, uint64_t namespace)
{
	const struct native_process ours = {
		.book_inode = namespace,
		.pid = (uint32_t)getpid(),
		.ns_pid = (uint32_t)getpid(),
		.flags = NATIVE_ALIVE,
	};

	return native_answer_put(answer, &ours, sizeof(ours), NULL);
}

int native_openers_put(const struct native_hooks *hooks, uint64_t came_ns,
		       struct native_answer *answer)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	uint64_t namespace = namespaces_our_pids();
	int r = hooks->totals(hooks->context, came_ns, &snapshot);

	if (r == 0)
		r = native_openers_begin(answer, namespace);
	for (size_t i = 0; r == 0 && i < snapshot->claim_count; i++) {
		struct native_regions_packet packet;

		if (!snapshot->claims[i].is_open_only || snapshot->claims[i].process.id.pid == 0)
			continue;
		native_regions_fill(&snapshot->claims[i], &packet);
		packet.process.book_inode = namespace;
		r = native_answer_put(answer, &packet, sizeof(packet), NULL);
	}
	return r;
}
