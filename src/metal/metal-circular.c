/* SPDX-License-Identifier: Apache-2.0 */

/* One entry of circular buffers for each device. */

#include "metal/metal-circular.h"

#include <stdbool.h>
#include <stdlib.h>
#include <ttmem/ttmem.h>

#include "base/array.h"
#include "base/bits.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-target.h"

/* Different ranges that are kept of one device; further ones are left out. */
#define METAL_CIRCULAR_RANGES_MAX 4096

/* Programs that are kept of one device; with more, it is not known how far they reach. */
#define METAL_CIRCULAR_PROGRAMS_MAX 4096

struct metal_program {
	const void *program;
	uint64_t round;
	struct metal_extent extent;
};

struct metal_account {
	const void *device; /* that tt-metal named: a Device, or a mesh */
	uint32_t id;
	bool is_changed; /* the account has to be asked for */
	uint64_t address;
	uint64_t size; /* that is reported; 0 = nothing is */
	uint64_t span; /* that is reported: how far they reach from the address; 0 = not known */
	struct metal_circular *ranges;
	size_t range_count;
	size_t range_capacity;
	struct metal_program *programs;
	size_t program_count;
	size_t program_capacity;
	bool has_total;  /* tt-metal keeps its account, and there are no ranges */
	bool is_blurred; /* not all programs are known */
	struct metal_account *next;
};

static struct metal_account *metal_accounts;

static struct metal_account *metal_circular_account(const void *device, uint32_t id)
{
	struct metal_account *account = metal_accounts;

	while (account && (account->device != device || account->id != id))
		account = account->next;
	if (account)
		return account;
	account = calloc(1, sizeof(*account));
	if (account) {
		account->device = device;
		account->id = id;
		account->address = UINT64_MAX;
		account->next = metal_accounts;
		metal_accounts = account;
	}
	return account;
}

static uint64_t metal_circular_span(const struct metal_account *account)
{
	uint64_t end = account->address;

	for (size_t i = 0; i < account->range_count; i++)
		end = bits_max(end, account->ranges[i].address + account->ranges[i].size);
	for (size_t i = 0; account->has_total && i < account->program_count; i++)
		end = bits_max(end, account->programs[i].extent.end);
	return account->is_blurred ? 0 : end - account->address;
}

/*
 * The owner keeps apart what a mesh and one of its devices were told. Cores have different ones, so the
 * number of banks stays open.
 */
static void metal_circular_report(struct metal_account *account, uint64_t size)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.device = account->id,
		.type = TTMEM_CB,
		.address = account->address,
		.size = size,
		.size_per_bank = size ? metal_circular_span(account) : 0,
		.name = "circular buffers",
	};

	if (size == account->size && args.size_per_bank == account->span)
		return;
	if (account->size)
		ttmem_free(account->id, TTMEM_CB, account->address);
	account->size = size;
	account->span = args.size_per_bank;
	if (size)
		ttmem_alloc_ex(&args);
}

static int metal_circular_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t metal_circular_cores(const struct metal_account *account, uint64_t address)
{
	uint32_t most = 0;

	for (size_t i = 0; i < account->range_count; i++) {
		const struct metal_circular *range = &account->ranges[i];

		if (address >= range->address && address - range->address < range->size)
			most = (uint32_t)bits_max(most, range->cores);
	}
	return most;
}

/* Between two borders of ranges, the number of cores is the same. */
static uint64_t metal_circular_union(const struct metal_account *account)
{
	size_t count = account->range_count * 2;
	uint64_t *borders = calloc(count ? count : 1, sizeof(*borders));
	uint64_t sum = 0;

	for (size_t i = 0; borders && i < account->range_count; i++) {
		borders[2 * i] = account->ranges[i].address;
		borders[2 * i + 1] = account->ranges[i].address + account->ranges[i].size;
	}
	if (borders)
		qsort(borders, count, sizeof(*borders), metal_circular_compare);
	for (size_t i = 1; borders && i < count; i++) {
		if (borders[i] != borders[i - 1])
			sum += (borders[i] - borders[i - 1]) *
			       metal_circular_cores(account, borders[i - 1]);
	}
	free(borders);
	return sum;
}

/* Whether it says anything new. */
static bool metal_circular_add(struct metal_account *account, const struct metal_circular *cb)
{
	struct metal_circular *ranges;

	for (size_t i = 0; i < account->range_count; i++) {
		const struct metal_circular *range = &account->ranges[i];

		if (range->address <= cb->address && range->cores >= cb->cores &&
		    range->address + range->size >= cb->address + cb->size)
			return false;
	}
	if (account->range_count >= METAL_CIRCULAR_RANGES_MAX) {
		account->is_blurred = true;
		return false;
	}
	ranges = array_grow(account->ranges, &account->range_capacity, account->range_count + 1,
			    sizeof(*ranges));
	if (!ranges)
		return false;
	account->ranges = ranges;
	ranges[account->range_count++] = *cb;
	return true;
}

