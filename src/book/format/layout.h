/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The book, byte by byte: what the owner writes and everybody else reads; docs/book-format.md has
 * it in words. Little-endian, fixed width, no padding, offsets instead of pointers. No field may
 * move without a new BOOK_VERSION; new facts go into reserved space, where 0 means "not stated".
 *
 *	0		header, one page
 *	0x1000		arenas (strings, shapes, stacks, modules): used, lost, directory
 *	0x2000		marks
 *	0x10000		segment table, 8 bytes for each unit of the file
 *	0x90000		incidents, 256 for each kind
 *	0x110000	devices, 512 bytes each
 *	0x200000	shards, 8 KiB each
 *	0xa00000	the pool: units of 64 KiB, claimed in runs ("segments")
 */

#include <stdint.h>

#include "book/format/words.h"

#define BOOK_MAGIC UINT64_C(0x314b424d454d5454) /* "TTMEMBK1" */
#define BOOK_VERSION 2u
#define BOOK_VERSION_FIRST 1u /* the oldest that is still read */

/* Since this version a key has a space, and a shard has warm counters. */
#define BOOK_VERSION_SPACES 2u

#define BOOK_DEVICES 1024u
#define BOOK_TYPES 7u
#define BOOK_UNIT 65536u /* the reservation step, and the granularity of the pool */
#define BOOK_PAGE 4096u

#define BOOK_ARENAS_OFFSET 0x1000u
#define BOOK_MARKS_OFFSET 0x2000u
#define BOOK_SEGMENTS_OFFSET 0x10000u
#define BOOK_INCIDENTS_OFFSET 0x90000u
#define BOOK_DEVICES_OFFSET 0x110000u
#define BOOK_SHARDS_OFFSET 0x200000u
#define BOOK_POOL_OFFSET 0xa00000u

#define BOOK_SIZE_MAX (UINT64_C(4) << 30) /* readers refuse more */
#define BOOK_SIZE_MIN (BOOK_POOL_OFFSET + 16u * BOOK_UNIT)
#define BOOK_POOL_FIRST_UNIT (BOOK_POOL_OFFSET / BOOK_UNIT)

/* Records: 32768 of 48 bytes fill 24 units; 512 such segments are 16,777,216 live buffers. */
#define BOOK_SEGMENT_SLOTS 32768u
#define BOOK_SEGMENT_UNITS 24u
#define BOOK_SEGMENTS_MAX 512u
#define BOOK_SLOTS_MAX (BOOK_SEGMENT_SLOTS * BOOK_SEGMENTS_MAX)

#define BOOK_RING_MIN 1024u    /* four checkpoint distances: with fewer a reader starves */
#define BOOK_RING_MAX 1048576u /* 64 MiB per device */
#define BOOK_RING_SURE 16384u  /* more is shared among the devices: see room.c */
#define BOOK_GRAVES 4096u
#define BOOK_CHECKPOINT_EVERY 256u
#define BOOK_CHECKPOINTS 4u

#define BOOK_MARKS 256u
#define BOOK_INCIDENTS_PER_KIND 256u
#define BOOK_NAME_MAX 255u  /* bytes of a name */
#define BOOK_PATH_MAX 1023u /* bytes of a phase path, and of any string */
#define BOOK_ARENA_SEGMENTS 64u
#define BOOK_ARENA_UNITS 16u /* 1 MiB per arena segment */

/* What the time stamps of a book count. */
enum book_clock {
	BOOK_CLOCK_MONOTONIC = 1, /* nanoseconds of CLOCK_MONOTONIC */
	BOOK_CLOCK_TSC = 2,       /* the x86 time stamp counter */
	BOOK_CLOCK_CNTVCT = 3,    /* the aarch64 virtual counter */
};

/* Who writes the book. */
enum book_source {
	BOOK_SOURCE_LIBRARY = 1, /* the process itself */
	BOOK_SOURCE_SOCKET = 2,  /* ttmemd, for a client of the old protocol */
	BOOK_SOURCE_KERNEL = 3,  /* the process, in memory of the kernel module */
};

/* Life cycle of the book's owner. */
enum book_state {
	BOOK_STATE_OPEN = 1,
	BOOK_STATE_CLOSED = 2, /* the library closed it */
};

enum book_segment_kind {
	BOOK_SEGMENT_RECORDS = 1,
	BOOK_SEGMENT_RING = 2,
	BOOK_SEGMENT_GRAVES = 3,
	BOOK_SEGMENT_ARENA = 4,
};

