/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks names up. Preloaded, tt-metal's are the next ones after ours. If tt-metal was loaded with
 * RTLD_LOCAL, as Python loads its modules, or we were loaded by dlopen(), they are only visible from the
 * object that calls us, or from tt-metal's own.
 */

#include "metal/metal-names.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "metal/metal-refuse.h"

#define METAL_NAMES_PATH 4096
#define METAL_NAMES_LIBRARIES 8 /* of tt-metal in one process; more are not inspected */

/* Slots of a virtual table: two for the destructor, then in the order of the class. */
#define METAL_SLOT_ARCH 2
#define METAL_SLOT_ID 3
#define METAL_SLOT_BUILD_ID 4
#define METAL_SLOT_DRAM_CHANNELS 7

#define METAL_TABLE_HEAD 2 /* words before the first slot */

#define METAL_PER_CORE "_ZN2tt8tt_metal12experimental19per_core_allocation"

struct metal_name {
	size_t field;
	const char *name;
	const char *older;
	bool is_needed;
};

#define METAL_NEEDED(field, name, older)                               \
	{                                                              \
		offsetof(struct metal_names, field), name, older, true \
	}
#define METAL_OPTIONAL(field, name, older)                              \
	{                                                               \
		offsetof(struct metal_names, field), name, older, false \
	}

static const struct metal_name metal_name_list[] = {
	METAL_NEEDED(track_allocate, METAL_NAME_ALLOCATE, NULL),
	METAL_NEEDED(track_deallocate, METAL_NAME_DEALLOCATE, NULL),
	METAL_OPTIONAL(track_cb, METAL_NAME_CB, METAL_NAME_CB_OLD),
	METAL_OPTIONAL(track_cb_end, METAL_NAME_CB_END, NULL),
	METAL_OPTIONAL(take, METAL_NAME_TAKE, NULL),
	METAL_OPTIONAL(take_old, METAL_NAME_TAKE_OLD, NULL),
	METAL_OPTIONAL(clear, METAL_NAME_CLEAR, METAL_NAME_CLEAR_OLD),
	METAL_OPTIONAL(device_close, METAL_NAME_DEVICE_CLOSE, NULL),
	METAL_OPTIONAL(mesh_close, METAL_NAME_MESH_CLOSE, NULL),
	METAL_OPTIONAL(program_cb, METAL_NAME_PROGRAM_CB, NULL),
	METAL_OPTIONAL(program_cb_end, METAL_NAME_PROGRAM_CB_END, NULL),
	METAL_OPTIONAL(program_check, METAL_NAME_PROGRAM_CHECK, NULL),
	METAL_OPTIONAL(trace_begin, METAL_NAME_TRACE_BEGIN, NULL),
	METAL_OPTIONAL(trace_begin_id, METAL_NAME_TRACE_BEGIN_ID, METAL_NAME_TRACE_BEGIN_ID_OLD),
	METAL_OPTIONAL(trace_begin_on, METAL_NAME_TRACE_BEGIN_ON, NULL),
	METAL_OPTIONAL(trace_begin_on_id, METAL_NAME_TRACE_BEGIN_ON_ID, NULL),
	METAL_OPTIONAL(trace_end, METAL_NAME_TRACE_END, METAL_NAME_TRACE_END_OLD),
	METAL_OPTIONAL(trace_end_on, METAL_NAME_TRACE_END_ON, NULL),
	METAL_OPTIONAL(trace_release, METAL_NAME_TRACE_RELEASE, METAL_NAME_TRACE_RELEASE_OLD),
	METAL_NEEDED(address, "_ZNK2tt8tt_metal6Buffer7addressEv", NULL),
	METAL_NEEDED(page_size, "_ZNK2tt8tt_metal6Buffer9page_sizeEv", NULL),
	METAL_NEEDED(num_pages, "_ZNK2tt8tt_metal6Buffer9num_pagesEv", NULL),
	METAL_NEEDED(is_l1, "_ZNK2tt8tt_metal6Buffer5is_l1Ev", NULL),
	METAL_NEEDED(is_dram, "_ZNK2tt8tt_metal6Buffer7is_dramEv", NULL),
	METAL_NEEDED(is_trace, "_ZNK2tt8tt_metal6Buffer8is_traceEv", NULL),
	METAL_OPTIONAL(size_per_bank, "_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv", NULL),
	METAL_OPTIONAL(buffer_cores, "_ZNK2tt8tt_metal6Buffer9num_coresEv", NULL),
	METAL_OPTIONAL(is_per_core, METAL_PER_CORE "22is_per_core_allocationERKNS0_6BufferE", NULL),
	METAL_OPTIONAL(per_core_addresses, METAL_PER_CORE "22get_per_core_addressesERKNS0_6BufferE",
		       NULL),
	METAL_OPTIONAL(buffer_allocator, "_ZNK2tt8tt_metal6Buffer9allocatorEv", NULL),
	METAL_NEEDED(device_allocator, "_ZNK2tt8tt_metal6Device9allocatorEv", NULL),
	METAL_NEEDED(mesh_allocator, "_ZNK2tt8tt_metal11distributed10MeshDevice9allocatorEv", NULL),
	METAL_OPTIONAL(device_grid, "_ZNK2tt8tt_metal6Device30compute_with_storage_grid_sizeEv",
		       NULL),
	METAL_OPTIONAL(device_is_local, "_ZNK2tt8tt_metal6Device15is_mmio_capableEv", NULL),
	METAL_OPTIONAL(l1_per_core, "_ZNK2tt8tt_metal6Device16l1_size_per_coreEv", NULL),
	METAL_OPTIONAL(cb_total, "_ZNK2tt8tt_metal6Device22get_total_cb_allocatedEv", NULL),
	METAL_NEEDED(mesh_devices, "_ZNK2tt8tt_metal11distributed10MeshDevice11get_devicesEv",
		     NULL),
	METAL_OPTIONAL(mesh_ids, "_ZNK2tt8tt_metal11distributed10MeshDevice14get_device_idsEv",
		       NULL),
	METAL_OPTIONAL(bank_count, "_ZNK2tt8tt_metal9Allocator13get_num_banksERKNS0_10BufferTypeE",
		       NULL),
	METAL_OPTIONAL(bank_size, "_ZNK2tt8tt_metal9Allocator13get_bank_sizeERKNS0_10BufferTypeE",
		       NULL),
	METAL_OPTIONAL(bank_base,
		       "_ZNK2tt8tt_metal9Allocator23get_base_allocator_addrERKNS0_10HalMemTypeE",
		       NULL),
	METAL_OPTIONAL(alignment, "_ZNK2tt8tt_metal9Allocator13get_alignmentENS0_10BufferTypeE",
		       NULL),
	METAL_OPTIONAL(statistics, "_ZNK2tt8tt_metal9Allocator14get_statisticsERKNS0_10BufferTypeE",
		       NULL),
	METAL_OPTIONAL(l1_end, "_ZNK2tt8tt_metal9Allocator18get_worker_l1_sizeEv", NULL),
	METAL_OPTIONAL(core_count, "_ZNK2tt8tt_metal12CoreRangeSet9num_coresEv",
		       "_ZNK12CoreRangeSet9num_coresEv"),
	METAL_NEEDED(operator_delete, "_ZdlPv", NULL),
	METAL_NEEDED(device_table, "_ZTVN2tt8tt_metal6DeviceE", NULL),
	METAL_NEEDED(mesh_table, "_ZTVN2tt8tt_metal11distributed10MeshDeviceE", NULL),
	METAL_OPTIONAL(device_arch, "_ZNK2tt8tt_metal6Device4archEv", NULL),
	METAL_OPTIONAL(device_dram_channels, "_ZNK2tt8tt_metal6Device17num_dram_channelsEv", NULL),
};

