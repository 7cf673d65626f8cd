/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The simulated device. Reports are sent where tt-metal's allocator would send them: after a place
 * was found, and before a place is freed. A free is reported even if the allocator does not know
 * the buffer, because that is how double frees become visible.
 */

#include "sim/device.h"

#include <errno.h>
#include <stdbool.h>

#include "sim/sim-card.h"

/* The code that passes a request on to ttmem: a simulated buffer was asked for by the workload. */
static const char allocators[] =
	"sim_*,report_alloc,fail_alloc,alloc_everywhere,alloc_tensor,alloc_on_mesh,free_last";

static int init_bank(struct sim_bank *bank, const struct sim_window *window,
		     const struct sim_share *share)
{
	uint64_t size = window->size, base = window->base;

	if (share && share->count) {
		size = size / share->count / window->alignment * window->alignment;
		base += share->index * size;
	}
	return sim_bank_init(bank, base, size, window->banks, window->alignment);
}

/**
 * sim_device_init() - an empty device, declared to ttmem
 * @device: what to initialise
 * @card: the card it is on
 * @board: distinguishes several boards of one kind
 * @chip: which chip of the board it is
 * @number: the number under which this process knows it
 * @share: the part of its memory that this process uses; NULL = all
 *
 * Return: 0, or -EINVAL if there is no such chip, number or share.
 */
int sim_device_init(struct sim_device *device, const struct sim_card *card, uint32_t board,
		    uint32_t chip, uint32_t number, const struct sim_share *share)
{
	struct sim_device new = {.number = number, .card = card};
	int r = 0;

	if (!card || chip >= card->chips || number >= TTMEM_DEVICE_COUNT)
		return -EINVAL;
	if (share && share->count && share->index >= share->count)
		return -EINVAL;

	for (uint32_t type = 0; r == 0 && type < TTMEM_TYPE_COUNT; type++) {
		struct sim_window window = sim_card_window(card->chip, type);

		if (type == TTMEM_DRAM)
			window.size -= card->chip->trace_size;
		if (type == TTMEM_L1)
			window.size -= card->chip->l1_small_size;
		if (window.size)
			r = init_bank(&new.banks[type], &window, share);
	}
	if (r < 0)
		return r; /* an empty bank owns nothing yet */

	ttmem_skip_frames(allocators);
	sim_card_declare(card, board, chip, number);
	*device = new;
	return 0;
}

/**
 * sim_device_deinit() - close the device
 * @device: may be all zero
 *
 * What is still allocated stays so in ttmem's book: that is a leak, as on a real device.
 */
void sim_device_deinit(struct sim_device *device)
{
	if (device->card)
		ttmem_device_close(device->number);
	for (uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++)
		sim_bank_deinit(&device->banks[type]);
	*device = (struct sim_device){0};
}

/**
 * sim_device_bank() - where a type's memory comes from
 * @device: the device
 * @type: TTMEM_DRAM to TTMEM_KERNEL
 *
 * Return: the banks, or NULL for a type that does not exist.
 */
struct sim_bank *sim_device_bank(struct sim_device *device, uint32_t type)
{
	if (type >= TTMEM_TYPE_COUNT)
		return NULL;
	if (type == TTMEM_KERNEL)
		type = TTMEM_DRAM;
	return &device->banks[type == TTMEM_CB ? TTMEM_L1 : type];
}

static bool is_top_down(uint32_t type)
{
	return type == TTMEM_L1 || type == TTMEM_L1_SMALL;
}

/* Whether to inject this fault into one more call. */
static bool take_fault(uint32_t *fault)
{
	if (!*fault)
		return false;
	(*fault)--;
	return true;
}

static int fail_alloc(const struct sim_device *device, const struct sim_bank *bank,
		      const struct sim_request *request)
{
	ttmem_alloc_failed(device->number, request->type, request->size,
			   sim_bank_largest_total(bank));
	return -ENOMEM;
}