enum book_arena_kind {
	BOOK_ARENA_STRINGS = 0,
	BOOK_ARENA_SHAPES = 1,
	BOOK_ARENA_STACKS = 2,
	BOOK_ARENA_MODULES = 3,
	BOOK_ARENA_COUNT = 4,
};

enum book_incident_kind {
	BOOK_INCIDENT_DOUBLE_FREE = 0,
	BOOK_INCIDENT_UNKNOWN_FREE = 1,
	BOOK_INCIDENT_SIZE_CHANGE = 2,
	BOOK_INCIDENT_ALLOC_FAILED = 3,
	BOOK_INCIDENT_CLASH = 4, /* something that was refused would lie over a live buffer */
	BOOK_INCIDENT_TRACE_OVERLAP = 5, /* a buffer lies where a trace writes */
	BOOK_INCIDENT_KINDS = 8,         /* the rest is reserved */
};

/* What an event did; event.h says what each does to the counters. */
enum book_op {
	BOOK_OP_ALLOC = 1,         /* a new record */
	BOOK_OP_REF = 2,           /* same key, same size: refs + 1 */
	BOOK_OP_UNREF = 3,         /* refs - 1, still alive */
	BOOK_OP_FREE = 4,          /* the record ends */
	BOOK_OP_UNKNOWN_FREE = 5,  /* no such record */
	BOOK_OP_DOUBLE_FREE = 6,   /* the record was freed before */
	BOOK_OP_LOST_ALLOC = 7,    /* no room for the record */
	BOOK_OP_OVERFLOW_FREE = 8, /* no such record, but allocations were lost */
	BOOK_OP_HOOKED = 9,        /* graph capture: counted, no memory */
	BOOK_OP_PEAK_RESET = 10,
	BOOK_OP_FAILED = 11,        /* an allocation that failed in the application */
	BOOK_OP_UNPLACED_FREE = 12, /* no space given, records in several: none of them ends */
	BOOK_OP_COUNT = 13,
};

#define BOOK_OP_MASK 0x0fu
#define BOOK_OP_AMBIGUOUS 0x80u /* modifier: a free without a type matched several records */
#define BOOK_OP_RESIZE 0x40u    /* modifier: first half of a size change; the alloc follows */
#define BOOK_OP_CLOSED 0x20u    /* modifier: the record ends because its space does */

/* Bits of a shard's inexact word, shifted by the type. */
#define BOOK_INEXACT_LOW UINT64_C(0x1)    /* allocations were lost: live is a lower bound */
#define BOOK_INEXACT_HIGH UINT64_C(0x100) /* frees were lost: live is an upper bound */

#define BOOK_GAVE_UP_UNSAID UINT32_MAX /* there was no room for the reason */

/* Calls that could not be recorded anywhere else; cumulative. */
struct book_rejected {
	uint64_t device;    /* a device number out of range */
	uint64_t type;      /* a type that does not exist */
	uint64_t size;      /* size 0 without a flag that explains it */
	uint64_t arguments; /* NULL, a struct too short, unknown flags */
	uint64_t room;      /* no room for the device's shard */
	uint64_t reentry;   /* inside a signal handler, beyond the depth of deferral */
	uint64_t lock;      /* the shard's lock could not be taken */
	uint64_t paused;    /* while the application paused tracking */
};

/* The first page. The identity is written once; magic last of all. */
struct book_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t file_size;
	uint64_t room; /* the most bytes the owner may reserve */
	uint32_t ring_events;
	uint32_t record_size;
	uint32_t event_size;
	uint32_t shard_size;
	uint32_t source;
	uint32_t clock;

	uint32_t pid;    /* as the owner sees it */
	uint32_t keeper; /* pid that writes the book on its behalf, 0 = none */
	uint32_t uid;
	uint32_t euid;
	uint64_t start_ticks;   /* field 22 of /proc/PID/stat, as the owner sees it */
	uint64_t pid_namespace; /* inode */
	uint8_t boot_id[16];
	uint64_t clock_start; /* the clock, CLOCK_MONOTONIC and CLOCK_REALTIME at creation */
	uint64_t monotonic_start;
	uint64_t realtime_start;
	char comm[16];
	char library[16]; /* version of the library, as text */
	uint32_t cmdline_length;
	uint32_t carried;   /* for a kept book: how many books came before it */
	char cmdline[1024]; /* arguments separated by NUL */
	/* What the owner's time namespace adds to start_ticks and to CLOCK_MONOTONIC, in ns. */
	int64_t boottime_offset, monotonic_offset;
	uint32_t unlisted; /* 1: daemons leave it out unless it is offered to them */
	uint8_t reserved1[836];

	/* From here on (offset 2048) the owner writes as long as it lives. */
	uint32_t state;
	uint32_t paused;
	uint64_t closed_time;
	uint64_t pool_next; /* first unclaimed unit; claimed by atomic add */
	uint64_t reserved_bytes;
	uint64_t mark_count;
	uint64_t lost_graves; /* frees that found no room in a graveyard */
	uint64_t lost_stacks; /* events whose stack was requested but could not be taken */
	uint64_t
		lost_frames; /* likewise frames of another language; the native ones may be there */
	struct book_rejected rejected;
	uint64_t incident_count[BOOK_INCIDENT_KINDS]; /* claimed; an entry counts once committed */
	uint64_t incident_lost[BOOK_INCIDENT_KINDS];
	uint64_t changes;     /* shards made, devices declared and closed; counted when done */
	uint32_t first_phase; /* the process's phase when the book was made: a string, 0 = none */
	uint32_t skip_frames; /* frames that stand for no stack: a string, 0 = none */
	/*
	 * A string: why what is reported here can no longer be relied on. 0 = it can; any other value, also one
	 * that is not a string (BOOK_GAVE_UP_UNSAID), stays for good.
	 */
	uint32_t gave_up;
	uint8_t reserved3[1772];
};

