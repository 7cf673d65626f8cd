/* SPDX-License-Identifier: Apache-2.0 */

/* Piles of buffers. */

#include "sim/pile.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/device.h"

/**
 * sim_pile_alloc() - allocate a buffer and put it on the pile
 * @pile: the pile
 * @device: where to allocate; must live as long as the buffer
 * @request: what
 * @ret_address: where to put the buffer's address; may be NULL
 *
 * Return: 0, or as sim_device_alloc().
 */
int sim_pile_alloc(struct sim_pile *pile, struct sim_device *device,
		   const struct sim_request *request, uint64_t *ret_address)
{
	uint64_t address;
	int r;

	if (pile->n == pile->room) {
		size_t room = pile->room ? 2 * pile->room : 64;
		struct sim_pile_entry *entries;

		entries = reallocarray(pile->entries, room, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		pile->entries = entries;
		pile->room = room;
	}

	r = sim_device_alloc(device, request, &address);
	if (r < 0)
		return r;
	pile->entries[pile->n++] = (struct sim_pile_entry){
		.device = device,
		.address = address,
		.type = request->type,
	};
	if (ret_address)
		*ret_address = address;
	return 0;
}

/**
 * sim_pile_drop() - free one buffer anywhere in the pile
 * @pile: the pile
 * @i: its number, counted from the bottom; freeing it again does nothing
 */
void sim_pile_drop(struct sim_pile *pile, size_t i)
{
	struct sim_pile_entry *entry = &pile->entries[i];

	if (!entry->device)
		return;
	/* It was allocated and is freed once, so this cannot fail. */
	(void)sim_device_free(entry->device, entry->type, entry->address);
	entry->device = NULL;
}

/**
 * sim_pile_release() - free the buffers added since a mark
 * @pile: the pile
 * @mark: pile->n at that time
 */
void sim_pile_release(struct sim_pile *pile, size_t mark)
{
	while (pile->n > mark) {
		sim_pile_drop(pile, pile->n - 1);
		pile->n--;
	}
}

/**
 * sim_pile_deinit() - free everything on the pile
 * @pile: may be empty; is empty afterwards
 */
void sim_pile_deinit(struct sim_pile *pile)
{
	sim_pile_release(pile, 0);
	free(pile->entries);
	*pile = (struct sim_pile)SIM_PILE_NULL;
}
