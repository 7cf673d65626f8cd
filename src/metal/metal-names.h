/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tt-metal's exported functions, found by name in the library that runs. Names of C++ functions contain
 * the types of their arguments, so a function that was found takes what we pass. It does not contain the
 * type of the result: those here are as in all releases from 0.62 on, and what can be had in a second way
 * is compared (metal-learn.c).
 *
 * A pointer to an object of tt-metal is a const void * here: nothing is known about these classes.
 */

#include <stdbool.h>
#include <stdint.h>

#define METAL_NAME_ALLOCATE "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE"
#define METAL_NAME_DEALLOCATE "_ZN2tt8tt_metal12GraphTracker16track_deallocateEPNS0_6BufferE"
/* CoreRangeSet was in no namespace until 0.64.4. */
#define METAL_NAME_CB_OLD \
	"_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERK12CoreRangeSetmmbPKNS0_7IDeviceE"
#define METAL_NAME_CB \
	"_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmbPKNS0_7IDeviceE"
#define METAL_NAME_CB_END "_ZN2tt8tt_metal12GraphTracker19track_deallocate_cbEPKNS0_7IDeviceE"
/* Allocator became the public face of AllocatorImpl in 0.66. */
#define METAL_NAME_TAKE_OLD "_ZN2tt8tt_metal9Allocator15allocate_bufferEPNS0_6BufferE"
#define METAL_NAME_TAKE "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE"
#define METAL_NAME_CLEAR_OLD "_ZN2tt8tt_metal9Allocator5clearEv"
#define METAL_NAME_CLEAR "_ZN2tt8tt_metal13AllocatorImpl5clearEv"
#define METAL_NAME_DEVICE_CLOSE "_ZN2tt8tt_metal6Device5closeEv"
#define METAL_NAME_MESH_CLOSE "_ZN2tt8tt_metal11distributed10MeshDevice5closeEv"
#define METAL_NAME_PROGRAM_CB \
	"_ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE"
#define METAL_NAME_PROGRAM_CB_END \
	"_ZN2tt8tt_metal6detail11ProgramImpl27deallocate_circular_buffersEv"
/*
 * A queue was named by its number only until 0.77. The numbers of traces are of a class around a uint32_t, whose
 * namespace has another name since 0.68; it is returned as the number would be.
 */
#define METAL_NAME_MESH "_ZN2tt8tt_metal11distributed10MeshDevice"
#define METAL_NAME_TRACE_ID "RKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEE"
#define METAL_NAME_TRACE_ID_OLD "RKNS_3stl10StrongTypeIjNS1_14MeshTraceIdTagEEE"
#define METAL_NAME_QUEUE "RNS1_16MeshCommandQueueE"
#define METAL_NAME_TRACE_BEGIN METAL_NAME_MESH "16begin_mesh_traceEh"
#define METAL_NAME_TRACE_BEGIN_ID METAL_NAME_TRACE_BEGIN METAL_NAME_TRACE_ID
#define METAL_NAME_TRACE_BEGIN_ID_OLD METAL_NAME_TRACE_BEGIN METAL_NAME_TRACE_ID_OLD
#define METAL_NAME_TRACE_BEGIN_ON METAL_NAME_MESH "16begin_mesh_traceE" METAL_NAME_QUEUE
#define METAL_NAME_TRACE_BEGIN_ON_ID METAL_NAME_TRACE_BEGIN_ON METAL_NAME_TRACE_ID
#define METAL_NAME_TRACE_END METAL_NAME_MESH "14end_mesh_traceEh" METAL_NAME_TRACE_ID
#define METAL_NAME_TRACE_END_OLD METAL_NAME_MESH "14end_mesh_traceEh" METAL_NAME_TRACE_ID_OLD
#define METAL_NAME_TRACE_END_ON \
	METAL_NAME_MESH "14end_mesh_traceE" METAL_NAME_QUEUE METAL_NAME_TRACE_ID
#define METAL_NAME_TRACE_RELEASE METAL_NAME_MESH "18release_mesh_traceE" METAL_NAME_TRACE_ID
#define METAL_NAME_TRACE_RELEASE_OLD METAL_NAME_MESH "18release_mesh_traceE" METAL_NAME_TRACE_ID_OLD

/* Throws if circular buffers grow into buffers of L1. */
#define METAL_NAME_PROGRAM_CHECK \
	"_ZN2tt8tt_metal6detail11ProgramImpl31validate_circular_buffer_regionEPKNS0_7IDeviceE"

/* Of UMD, the library below tt-metal. */
#define METAL_NAME_CHIP_IDS "_ZNK2tt3umd17ClusterDescriptor19get_chip_unique_idsEv"
#define METAL_NAME_CHIP_BOARD "_ZNK2tt3umd17ClusterDescriptor21get_board_id_for_chipEi"

/* std::vector<T> as it is returned. */
struct metal_vector {
	void *begin;
	void *end;
	void *capacity;
};

