/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The old socket protocol, byte by byte. Its struct grew several times without a version, a magic
 * number or a length, so the format depends on when the client was compiled: a dialect is named
 * after the size of its messages. This file describes the messages of each dialect;
 * legacy-stream.h tells the dialects apart, legacy-encode.h writes messages.
 *
 *	off size   W72 W112 W128 W144 W648			 off size   W32
 *	  0    1   type						   0	1   type
 *	  1    3   zero						   1	3   zero
 *	  4    4   device, signed				   4	4   device, signed
 *	  8    8   size						   8	8   size
 *	 16    1   buffer type; of a kernel: its sort		  16	8   id
 *	 17    3   zero						  24	4   pid
 *	 20    4   pid; 0 in questions				  28	4   zero
 *	 24    8   id: address, or number of a kernel
 *	 32    8   timestamp, ns since 1970; often 0
 *	 40   32   counters: zero in every request
 *
 *	at 72:	W72 ends; W112 device info (40); W128 cb, kernel (16), device info (40); W144 the
 *		same and ring buffer (16); W648 name (64), stack (512). Except for these two texts,
 *		all of it is zero in every request.
 *
 * Two requests that old scripts send and no old server ever answered are dialects of their own: the
 * line "QUERY_ALL\n", and 24 bytes that are zero except for a leading 2.
 *
 * Little-endian, like every machine that used it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEGACY_SIZE_MAX 648u /* the longest message */
#define LEGACY_NAME_SIZE 64u
#define LEGACY_STACK_SIZE 512u
#define LEGACY_HEAD_SIZE 40u
#define LEGACY_TEXT_REQUEST "QUERY_ALL\n"

/* By size, the shortest first: the order in which they are tried at end of stream. */
enum legacy_dialect {
	LEGACY_UNDECIDED = 0,
	LEGACY_TEXT, /* trace_remaining_l1.py; expects text up to a blank line */
	LEGACY_W24,  /* realtime_monitor.py; expects 48-byte records until the connection ends */
	LEGACY_W32,  /* instrumented_helpers.hpp: circular buffers and kernels only */
	LEGACY_W72,
	LEGACY_W112,
	LEGACY_W128,
	LEGACY_W144,
	LEGACY_W648,
	LEGACY_DIALECTS,
};

enum legacy_type {
	LEGACY_ALLOC = 1,
	LEGACY_FREE = 2,
	LEGACY_QUERY = 3,
	LEGACY_RESPONSE = 4, /* never sent by a client */
	LEGACY_DUMP_REMAINING = 5,
	LEGACY_DEVICE_INFO_QUERY = 6,    /* device -1: how many are there? */
	LEGACY_DEVICE_INFO_RESPONSE = 7, /* never sent by a client */
	LEGACY_CB_ALLOC = 8,
	LEGACY_CB_FREE = 9,
	LEGACY_KERNEL_LOAD = 10,
	LEGACY_KERNEL_UNLOAD = 11,
	LEGACY_DUMP_KERNELS = 12,

	/* Not on the wire: W24 sends 2, but does not mean FREE. */
	LEGACY_QUERY_ALL = 100,
	LEGACY_STATISTICS = 101,
};

struct legacy_head {
	uint8_t type;
	uint8_t pad1[3];
	int32_t device;
	uint64_t size;
	uint8_t buffer_type;
	uint8_t pad2[3];
	int32_t pid;
	uint64_t id;
	uint64_t timestamp;
};

struct legacy_counters {
	uint64_t dram;
	uint64_t l1;
	uint64_t l1_small;
	uint64_t trace;
};

struct legacy_device_info {
	uint64_t total_dram;
	uint64_t total_l1;
	uint32_t arch; /* 0 unknown, 1 Grayskull, 2 Wormhole_B0, 3 Blackhole, 4 Quasar */
	uint32_t dram_channels;
	uint32_t dram_per_channel; /* overflows from 4 GiB on */
	uint32_t l1_per_core;
	uint32_t available;
	uint32_t devices;
};

struct legacy_w32 {
	uint8_t type;
	uint8_t pad1[3];
	int32_t device;
	uint64_t size;
	uint64_t id;
	int32_t pid;
	uint8_t pad2[4];
};

struct legacy_w72 {
	struct legacy_head head;
	struct legacy_counters counters;
};

struct legacy_w112 {
	struct legacy_head head;
	struct legacy_counters counters;
	struct legacy_device_info info;
};

struct legacy_w128 {
	struct legacy_head head;
	struct legacy_counters counters;
	uint64_t cb;
	uint64_t kernel;
	struct legacy_device_info info; /* 16 bytes later than in W112 */
};

struct legacy_w144 {
	struct legacy_head head;
	struct legacy_counters counters;
	uint64_t cb;
	uint64_t kernel;
	struct legacy_device_info info;
	uint32_t ring_total;
	uint32_t ring_used;
	uint32_t ring_programs;
	uint32_t pad3;
};