/* One arena: ids below used are valid; directory entries are first units, 0 = none. */
struct book_arena {
	uint64_t used; /* bytes, rounded to the arena's granularity */
	uint64_t lost; /* entries that found no room */
	uint64_t capacity;
	uint64_t reserved[5];
	uint32_t directory[BOOK_ARENA_SEGMENTS];
};

/* A string in its arena: id = offset / 8. Followed by the bytes, no NUL, padded to 8. */
struct book_string {
	uint16_t length;
};

/*
 * How a buffer is spread over the banks: id = offset / 32; id 0 = the device's default. It takes
 * size_per_bank * banks, whatever its size; if one of them is 0, that is not known.
 */
struct book_shape {
	uint64_t size_per_bank;
	uint32_t banks; /* that the buffer touches */
	uint32_t first_bank;
	uint32_t kernel_sort;
	uint32_t flags;     /* BOOK_SHAPE_... */
	uint64_t page_size; /* 0 = not known */
};

/* Neither of a pair: not known. */
#define BOOK_SHAPE_BOTTOM_UP 1u
#define BOOK_SHAPE_TOP_DOWN 2u
#define BOOK_SHAPE_INTERLEAVED 4u
#define BOOK_SHAPE_SHARDED 8u
#define BOOK_SHAPE_PER_CORE 16u /* addresses of one core say nothing about another core */

/* A frame of a stack. */
struct book_frame {
	uint64_t value;  /* native: offset in the module; Python: function id << 32 | file id */
	uint32_t module; /* native: module id; Python: line */
	uint32_t flags;  /* BOOK_FRAME_...; Python: number of native frames outside it << 8 */
};

#define BOOK_FRAME_PYTHON 1u
#define BOOK_FRAME_APPROXIMATE 2u /* from the thread's last stack that could be read */
#define BOOK_FRAME_ENTRY 4u       /* interpreter boundary: the outermost frame of one run of it */
#define BOOK_FRAME_CUT 8u         /* native: its callers could not be found */
#define BOOK_FRAME_OUTSIDE_SHIFT 8

/* A stack: id = offset / 16; followed by native, then Python frames, innermost first. */
struct book_stack {
	uint16_t native;
	uint16_t python;
	uint32_t flags;
	uint64_t hash;
};

/* A loaded ELF file: id = offset / 64. */
struct book_module {
	uint64_t base;
	uint64_t size;
	uint32_t path; /* string id */
	uint32_t generation;
	uint8_t build_id[32];
	uint32_t build_id_length;
	uint32_t flags; /* 1 = unloaded */
};

/* Segment table entry, at the segment's first unit. */
struct book_segment {
	uint16_t owner; /* device, or arena kind */
	uint8_t kind;
	uint8_t reserved;
	uint32_t units;
};

/* A named moment. Valid once commit is 1 + its number. */
struct book_mark {
	uint64_t commit;
	uint64_t time;
	uint32_t name;
	uint32_t thread;
	uint32_t phase;
	uint32_t reserved;
};

/* One side of an incident. */
struct book_party {
	uint64_t time;
	uint64_t size;
	uint32_t thread;
	uint32_t name;
	uint32_t phase;
	uint32_t stack;
};

