/* SPDX-License-Identifier: Apache-2.0 */

/* Takes a snapshot with all buffers, because a memory map needs every buffer in its memory. */

#include "cli/common/session-maps.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/session.h"
#include "model/snapshot.h"
#include "model/types.h"

#define SESSION_OTHERS_SHOWN 4u /* processes in a line; scripts get all */

int session_spaces_take(struct session *session, const struct filter *filter,
			struct snapshot **ret_snapshot, struct memory_map *ret_map)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_request request = {.buffers = true};
	int r;

	/* With all processes: what others hold of the same device counts. */
	r = session_take(session, &request, &snapshot);
	if (r == 0)
		r = memory_map_find(snapshot, filter, ret_map);
	if (r == 0)
		*ret_snapshot = cleanup_steal(snapshot);
	return r;
}

void session_spaces_print_title(const struct space *space)
{
	printf("pid %" PRIu32 " (", space->process->id.pid);
	text_put(stdout, space->process->comm);
	printf("), device %" PRIu32 "%s, %s", space->device->device,
	       space->device->remote ? "R" : "", types_name(space->type));
}

void session_spaces_print_others(const struct space *space)
{
	const struct memory_shared *shared = space->shared;
	char number[TEXT_NUMBER_SIZE], each[TEXT_NUMBER_SIZE];

	if (!shared)
		return;
	printf("  on this device also: ");
	for (size_t i = 0, shown = 0; i < shared->count; i++) {
		const struct memory_holder *holder = &shared->holders[i];

		if (holder->process == space->process)
			continue;
		if (shown++ == SESSION_OTHERS_SHOWN) {
			printf(", and others");
			break;
		}
		printf("%spid %" PRIu32 " (", shown > 1 ? ", " : "", holder->process->id.pid);
		text_put(stdout, holder->process->comm);
		printf(") %s", text_size(holder->bytes, number));
	}
	printf("\n  all processes together: %s free in each bank (%s over all banks)%s\n",
	       text_size(shared->all.free - bits_min(shared->all.free, shared->unplaced), each),
	       text_size((shared->all.free - bits_min(shared->all.free, shared->unplaced)) *
				 shared->all.banks,
			 number),
	       shared->unplaced ? ", at most: not all are tracked" : "");
}

void session_spaces_print_occupied(const struct space *space)
{
	char number[TEXT_NUMBER_SIZE];
	uint64_t occupied;

	if (space->free_blocks.block_count && free_blocks_occupied(&space->free_blocks, &occupied))
		printf("  over all banks its blocks take %s\n", text_size(occupied, number));
}