static struct metal_names metal_names_found;
static pthread_once_t metal_names_once = PTHREAD_ONCE_INIT;
static const void *metal_names_caller; /* of the first call, for the once routine */
static bool metal_names_used;

struct metal_libraries {
	char paths[METAL_NAMES_LIBRARIES][METAL_NAMES_PATH];
	size_t count;
};

static int metal_names_collect(struct dl_phdr_info *info, size_t size, void *context)
{
	struct metal_libraries *list = context;
	const char *name = strrchr(info->dlpi_name, '/');
	size_t length = strlen(info->dlpi_name);

	(void)size; /* all fields used here have always been there */
	name = name ? name + 1 : info->dlpi_name;
	if (strncmp(name, "libtt_metal.so", 14) == 0 && list->count < METAL_NAMES_LIBRARIES &&
	    length < METAL_NAMES_PATH)
		memcpy(list->paths[list->count++], info->dlpi_name, length + 1);
	return 0;
}

/* @name in a library that is loaded already, or in what it was linked with. */
static void *metal_names_in(const char *path, const char *name)
{
	void *handle = path && *path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;

	/* Never closed again: what is found must stay. */
	return handle ? dlsym(handle, name) : NULL;
}

/* The path of the object that @code lies in; NULL = none. */
static const char *metal_names_object(const void *code)
{
	Dl_info info;

	return dladdr(code, &info) ? info.dli_fname : NULL;
}

