/* SPDX-License-Identifier: Apache-2.0 */

/* Which claims are sent as rows of regions, which as openers, and with what. */

#include "daemon/native/native-regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quota.h"
#include "base/testing/unit.h"
#include "daemon/native/native-answer.h"
#include "daemon/native/native-server.h"
#include "model/snapshot.h"
#include "source/proc/namespaces.h"
#include "wire/native.h"

struct packet {
	struct native_reply reply;
	struct native_process process;
	struct native_part part;
};

static struct native_room room = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.bytes = {.total = NATIVE_ANSWERS_MAX, .each = NATIVE_ANSWER_MAX}};
static struct native_answer answer;
static struct snapshot *snapshot;
static int result; /* of taking the snapshot */

static int take(void *context, uint64_t since_ns, struct snapshot **ret_snapshot)
{
	(void)context;
	assert(since_ns == 77);
	if (result == 0)
		*ret_snapshot = snapshot_ref(snapshot);
	return result;
}

static const struct native_hooks hooks = {.totals = take};

static void add(uint32_t pid, uint32_t device, bool is_open_only)
{
	const struct snapshot_claim claim = {
		.process = {.id.pid = pid, .comm = "train", .source = "tt-metal", .alive = true},
		.device = device,
		.is_open_only = is_open_only,
		.types = 1,
		.used = {4096},
	};

	assert(snapshot_add_claim(snapshot, &claim) == 0);
}

static void begin(void)
{
	snapshot = snapshot_new(1000);
	assert(snapshot);
	native_answer_init(&answer, NATIVE_REGIONS, &room, 1000);
}

static void end(void)
{
	native_answer_deinit(&answer);
	quota_deinit(&room.bytes);
	snapshot_free(snapshot);
}

/* The next packet; of @size bytes with its header. */
static struct packet next(size_t size)
{
	struct native_packet *packet = native_answer_take(&answer);
	struct packet copy = {0};

	assert(packet && packet->length == size && packet->file < 0 && !packet->book);
	memcpy(&copy, packet->bytes, size);
	native_packet_free(packet);
	return copy;
}

UNIT(rows_of_regions_are_sent_without_openers)
{
	struct packet packet;

	begin();
	add(5, 0, true);
	add(6, 1, false);
	add(7, 2, true);
	add(8, 3, false);
	assert(native_regions_put(&hooks, 77, &answer) == 0);
	packet = next(sizeof(packet));
	assert(packet.process.pid == 6 && packet.process.parts == 1 && packet.part.device == 1);
	assert(strcmp(packet.process.comm, "train") == 0);
	assert(packet.process.flags == (NATIVE_EXACT | NATIVE_ALIVE));
	assert(packet.part.memory[0].used == 4096);
	assert(packet.part.memory[0].flags == NATIVE_PEAK_UNKNOWN);
	assert(packet.part.memory[1].flags == (NATIVE_PEAK_UNKNOWN | NATIVE_NOT_TOLD));
	packet = next(sizeof(packet));
	assert(packet.process.pid == 8 && packet.part.device == 3);
	assert(!native_answer_take(&answer));
	end();
}

UNIT(openers_follow_a_packet_about_the_daemon)
{
	const size_t ours = sizeof(struct native_reply) + sizeof(struct native_process);
	struct packet packet;

	begin();
	add(6, 1, false);
	add(0, 4, true); /* whose it is, is not known */
	add(5, 0, true);
	add(6, 2, false);
	add(7, 2, true);
	assert(native_openers_put(&hooks, 77, &answer) == 0);
	packet = next(ours);
	assert(packet.process.pid == (uint32_t)getpid() && packet.process.parts == 0);
	assert(packet.process.ns_pid == (uint32_t)getpid());
	assert(packet.process.book_inode == namespaces_our_pids());
	packet = next(sizeof(packet));
	assert(packet.process.pid == 5 && packet.part.device == 0);
	assert(packet.process.book_inode == namespaces_our_pids());
	packet = next(sizeof(packet));
	assert(packet.process.pid == 7 && packet.part.device == 2);
	assert(!native_answer_take(&answer));
	end();
}

UNIT(what_is_known_of_a_region_and_its_row)
{
	struct snapshot_claim claim = {
		.process = {.id = {.pid = 6, .start_ticks = 5},
			    .ns_pid = 2,
			    .user_id = 10,
			    .maker_id = 11,
			    .start_ns = 12,
			    .last_ns = 13,
			    .unproven = true,
			    .container = "c"},
		.facts = {.remote = true, .unique_id = 14, .arch = "wormhole_b0", .card = "n300"},
		.last_ns = 15,
		.bound = SNAPSHOT_AT_LEAST,
		.region = 16,
		.region_version = 3,
		.region_is_full = true,
	};
	struct packet packet;

	begin();
	assert(snapshot_add_claim(snapshot, &claim) == 0);
	claim.process.unproven = claim.region_is_full = false;
	claim.region_is_private = true;
	claim.facts.remote = false;
	claim.facts.arch = NULL;
	assert(snapshot_add_claim(snapshot, &claim) == 0);
	assert(native_regions_put(&hooks, 77, &answer) == 0);
	packet = next(sizeof(packet));
	assert(packet.process.book_device == 16 && packet.process.start_ticks == 5);
	assert(packet.process.book_inode == (3 | NATIVE_REGION_FULL | NATIVE_REGION_UNPROVEN));
	assert(packet.process.ns_pid == 2 && packet.process.user == 10);
	assert(packet.process.maker == 11 && packet.process.start_ns == 12);
	assert(packet.process.last_ns == 13 && packet.process.flags == NATIVE_EXACT);
	assert(strcmp(packet.process.container, "c") == 0 && packet.process.comm[0] == '\0');
	assert(packet.part.flags == NATIVE_REMOTE && packet.part.unique_id == 14);
	assert(strcmp(packet.part.arch, "wormhole_b0") == 0);
	assert(strcmp(packet.part.card, "n300") == 0);
	assert(packet.part.memory[0].last_ns == 15 && packet.part.memory[0].bound == 1);
	packet = next(sizeof(packet));
	assert(packet.process.book_inode == (3 | NATIVE_REGION_PRIVATE));
	assert(packet.part.flags == 0 && packet.part.arch[0] == '\0');
	end();
}

UNIT(closed_regions_and_failures_are_passed_on)
{
	begin();
	add(6, 1, false);
	snapshot->closed_regions = 1;
	assert(native_regions_put(&hooks, 77, &answer) == -EACCES);
	assert(!native_answer_take(&answer));
	result = -EIO;
	assert(native_regions_put(&hooks, 77, &answer) == -EIO);
	assert(native_openers_put(&hooks, 77, &answer) == -EIO && !native_answer_take(&answer));
	end();
}

UNIT(a_row_that_finds_no_room_ends_the_answer)
{
	begin();
	room.bytes.total = room.bytes.each = 2 * sizeof(struct packet);
	for (uint32_t i = 0; i < 5; i++) {
		add(6, i, false);
		add(6, i, true);
	}
	assert(native_regions_put(&hooks, 77, &answer) == -ENOBUFS);
	end();
}