/* Valid once commit is not 0. count and last_time change while the owner lives. */
struct book_incident {
	uint64_t commit;
	uint64_t count;
	uint64_t last_time;
	uint64_t address;
	uint64_t size;         /* requested; of a clash: how far it would reach into the buffer */
	uint64_t largest_free; /* UINT64_MAX = not known */
	uint32_t device;
	uint32_t type; /* 0xffffffff = not known */
	uint32_t space;
	uint32_t reserved0;
	struct book_party first;
	struct book_party second;
	/*
	 * Of a failed allocation, in each bank; then largest_free is in each bank, too. 0 = not known; what is
	 * free is known where the bank's size is.
	 */
	uint64_t size_per_bank;
	uint64_t bank_size;
	uint64_t bank_free;
	uint32_t banks;       /* that it would have touched */
	uint32_t shape_flags; /* BOOK_SHAPE_... */
	uint8_t reserved1[96];
};

/* What is known about one kind of memory of a device. */
struct book_memory {
	uint64_t capacity;
	uint64_t bank_base;
	uint64_t bank_size;
	uint32_t banks;
	uint32_t alignment;
};

/* A device as the application declared it. generation: odd during a rewrite, 0 = never declared. */
struct book_device {
	uint32_t generation;
	uint32_t remote;
	uint64_t unique_id;
	char arch[24];
	char card[24];
	uint32_t l1_per_core;
	uint32_t cores;
	uint64_t closed_time; /* 0 = open */
	uint8_t reserved[208];
	struct book_memory memory[BOOK_TYPES];
};

/* One live buffer. */
struct book_record {
	uint64_t address;
	uint64_t size;
	uint64_t birth;
	uint32_t stack;
	uint32_t name;
	uint32_t phase;
	uint32_t thread_space; /* the thread that allocated it, and the space it is in */
	uint32_t meta;
	uint32_t shape;
};

/*
 * Event n lies at n % ring_events of its shard's ring. A free has the old record, but with the
 * freeing thread; any other event has the record as it is now.
 */
struct book_event {
	uint64_t time;
	uint32_t op_slot; /* slot << 8 | modifiers | op */
	uint32_t stack;   /* of this call */
	struct book_record record;
};

/* One of the last frees; grave n lies at n % 4096. */
struct book_grave {
	uint64_t address;
	uint64_t size;
	uint64_t birth;
	uint64_t death;
	uint32_t birth_stack;
	uint32_t death_stack;
	uint32_t birth_thread_space;
	uint32_t death_thread;
	uint32_t name;
	uint32_t phase;
	uint32_t death_phase;
	uint32_t meta;
};

/* What each event may change. number = the last event included; stored last. */
struct book_hot {
	uint64_t bytes;
	uint64_t buffers;
	uint64_t peak;
	uint64_t peak_time;
	uint64_t allocs;
	uint64_t frees;
	uint64_t last;
	uint64_t number;
};

/* What rare events change. */
struct book_cold {
	uint64_t unknown_frees;
	uint64_t double_frees;
	uint64_t size_changes;
	uint64_t realloc_live;
	uint64_t ambiguous_frees;
	uint64_t hooked;
	uint64_t overflow_frees;
	union {
		uint64_t number;
		struct { /* in a checkpoint, which has its own number: as in struct book_warm */
			uint32_t known;
			uint32_t unplaced_frees;
		};
	};
};

/* What only events of buffers with a known shape change, and frees that name no space. */
struct book_warm {
	uint64_t occupied;       /* by the live buffers for which it is known */
	uint32_t known;          /* how many they are */
	uint32_t unplaced_frees; /* stays at its maximum */
	uint64_t number;
};

/* All counters of a shard as of event `number`; 0 while being written. */
struct book_checkpoint {
	uint64_t number;
	uint64_t occupied[BOOK_TYPES];
	struct book_hot hot[BOOK_TYPES];
	struct book_cold cold[BOOK_TYPES];
};

/* One device's part of the book. */
struct book_shard {
	uint64_t head;    /* number of the last published event; published with release */
	uint64_t slots;   /* records ever used: all others are dead */
	uint64_t inexact; /* BOOK_INEXACT_... */
	uint64_t graves;  /* frees put into the graveyard so far */
	uint64_t reserved0[4];

	/* Written once, before the first event. Units; 0 = none. */
	uint32_t ring_unit;
	uint32_t graves_unit;
	uint32_t ring_events;
	uint32_t state;    /* 1 = the shard is in use */
	uint32_t has_warm; /* 1 = an event has changed a warm counter */
	uint32_t reserved1[11];

