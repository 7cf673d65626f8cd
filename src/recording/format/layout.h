/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The recording, byte by byte; docs/recording-format.md has it in words. Little-endian, fixed
 * width, no padding.
 *
 * A file is a row of chunks. Each chunk is a skippable frame of zstd, which holds a struct
 * recording_chunk, and then, if the chunk has contents, an ordinary frame of zstd with them: so
 * zstd's own tools can test a file, and a reader can pass from chunk to chunk without decompressing
 * anything. A chunk is written by one write; a torn one at the end is found by its hashes, and
 * everything before it counts.
 *
 * What a recording knows of a process is its book: bytes of the book that are not events, as they
 * were (RECORDING_BYTES), the events of each device (RECORDING_EVENTS), and now and then the state
 * of a device (RECORDING_KEYFRAME). From these a reader makes the book again as it was at any
 * moment, and everything that can read a book can read that.
 */

#include <stdint.h>

#include "base/process-id.h"
#include "book/format/layout.h"

#define RECORDING_MAGIC UINT64_C(0x4345524d454d5454) /* "TTMEMREC" */
#define RECORDING_MAJOR 1u                           /* readers refuse a later one */
#define RECORDING_MINOR 0u /* readers pass over kinds that they do not know */

#define RECORDING_FRAME 0x184d2a5du /* magic of the skippable frame, then its length in 4 bytes */
#define RECORDING_NONE UINT32_MAX   /* no book, no device */

#define RECORDING_EVENTS_MAX 65536u /* in a chunk */
/* Of a chunk's contents; readers refuse more. A keyframe of 16,777,216 buffers takes some 250 MiB. */
#define RECORDING_SIZE_MAX (UINT32_C(512) << 20)
#define RECORDING_BOOKS_MAX 65536u
#define RECORDING_INDEX_EVERY 256u /* chunks between two indexes */

enum recording_kind {
	RECORDING_HEAD = 1,     /* JSON: where, when and what was recorded; the first chunk */
	RECORDING_BOOK = 2,     /* a struct recording_book: a book is seen for the first time */
	RECORDING_BYTES = 3,    /* struct recording_bytes, each followed by its bytes */
	RECORDING_EVENTS = 4,   /* events first to last of a device, in columns */
	RECORDING_KEYFRAME = 5, /* the state of a device after event last */
	RECORDING_GAP = 6,      /* a struct recording_gap: events first to last are not here */
	RECORDING_SITES = 7,  /* struct recording_site: what each call site did up to event last */
	RECORDING_NAMES = 8,  /* JSON: names for the native frames of a book's stacks */
	RECORDING_ENDED = 9,  /* a struct recording_ended: the book's owner has ended */
	RECORDING_INDEX = 10, /* the chunks since the last index, as struct recording_entry */
	RECORDING_END = 11,   /* JSON: the recording was ended in order, and its sums */
};

/* What is known of a chunk without its contents. Times are stamps of the book's own clock. */
struct recording_entry {
	uint64_t offset; /* of the chunk in the file */
	uint32_t kind;
	uint32_t book; /* numbered from 0 as they appear in the file; RECORDING_NONE */
	uint32_t device;
	uint32_t size;        /* of the contents; 0 = there are none, and no second frame */
	uint32_t length;      /* of the second frame */
	uint32_t count;       /* of events, records, sites ... in it */
	uint64_t first, last; /* numbers of events */
	uint64_t stamp_first, stamp_last; /* lowest and highest of the events; else both now */
	/* One moment on three clocks, taken when the chunk was made; see model/timebase.h. */
	uint64_t stamp_now, monotonic_now, realtime_now;
	/* Of events, keyframes and gaps: in use after the last event, and the most within the chunk. */
	uint64_t bytes[BOOK_TYPES];
	uint64_t high[BOOK_TYPES];
	uint64_t high_number[BOOK_TYPES]; /* the first event after which it was so; 0 = in a gap */
};

struct recording_chunk {
	uint64_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t reserved;
	uint64_t index; /* offset of the last index before this chunk; 0 = none */
	struct recording_entry entry;
	uint64_t contents_hash; /* hash_bytes() of the second frame */
	uint64_t hash;          /* hash_bytes() of all before it */
};

/* Who the book belongs to, as the recorder saw it; then its first page. */
struct recording_book {
	uint32_t pid;    /* in the recorder's namespace */
	uint32_t ns_pid; /* as it sees itself */
	uint32_t user_id;
	uint32_t maker_id;
	uint64_t start_ticks;
	uint64_t start_ns; /* CLOCK_REALTIME */
	char comm[16];
	char user[64];
	char container[80];
	struct book_header header;
};

static inline struct process_id recording_process(const struct recording_book *book)
{
	return (struct process_id){book->pid, book->start_ticks};
}

/* Bytes of the book at an offset: they replace what was there before. */
struct recording_bytes {
	uint64_t offset;
	uint32_t length; /* followed by so many bytes, padded with zeros to 8 */
	uint32_t reserved;
};

/* What is missing; from the counters on both sides, so it is exact. */
struct recording_gap {
	uint64_t events;
	uint64_t allocs[BOOK_TYPES];
	uint64_t frees[BOOK_TYPES];
	int64_t bytes[BOOK_TYPES]; /* after minus before */
	/* The peak of the book rose within the gap: to this; 0 = it did not. */
	uint64_t peak[BOOK_TYPES];
	uint64_t peak_stamp[BOOK_TYPES];
};

#define RECORDING_LIVES 32u

/* One (stack, type) of a device, since the beginning of the recording. */
struct recording_site {
	uint32_t stack;
	uint32_t type;
	uint64_t allocs, frees;
	uint64_t alloc_bytes, free_bytes;
	uint64_t live_bytes, high_bytes;
	/* Freed buffers by how long they lived: bit length of ns / 1024, see docs. */
	uint64_t lives[RECORDING_LIVES];
};

struct recording_ended {
	uint64_t realtime;
	int32_t status; /* as wait() gives it */
	uint32_t is_status_known;
};

BOOK_ASSERT_SIZE(recording_entry, 256);
BOOK_ASSERT_SIZE(recording_chunk, 296);
BOOK_ASSERT_SIZE(recording_book, 4288);
BOOK_ASSERT_SIZE(recording_bytes, 16);
BOOK_ASSERT_SIZE(recording_gap, 288);
BOOK_ASSERT_SIZE(recording_site, 312);
BOOK_ASSERT_SIZE(recording_ended, 16);