/* std::unordered_map<CoreCoord, uint64_t> as libstdc++ has it. */
struct metal_core_node {
	const struct metal_core_node *next;
	uint64_t x, y;
	uint64_t address;
};
struct metal_core_map {
	const void *buckets;
	uint64_t bucket_count;
	const struct metal_core_node *first;
	uint64_t count;
};

/* std::optional<uint32_t>. */
struct metal_optional {
	uint32_t value;
	bool has_value;
};

/* CoreCoord. */
struct metal_grid {
	uint64_t x;
	uint64_t y;
};

/* Allocator's Statistics: of one bank. */
struct metal_statistics {
	uint64_t total;
	uint64_t allocated;
	uint64_t free;
	uint64_t largest_free;
};

struct metal_names {
	/* What the fronts (metal-fronts.c) stand in front of. */
	void (*track_allocate)(void *tracker, const void *buffer);
	void (*track_deallocate)(void *tracker, void *buffer);
	void (*track_cb)(void *tracker, const void *cores, uint64_t address, uint64_t size,
			 bool is_global, const void *device);
	void (*track_cb_end)(void *tracker, const void *device);
	uint64_t (*take)(void *allocator, void *buffer); /* throws if it refuses */
	uint64_t (*take_old)(void *allocator, void *buffer);
	void (*clear)(void *allocator);
	bool (*device_close)(void *device);
	bool (*mesh_close)(void *mesh);
	void (*program_cb)(void *program, const void *device);
	void (*program_cb_end)(void *program);
	void (*program_check)(void *program, const void *device);
	uint32_t (*trace_begin)(void *mesh, uint8_t queue);
	void (*trace_begin_id)(void *mesh, uint8_t queue, const uint32_t *id);
	uint32_t (*trace_begin_on)(void *mesh, void *queue);
	void (*trace_begin_on_id)(void *mesh, void *queue, const uint32_t *id);
	void (*trace_end)(void *mesh, uint8_t queue, const uint32_t *id);
	void (*trace_end_on)(void *mesh, void *queue, const uint32_t *id);
	void (*trace_release)(void *mesh, const uint32_t *id);

	/* Of a Buffer. */
	uint32_t (*address)(const void *buffer);
	uint64_t (*page_size)(const void *buffer);
	uint32_t (*num_pages)(const void *buffer);
	bool (*is_l1)(const void *buffer);
	bool (*is_dram)(const void *buffer);
	bool (*is_trace)(const void *buffer);
	uint64_t (*size_per_bank)(const void *buffer);
	struct metal_optional (*buffer_cores)(const void *buffer);
	const void *(*buffer_allocator)(const void *buffer); /* since 0.66; inline before */
	bool (*is_per_core)(const void *buffer);             /* since 0.70, as the next one */
	const struct metal_core_map *(*per_core_addresses)(const void *buffer);

	/* Of a Device and a MeshDevice; what allocator() points to is a pointer. */
	const void *const *(*device_allocator)(const void *device);
	const void *const *(*mesh_allocator)(const void *mesh);
	int32_t (*device_arch)(const void *device);
	uint32_t (*l1_per_core)(const void *device);
	struct metal_grid (*device_grid)(const void *device); /* of cores that compute */
	bool (*device_is_local)(const void *device);          /* not behind another chip */
	uint64_t (*cb_total)(const void *device);             /* since 0.70 */
	struct metal_vector (*mesh_devices)(const void *mesh);
	struct metal_vector (*mesh_ids)(const void *mesh);

	/* Of an Allocator; types are passed by reference. */
	uint32_t (*bank_count)(const void *allocator, const uint32_t *type);
	uint64_t (*bank_size)(const void *allocator, const uint32_t *type);
	uint64_t (*bank_base)(const void *allocator, const uint8_t *memory);
	uint32_t (*alignment)(const void *allocator, uint32_t type);
	struct metal_statistics (*statistics)(const void *allocator, const uint32_t *type);
	uint64_t (*l1_end)(const void *allocator); /* of its banks, with L1_SMALL; since 0.64 */

	uint32_t (*core_count)(const void *cores);
	void (*operator_delete)(void *memory);

	/* What the objects of these classes begin with. */
	const void *device_table;
	const void *mesh_table;
	const void *device_dram_channels; /* Device::num_dram_channels(): only compared */

	const char *library; /* that they were found in */
	bool has_ids;        /* metal_names_id() may be called */
};

/*
 * Looked up at the first call. @caller: an address of code, in tt-metal or in what was linked with it.
 * Never NULL; a function that was not found is NULL, and if it is needed, all is refused.
 */
const struct metal_names *metal_names(const void *caller);

/*
 * A function of UMD, which is also used without tt-metal: nothing is refused if it is not found, and NULL
 * is returned. @caller as above.
 */
void *metal_names_below(const void *caller, const char *name);

/* IDevice::id(), of an object whose class is Device. */
uint32_t metal_names_id(const void *device);

/* Refuses a tt-metal that is loaded and has not the names that we stand in front of. */
void metal_names_inspect(void);

/* Whether metal_names() was ever called: then the names are there. */
bool metal_names_were_used(void);