	struct book_hot hot[BOOK_TYPES][2];
	struct book_cold cold[BOOK_TYPES][2];
	struct book_checkpoint checkpoint[BOOK_CHECKPOINTS];
	uint32_t directory[BOOK_SEGMENTS_MAX]; /* first unit of each record segment, 0 = none */
	struct book_warm warm[BOOK_TYPES][2];
	uint8_t reserved2[48];
};

/* Offsets and sizes must never change. */
#define BOOK_ASSERT_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type " size")
#define BOOK_ASSERT_AT(type, member, offset) \
	_Static_assert(__builtin_offsetof(struct type, member) == (offset), #type "." #member)

BOOK_ASSERT_SIZE(book_header, BOOK_PAGE);
BOOK_ASSERT_AT(book_header, pid, 56);
BOOK_ASSERT_AT(book_header, start_ticks, 72);
BOOK_ASSERT_AT(book_header, comm, 128);
BOOK_ASSERT_AT(book_header, cmdline, 168);
BOOK_ASSERT_AT(book_header, boottime_offset, 1192);
BOOK_ASSERT_AT(book_header, state, 2048);
BOOK_ASSERT_AT(book_header, rejected, 2112);
BOOK_ASSERT_AT(book_header, incident_count, 2176);
BOOK_ASSERT_SIZE(book_rejected, 64);
BOOK_ASSERT_SIZE(book_arena, 320);
BOOK_ASSERT_SIZE(book_shape, 32);
BOOK_ASSERT_SIZE(book_frame, 16);
BOOK_ASSERT_SIZE(book_stack, 16);
BOOK_ASSERT_SIZE(book_module, 64);
BOOK_ASSERT_SIZE(book_segment, 8);
BOOK_ASSERT_SIZE(book_mark, 32);
BOOK_ASSERT_SIZE(book_party, 32);
BOOK_ASSERT_SIZE(book_incident, 256);
BOOK_ASSERT_SIZE(book_memory, 32);
BOOK_ASSERT_SIZE(book_device, 512);
BOOK_ASSERT_AT(book_device, memory, 288);
BOOK_ASSERT_SIZE(book_record, 48);
BOOK_ASSERT_AT(book_record, meta, 40);
BOOK_ASSERT_SIZE(book_event, 64);
BOOK_ASSERT_AT(book_event, record, 16);
BOOK_ASSERT_SIZE(book_grave, 64);
BOOK_ASSERT_SIZE(book_hot, 64);
BOOK_ASSERT_SIZE(book_cold, 64);
BOOK_ASSERT_SIZE(book_warm, 24);
BOOK_ASSERT_SIZE(book_checkpoint, 960);
BOOK_ASSERT_SIZE(book_shard, 8192);
BOOK_ASSERT_AT(book_shard, hot, 128);
BOOK_ASSERT_AT(book_shard, cold, 1024);
BOOK_ASSERT_AT(book_shard, checkpoint, 1920);
BOOK_ASSERT_AT(book_shard, directory, 5760);
BOOK_ASSERT_AT(book_shard, warm, 7808);

_Static_assert(BOOK_SEGMENT_SLOTS * sizeof(struct book_record) == BOOK_SEGMENT_UNITS * BOOK_UNIT,
	       "a record segment is full to the byte");
_Static_assert(BOOK_INCIDENTS_OFFSET + BOOK_INCIDENT_KINDS * BOOK_INCIDENTS_PER_KIND *
					       sizeof(struct book_incident) ==
		       BOOK_DEVICES_OFFSET,
	       "incidents end where devices begin");
_Static_assert(BOOK_SHARDS_OFFSET + BOOK_DEVICES * sizeof(struct book_shard) == BOOK_POOL_OFFSET,
	       "shards end where the pool begins");
_Static_assert(BOOK_SEGMENTS_OFFSET + BOOK_SIZE_MAX / BOOK_UNIT * sizeof(struct book_segment) <=
		       BOOK_INCIDENTS_OFFSET,
	       "the segment table has an entry for every unit");

static inline uint64_t book_shard_offset(uint32_t device)
{
	return BOOK_SHARDS_OFFSET + (uint64_t)device * sizeof(struct book_shard);
}

static inline uint64_t book_device_offset(uint32_t device)
{
	return BOOK_DEVICES_OFFSET + (uint64_t)device * sizeof(struct book_device);
}

static inline uint64_t book_unit_offset(uint32_t unit)
{
	return (uint64_t)unit * BOOK_UNIT;
}

static inline uint64_t book_incident_offset(uint32_t kind, uint32_t index)
{
	return BOOK_INCIDENTS_OFFSET +
	       ((uint64_t)kind * BOOK_INCIDENTS_PER_KIND + index) * sizeof(struct book_incident);
}