struct legacy_w648 {
	struct legacy_head head;
	struct legacy_counters counters;
	char name[LEGACY_NAME_SIZE];
	char stack[LEGACY_STACK_SIZE];
};

/* The old structs were packed; these need not be: every member is naturally aligned. */
_Static_assert(sizeof(struct legacy_head) == LEGACY_HEAD_SIZE, "head size");
_Static_assert(sizeof(struct legacy_w32) == 32, "W32 size");
_Static_assert(sizeof(struct legacy_w72) == 72, "W72 size");
_Static_assert(sizeof(struct legacy_w112) == 112, "W112 size");
_Static_assert(sizeof(struct legacy_w128) == 128, "W128 size");
_Static_assert(sizeof(struct legacy_w144) == 144, "W144 size");
_Static_assert(sizeof(struct legacy_w648) == 648, "W648 size");
_Static_assert(offsetof(struct legacy_head, device) == 4, "device");
_Static_assert(offsetof(struct legacy_head, size) == 8, "size");
_Static_assert(offsetof(struct legacy_head, buffer_type) == 16, "buffer type");
_Static_assert(offsetof(struct legacy_head, pid) == 20, "pid");
_Static_assert(offsetof(struct legacy_head, id) == 24, "id");
_Static_assert(offsetof(struct legacy_head, timestamp) == 32, "timestamp");
_Static_assert(offsetof(struct legacy_w32, id) == 16, "W32 id");
_Static_assert(offsetof(struct legacy_w32, pid) == 24, "W32 pid");
_Static_assert(offsetof(struct legacy_w72, counters) == 40, "counters");
_Static_assert(offsetof(struct legacy_w112, info) == 72, "W112 info");
_Static_assert(offsetof(struct legacy_w112, info.devices) == 108, "W112 devices");
_Static_assert(offsetof(struct legacy_w128, info) == 88, "W128 info");
_Static_assert(offsetof(struct legacy_w128, info.devices) == 124, "W128 devices");
_Static_assert(offsetof(struct legacy_w144, cb) == 72, "W144 cb");
_Static_assert(offsetof(struct legacy_w144, info) == 88, "W144 info");
_Static_assert(offsetof(struct legacy_w144, info.arch) == 104, "W144 arch");
_Static_assert(offsetof(struct legacy_w144, ring_total) == 128, "W144 ring");
_Static_assert(offsetof(struct legacy_w648, name) == 72, "W648 name");
_Static_assert(offsetof(struct legacy_w648, stack) == 136, "W648 stack");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

/* A request of any dialect. Members that the dialect or the type does not have are 0 or empty. */
struct legacy_message {
	enum legacy_dialect dialect;
	enum legacy_type type;
	int32_t device;      /* any number: not checked here */
	int32_t pid;         /* as sent; it may be from another namespace, or a lie */
	uint8_t buffer_type; /* as sent; clients disagree about 2 and 3 */
	uint8_t kernel_sort; /* of a kernel: 0 application, 1 fabric, 2 dispatch */
	uint64_t size;
	uint64_t id;
	uint64_t timestamp;

	/* W648: any bytes but NUL, not terminated; never NULL. They point into the message. */
	const char *name;
	const char *stack;
	uint32_t name_length;  /* <= LEGACY_NAME_SIZE */
	uint32_t stack_length; /* <= LEGACY_STACK_SIZE */

	const uint8_t *raw; /* legacy_size(dialect) bytes */
};

/* Bytes of one message; 0 for LEGACY_UNDECIDED. */
size_t legacy_size(enum legacy_dialect dialect);

/* "W72" and the like, for display; never NULL. */
const char *legacy_dialect_name(enum legacy_dialect dialect);
const char *legacy_type_name(enum legacy_type type);

/* Whether clients of @dialect send @type. */
bool legacy_has(enum legacy_dialect dialect, enum legacy_type type);

/*
 * Whether @byte may be at @offset < legacy_size() in a request. This is the definition, byte by
 * byte and slow; legacy_check() tests a whole message against the same rules, faster.
 */
bool legacy_fits_at(enum legacy_dialect dialect, size_t offset, uint8_t byte);

/* Whether legacy_size() bytes are a request; the numbers in it are not checked. */
bool legacy_check(enum legacy_dialect dialect, const uint8_t *bytes);

/* Whether @length bytes, less than a message, can be the beginning of one. */
bool legacy_check_beginning(enum legacy_dialect dialect, const uint8_t *bytes, size_t length);

/* Decodes legacy_size() bytes; the result points into them. -EBADMSG: not a request. */
int legacy_decode(enum legacy_dialect dialect, const uint8_t *bytes,
		  struct legacy_message *ret_message);
