/* SPDX-License-Identifier: Apache-2.0 */

/* Regions and openers that only the daemon may read, as claims like those that we read ourselves. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/snapshot.h"
#include "source/daemon-client/daemon-client-private.h"
#include "source/daemon-client/daemon-client.h"
#include "source/proc/namespaces.h"
#include "source/proc/proc.h"

static const char *daemon_client_regions_text(struct snapshot *snapshot, const char *field,
					      size_t size)
{
	size_t length = strnlen(field, size);

	return length ? snapshot_text(snapshot, field, length) : NULL;
}

/* Returns 0 or -ENOMEM. */
static int daemon_client_claim(struct snapshot *snapshot, const struct native_process *told,
			       const struct native_part *part, struct snapshot_claim *ret_claim)
{
	struct snapshot_claim claim = {
		.process = {.id = {told->pid, told->start_ticks},
			    .ns_pid = told->ns_pid,
			    .start_ns = told->start_ns,
			    .comm = snapshot_text(snapshot, told->comm,
						  strnlen(told->comm, sizeof(told->comm))),
			    .user_id = told->user,
			    .maker_id = told->maker,
			    .container = daemon_client_regions_text(snapshot, told->container,
								    sizeof(told->container)),
			    .source = "tt-metal",
			    .alive = told->flags & NATIVE_ALIVE,
			    .exact = true,
			    .stale = !(told->flags & NATIVE_ALIVE),
			    .unproven = !(told->flags & NATIVE_ALIVE) &&
					told->book_inode & NATIVE_REGION_UNPROVEN,
			    .last_ns = told->last_ns},
		.device = part->device,
		.facts = {.remote = part->flags & NATIVE_REMOTE,
			  .unique_id = part->unique_id,
			  .arch = daemon_client_regions_text(snapshot, part->arch,
							     sizeof(part->arch)),
			  .card = daemon_client_regions_text(snapshot, part->card,
							     sizeof(part->card))},
		.last_ns = part->memory[0].last_ns,
		.bound = part->memory[0].bound,
		.region = told->book_device,
		.region_version = told->book_inode & NATIVE_REGION_VERSION,
		.region_is_full = told->book_inode & NATIVE_REGION_FULL,
		.region_is_private = told->book_inode & NATIVE_REGION_PRIVATE,
	};
	char user[64];

	proc_user_name(told->user, user, sizeof(user));
	claim.process.user = snapshot_text(snapshot, user, strlen(user));
	if (!claim.process.comm || !claim.process.user)
		return -ENOMEM;
	for (uint32_t type = 0; type < NATIVE_TYPES; type++) {
		claim.used[type] = part->memory[type].used;
		if (!(part->memory[type].flags & NATIVE_NOT_TOLD))
			claim.types |= UINT32_C(1) << type;
	}
	*ret_claim = claim;
	return 0;
}

/* Where claims go. Those of regions are added to the snapshot, those of openers are listed. */
struct daemon_client_claims {
	struct snapshot *snapshot;
	bool are_openers;
	struct snapshot_claim *list;
	size_t count, capacity;
	uint64_t namespace; /* of our pids */
	bool has_begun;     /* the daemon's pids are of the same */
};

static int daemon_client_claims_add(struct daemon_client_claims *claims,
				    const struct native_process *told,
				    const struct native_part *part)
{
	struct snapshot_claim claim, *list;
	int r = daemon_client_claim(claims->snapshot, told, part, &claim);

	if (r < 0)
		return r;
	if (!claims->are_openers)
		return snapshot_add_claim(claims->snapshot, &claim);
	if (claims->count >= DAEMON_CLIENT_OTHERS_MAX)
		return DAEMON_CLIENT_GARBAGE;
	list = array_grow(claims->list, &claims->capacity, claims->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	claims->list = list;
	claim.is_open_only = true;
	list[claims->count++] = claim;
	return 0;
}

static int daemon_client_claims_packet(void *context, const void *payload, size_t length, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	struct daemon_client_claims *claims = context;
	struct native_process process;
	struct native_part part;
	const void *parts;
	int r = 0;

	(void)owned; /* none was asked for */
	if (native_process_decode(payload, length, &process, &parts) < 0)
		return DAEMON_CLIENT_GARBAGE;
	if (claims->are_openers && (!claims->namespace || process.book_inode != claims->namespace))
		return 0; /* pids that mean nothing to us */
	claims->has_begun = true;
	for (uint32_t i = 0; r == 0 && i < process.parts; i++)
		r = native_part_get(parts, i, &part) < 0
			    ? DAEMON_CLIENT_GARBAGE
			    : daemon_client_claims_add(claims, &process, &part);
	return r;
}

int daemon_client_regions(struct daemon_client *remote, struct snapshot *snapshot)
{
	struct daemon_client_claims claims = {.snapshot = snapshot};
	struct native_request request;

	native_request_init(&request, NATIVE_REGIONS);
	return daemon_client_talk(remote, &request, daemon_client_claims_packet, &claims);
}

int daemon_client_openers(struct daemon_client *remote, struct snapshot *snapshot,
			  struct snapshot_claim **ret_claims, size_t *ret_count)
{
	struct daemon_client_claims openers = {
		.snapshot = snapshot,
		.are_openers = true,
		.namespace = namespaces_our_pids(),
	};
	struct native_request request;
	int r;

	native_request_init(&request, NATIVE_OPENERS);
	r = daemon_client_talk(remote, &request, daemon_client_claims_packet, &openers);
	/* An older daemon: everything else was answered, so that is its outcome. */
	if (r == DAEMON_CLIENT_REFUSED)
		(void)daemon_client_settle(remote, 0);
	if (r == 0 && !openers.has_begun)
		r = DAEMON_CLIENT_NONE;
	if (r != 0) {
		free(openers.list);
		return r;
	}
	*ret_claims = openers.list;
	*ret_count = openers.count;
	return 0;
}