/* Static, because it is large and stacks may be small. */
static struct metal_libraries metal_names_libraries;

/* The library that has tt-metal's own track_allocate(), or at least its name. */
static const char *metal_names_find_library(const void *caller)
{
	struct metal_libraries *list = &metal_names_libraries;
	void *found = dlsym(RTLD_NEXT, METAL_NAME_ALLOCATE);

	if (!found)
		found = metal_names_in(metal_names_object(caller), METAL_NAME_ALLOCATE);
	list->count = 0;
	/* Collected first: dlopen() must not wait for a lock that the walk holds. Always 0. */
	(void)dl_iterate_phdr(metal_names_collect, list);
	for (size_t i = 0; i < list->count && !found; i++)
		found = metal_names_in(list->paths[i], METAL_NAME_ALLOCATE);
	if (found)
		return metal_names_object(found);
	return list->count ? list->paths[0] : NULL;
}

static void *metal_names_look_up(const char *library, const char *name)
{
	void *found = name ? metal_names_in(library, name) : NULL;

	return found || !name ? found : dlsym(RTLD_NEXT, name);
}

/*
 * id() has no symbol. It is taken from the virtual table if its neighbours are where all releases have
 * them: arch() before it and num_dram_channels() four further on.
 */
static bool metal_names_have_ids(const struct metal_names *names)
{
	const void *const *slots = names->device_table;
	const void *arch;

	memcpy(&arch, &names->device_arch, sizeof(arch));
	return slots && arch && names->device_dram_channels && slots[METAL_SLOT_ARCH] == arch &&
	       slots[METAL_SLOT_DRAM_CHANNELS] == names->device_dram_channels;
}

static void metal_names_find(void)
{
	struct metal_names *names = &metal_names_found;
	const char *library = metal_names_find_library(metal_names_caller);

	/* Static, or of a library that is never unloaded, because it is open. */
	names->library = library ? library : "the application";
	for (size_t i = 0; i < ARRAY_SIZE(metal_name_list); i++) {
		const struct metal_name *name = &metal_name_list[i];
		void *found = metal_names_look_up(library, name->name);

		if (!found)
			found = metal_names_look_up(library, name->older);
		if (!found && name->is_needed)
			metal_refuse("%s has no %s; this version cannot be tracked by preloading",
				     names->library, name->name);
		memcpy((char *)names + name->field, &found, sizeof(found));
	}
	if (names->device_table)
		names->device_table = (const void *const *)names->device_table + METAL_TABLE_HEAD;
	if (names->mesh_table)
		names->mesh_table = (const void *const *)names->mesh_table + METAL_TABLE_HEAD;
	names->has_ids = metal_names_have_ids(names);
}

const struct metal_names *metal_names(const void *caller)
{
	if (!__atomic_load_n(&metal_names_used, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&metal_names_caller, caller, __ATOMIC_RELAXED);
		(void)pthread_once(&metal_names_once, metal_names_find); /* cannot fail */
		__atomic_store_n(&metal_names_used, true, __ATOMIC_RELEASE);
	}
	return &metal_names_found;
}

void *metal_names_below(const void *caller, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	return found ? found : metal_names_in(metal_names_object(caller), name);
}

bool metal_names_were_used(void)
{
	return __atomic_load_n(&metal_names_used, __ATOMIC_ACQUIRE);
}

static int32_t metal_names_call(const void *device, size_t slot)
{
	const void *const *slots = *(const void *const *const *)device;
	int32_t (*function)(const void *);

	memcpy(&function, &slots[slot], sizeof(function));
	return function(device);
}

/* The next slot has build_id(), which is the same number for a single device. */
uint32_t metal_names_id(const void *device)
{
	int32_t id = metal_names_call(device, METAL_SLOT_ID);

	if (id != metal_names_call(device, METAL_SLOT_BUILD_ID))
		metal_refuse("%s: id() and build_id() of a device differ",
			     metal_names_found.library);
	return (uint32_t)id;
}

void metal_names_inspect(void)
{
	static const char *const fronts[] = {METAL_NAME_ALLOCATE, METAL_NAME_DEALLOCATE};
	struct metal_libraries *list = &metal_names_libraries;

	list->count = 0;
	(void)dl_iterate_phdr(metal_names_collect, list); /* always 0 */
	for (size_t i = 0; i < list->count; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(fronts); k++) {
			if (!metal_names_in(list->paths[i], fronts[k]))
				metal_refuse("%s has no %s; this version cannot be tracked by "
					     "preloading",
					     list->paths[i], fronts[k]);
		}
	}
}