static struct metal_program *metal_circular_find(struct metal_account *account, const void *program)
{
	for (size_t i = 0; i < account->program_count; i++) {
		if (account->programs[i].program == program)
			return &account->programs[i];
	}
	return NULL;
}

static struct metal_program *metal_circular_new_program(struct metal_account *account)
{
	struct metal_program *programs = NULL;

	if (account->program_count < METAL_CIRCULAR_PROGRAMS_MAX)
		programs = array_grow(account->programs, &account->program_capacity,
				      account->program_count + 1, sizeof(*programs));
	if (!programs)
		return NULL;
	account->programs = programs;
	return &programs[account->program_count++];
}

/* False: it is not known whose it is, or there is no room. */
static bool metal_circular_reach(struct metal_account *account, const struct metal_circular *cb)
{
	const struct metal_program fresh = {cb->program, cb->round, {UINT64_MAX, 0}};
	struct metal_program *program =
		cb->program ? metal_circular_find(account, cb->program) : NULL;

	if (!program && cb->program) {
		program = metal_circular_new_program(account);
		if (program)
			*program = fresh;
	}
	if (!program)
		return false;
	if (program->round != cb->round)
		*program = fresh;
	program->extent.begin = bits_min(program->extent.begin, cb->address);
	program->extent.end = bits_max(program->extent.end, cb->address + cb->size);
	return true;
}

/* The entry lies where the lowest of them does. */
static void metal_circular_lower(struct metal_account *account, uint64_t address)
{
	uint64_t size = account->size;

	if (address >= account->address)
		return;
	metal_circular_report(account, 0);
	account->address = address;
	metal_circular_report(account, size);
}

/* A mesh has none. */
static bool metal_circular_has_total(const struct metal_names *names, const void *device)
{
	return names->cb_total && *(const void *const *)device == names->device_table;
}

void metal_circular_told(const struct metal_names *names, const void *device,
			 const struct metal_circular *cb)
{
	struct metal_target *target = metal_target_get(names, device);

	if (!target)
		return;
	metal_lock();
	for (uint32_t i = 0; i < target->count; i++) {
		struct metal_account *account = metal_circular_account(device, target->ids[i]);

		if (!account)
			continue;
		metal_circular_lower(account, cb->address);
		account->has_total = metal_circular_has_total(names, device);
		if (!metal_circular_reach(account, cb) && account->has_total)
			account->is_blurred = true;
		if (account->has_total)
			account->is_changed = true;
		else if (metal_circular_add(account, cb))
			metal_circular_report(account, metal_circular_union(account));
	}
	metal_target_put(target);
	metal_unlock();
}

void metal_circular_ended(const struct metal_names *names, const void *device)
{
	metal_lock();
	for (struct metal_account *account = metal_accounts; account; account = account->next) {
		if (account->device != device)
			continue;
		if (metal_circular_has_total(names, device)) {
			account->is_changed = true;
		} else {
			account->range_count = 0;
			metal_circular_report(account, 0);
		}
	}
	metal_unlock();
}

void metal_circular_program_ended(const void *program)
{
	metal_lock();
	for (struct metal_account *account = metal_accounts; account; account = account->next) {
		struct metal_program *found = metal_circular_find(account, program);

		if (!found)
			continue;
		*found = account->programs[--account->program_count];
		account->is_changed = account->has_total;
	}
	metal_unlock();
}

struct metal_extent metal_circular_extent(const void *program, uint32_t id)
{
	struct metal_extent extent = {0, 0};

	for (struct metal_account *account = metal_accounts; account; account = account->next) {
		const struct metal_program *found =
			account->id == id ? metal_circular_find(account, program) : NULL;

		if (found && found->extent.end > extent.end)
			extent = found->extent;
	}
	return extent;
}

static struct metal_account *metal_circular_changed(void)
{
	struct metal_account *account = metal_accounts;

	while (account && !account->is_changed)
		account = account->next;
	return account;
}

void metal_circular_refresh(const struct metal_names *names)
{
	struct metal_account *account;

	metal_lock();
	while ((account = metal_circular_changed())) {
		const void *device = account->device;
		uint32_t id = account->id;
		uint64_t total;

		account->is_changed = false;
		metal_unlock();
		total = names->cb_total(device);
		metal_lock();
		account =
			metal_circular_account(device, id); /* it may have been closed meanwhile */
		if (!account || account->address == UINT64_MAX)
			continue;
		metal_circular_report(account, total);
		if (total == 0) /* whatever was not known has ended */
			account->is_blurred = false;
	}
	metal_unlock();
}

void metal_circular_close(const void *device)
{
	struct metal_account **link = &metal_accounts;

	while (*link) {
		struct metal_account *account = *link;

		if (device && account->device != device) {
			link = &account->next;
			continue;
		}
		metal_circular_report(account, 0);
		*link = account->next;
		free(account->ranges);
		free(account->programs);
		free(account);
	}
}

void metal_circular_forget(void)
{
	metal_accounts = NULL;
}