static void report_alloc(struct sim_device *device, const struct sim_bank *bank,
			 const struct sim_request *request, uint32_t flags, uint64_t address)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.device = device->number,
		.type = request->type,
		.flags = flags,
		.address = address,
		.size = request->size,
		.name = request->name,
		.owner = request->owner,
		.banks = bank->banks,
		.kernel_sort = request->kernel_sort,
		.name_id = request->name_id,
		.shape_flags =
			TTMEM_SHAPE_INTERLEAVED |
			(is_top_down(request->type) ? TTMEM_SHAPE_TOP_DOWN : TTMEM_SHAPE_BOTTOM_UP),
		.page_size = request->page_size ? request->page_size : request->size,
	};

	/* Unknown for a buffer that could never fit: then it stays 0. */
	(void)sim_bank_need(bank, request->size, request->page_size, &args.size_per_bank);
	ttmem_alloc_ex(&args);

	if (take_fault(&device->faults.repeat_alloc))
		ttmem_alloc_ex(&args);
	if (take_fault(&device->faults.change_size)) {
		args.size += request->page_size ? request->page_size : request->size;
		ttmem_alloc_ex(&args);
	}
}

/**
 * sim_device_alloc() - allocate a buffer and report it
 * @device: the device
 * @request: what to allocate. With TTMEM_FLAG_ALIAS or TTMEM_FLAG_PREALLOCATED no memory is taken:
 *   the buffer is at request->address.
 * @ret_address: where to put its address in each bank
 *
 * Return: 0; -ENOMEM if there is no room, which is reported too; -EINVAL for an invalid request,
 * which is not reported.
 */
int sim_device_alloc(struct sim_device *device, const struct sim_request *request,
		     uint64_t *ret_address)
{
	struct sim_bank *bank = sim_device_bank(device, request->type);
	struct sim_bank_request place = {
		.size = request->size,
		.page_size = request->page_size,
		.end = is_top_down(request->type) ? SIM_BANK_TOP : SIM_BANK_BOTTOM,
		.kind = request->type,
		.owner = request->owner,
	};
	uint64_t address;
	int r;

	if (!bank || !request->size)
		return -EINVAL;

	if (request->flags & (TTMEM_FLAG_ALIAS | TTMEM_FLAG_PREALLOCATED)) {
		report_alloc(device, bank, request, request->flags, request->address);
		*ret_address = request->address;
		return 0;
	}

	if (take_fault(&device->faults.fail_alloc))
		return fail_alloc(device, bank, request);
	r = sim_bank_alloc(bank, &place, &address);
	if (r == -ENOMEM)
		return fail_alloc(device, bank, request);
	if (r < 0)
		return r;

	report_alloc(device, bank, request, request->flags | TTMEM_FLAG_OWNS_DATA, address);
	*ret_address = address;
	return 0;
}

/**
 * sim_device_free() - free a buffer and report it
 * @device: the device
 * @type: the buffer's type
 * @address: its address
 *
 * Return: 0; -ENOENT if nothing was allocated there, which is reported to ttmem all the same (and
 * right for aliases); -EINVAL for a type that does not exist.
 */
int sim_device_free(struct sim_device *device, uint32_t type, uint64_t address)
{
	struct sim_bank *bank = sim_device_bank(device, type);
	uint32_t said = type;

	if (!bank)
		return -EINVAL;

	if (take_fault(&device->faults.free_untyped))
		said = TTMEM_ANY;
	if (!take_fault(&device->faults.forget_free))
		ttmem_free(device->number, said, address);
	if (take_fault(&device->faults.repeat_free))
		ttmem_free(device->number, said, address);
	return sim_bank_free(bank, type, address);
}

/**
 * sim_device_free_owner() - free all buffers of one owner
 * @device: the device
 * @type: only those of this type
 * @owner: the owner they were allocated for, not 0
 */
void sim_device_free_owner(struct sim_device *device, uint32_t type, uint64_t owner)
{
	struct sim_bank *bank = sim_device_bank(device, type);

	if (!bank || !owner)
		return;
	ttmem_free_all(device->number, type, owner);
	sim_bank_free_owner(bank, type, owner);
}

/**
 * sim_device_capture() - pretend to allocate and free, as graph capture does
 * @device: the device
 * @type: the buffer's type
 * @size: its bytes
 * @name: its name
 *
 * Such a buffer has no memory and its address is 0; ttmem only counts it.
 */
void sim_device_capture(struct sim_device *device, uint32_t type, uint64_t size, const char *name)
{
	struct ttmem_alloc_args alloc = {
		.struct_size = sizeof(alloc),
		.device = device->number,
		.type = type,
		.flags = TTMEM_FLAG_HOOKED,
		.size = size,
		.name = name,
	};
	struct ttmem_free_args hooked_free = {
		.struct_size = sizeof(hooked_free),
		.device = device->number,
		.type = type,
		.flags = TTMEM_FLAG_HOOKED,
	};

	ttmem_alloc_ex(&alloc);
	ttmem_free_ex(&hooked_free);
}
