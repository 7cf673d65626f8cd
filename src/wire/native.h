/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests to ttmemd that are answered with descriptors, on the SOCK_SEQPACKET socket that also
 * takes offers of books (wire/offer.h) and HTTP requests (wire/http-request.h): the first bytes of
 * a packet distinguish them. A request is one packet; its reply is any number of packets, the last
 * of which has END set, and then the next request may follow. The peer's identity is taken from the
 * socket (SO_PEERCRED, SO_PEERGROUPS), never from these bytes. Everything is in the machine's byte
 * order, because both ends run on it; docs/protocol.md has it byte by byte.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NATIVE_REQUEST_MAGIC UINT32_C(0x51525454) /* "TTRQ" */
#define NATIVE_REPLY_MAGIC UINT32_C(0x50525454)   /* "TTRP" */
#define NATIVE_VERSION 1u
#define NATIVE_REQUEST_MAX 4096u /* later versions may send more than we know */
#define NATIVE_PACKET_MAX 65536u
#define NATIVE_TYPES 7u
#define NATIVE_DEVICES 1024u

enum native_kind {
	NATIVE_LIST = 1, /* every process, with the books of those that the client may see */
	/* Documents, which now go over HTTP. Older commands still send these, and get an error. */
	NATIVE_OLD_FIRST = 2,
	NATIVE_OLD_STATUS = 6, /* the last of them; a daemon before HTTP answers it */
	NATIVE_REGIONS = 7,    /* what tt-metal's regions report, like NATIVE_LIST without books */
	NATIVE_DRIVER_MEMORY = 8, /* what the driver keeps for each process, see below */
	NATIVE_RECORDING = 9, /* a file of the flight recorder: one packet, with its descriptor */
	/* Processes that have cards open, like NATIVE_LIST without books; see below */
	NATIVE_OPENERS = 10,
	NATIVE_KINDS = 11,
};

#define NATIVE_WANT_TOTALS (UINT32_C(1) << 0) /* NATIVE_LIST: of every process */
#define NATIVE_WANT_BOOKS (UINT32_C(1) << 1)  /* NATIVE_LIST: those that the client may see */
#define NATIVE_WANT_OLD (UINT32_C(1) << 2)    /* of a document */
#define NATIVE_WANT_REST (UINT32_C(1) << 3)   /* NATIVE_LIST: totals where no book is sent */
#define NATIVE_WANT_ALL UINT32_C(0xf)

#define NATIVE_ACCEPTS_JOINED (UINT32_C(1) << 0)   /* NATIVE_LIST: NATIVE_PART_JOINED... in flags */
#define NATIVE_ACCEPTS_OCCUPIED (UINT32_C(1) << 1) /* NATIVE_LIST: NATIVE_PART_OCCUPIED */

struct native_request {
	uint32_t magic;
	uint32_t version;
	uint32_t size;    /* of this struct */
	uint32_t kind;    /* enum native_kind */
	uint32_t want;    /* NATIVE_WANT_... */
	uint32_t old_pid; /* for documents, as old */
	uint32_t accepts; /* NATIVE_ACCEPTS_...; others, and those of older daemons, are ignored */
	uint8_t old
		[132]; /* NATIVE_RECORDING: the name of the file, padded with NULs; else ignored */
	uint64_t reserved[4]; /* 0 */
};

_Static_assert(sizeof(struct native_request) == 192, "request size");
_Static_assert(offsetof(struct native_request, reserved) == 160, "request layout");

#define NATIVE_END (UINT32_C(1) << 0) /* the last packet of a reply */

/* Precedes each packet of a reply. */
struct native_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t kind;        /* of the request */
	uint32_t flags;       /* NATIVE_END */
	int32_t status;       /* in the last packet: 0, or a negative errno and a text for users */
	uint32_t length;      /* bytes that follow in this packet */
	uint32_t reserved[2]; /* 0 */
};

_Static_assert(sizeof(struct native_reply) == 32, "reply size");

#define NATIVE_PAYLOAD_MAX (NATIVE_PACKET_MAX - (uint32_t)sizeof(struct native_reply))

#define NATIVE_ALIVE (UINT32_C(1) << 0)
#define NATIVE_EXACT (UINT32_C(1) << 1)
#define NATIVE_MAY_SEE (UINT32_C(1) << 2)   /* the client may see its details */
#define NATIVE_HAS_BOOK (UINT32_C(1) << 3)  /* a descriptor comes with this packet */
#define NATIVE_CONTINUES (UINT32_C(1) << 4) /* more devices of it are in the next packet */
#define NATIVE_PROCESS_FLAGS UINT32_C(0x1f)

/* What is known about the region of a row; a daemon that knows nothing sends 0. */
#define NATIVE_REGION_VERSION UINT64_C(0xff)
#define NATIVE_REGION_FULL (UINT64_C(1) << 8)
#define NATIVE_REGION_PRIVATE (UINT64_C(1) << 9)
#define NATIVE_REGION_UNPROVEN (UINT64_C(1) << 10) /* nothing proves that the process wrote it */

/*
 * Openers: `book_inode` is the pid namespace of the daemon, in which pids are counted, and the device of a part
 * is N of /dev/tenstorrent/N. The first packet is about the daemon itself and has no parts.
 */

/* A book and its owner; `parts` devices follow. */
struct native_process {
	/* st_dev and st_ino of the book, to recognise it; of a region: its id, NATIVE_REGION_... */
	uint64_t book_device;
	uint64_t book_inode;
	uint64_t start_ticks;
	uint64_t start_ns;
	uint64_t last_ns;
	uint64_t pid_namespace;
	uint32_t pid;
	uint32_t ns_pid;
	uint32_t user;   /* real one */
	uint32_t maker;  /* who made the book */
	uint32_t source; /* enum book_source */
	uint32_t flags;
	uint32_t parts; /* that follow in this packet */
	uint32_t reserved;
	uint64_t rejected[8]; /* as in the book's header */
	char comm[64];        /* any bytes, padded with NULs */
	char container[72];
};

_Static_assert(sizeof(struct native_process) == 280, "process size");
_Static_assert(offsetof(struct native_process, rejected) == 80, "process layout");

#define NATIVE_PEAK_UNKNOWN (UINT32_C(1) << 0)
#define NATIVE_NOT_TOLD (UINT32_C(1) << 1) /* regions do not know this type */
#define NATIVE_MEMORY_FLAGS UINT32_C(3)

struct native_memory {
	uint64_t used, buffers, peak, allocs, frees;
	uint64_t unknown_frees, double_frees, size_changes, realloc_live, ambiguous_frees;
	uint64_t hooked, overflow_frees;
	uint64_t last_ns;
	uint64_t capacity; /* 0 = not known */
	uint32_t bound;    /* 0 exact, 1 at least, 2 at most */
	uint32_t flags;    /* NATIVE_PEAK_UNKNOWN, NATIVE_NOT_TOLD */
};

_Static_assert(sizeof(struct native_memory) == 120, "memory size");

#define NATIVE_DECLARED (UINT32_C(1) << 0)
#define NATIVE_REMOTE (UINT32_C(1) << 1)
#define NATIVE_PART_FLAGS UINT32_C(0x1ff)
/*
 * Says more about the part before it, of the same device: used is what its buffers occupy, buffers how
 * many of them that includes, unknown_frees the frees that named no space where several had a buffer.
 */
#define NATIVE_PART_OCCUPIED (UINT32_C(1) << 8)
/* Two numbers of 3 bits, only for clients that accept them: older ones take them for garbage. */
#define NATIVE_PART_JOINED 2u    /* 1 + how it was joined to a card; 0 = not told */
#define NATIVE_PART_UNMATCHED 5u /* why it was not; 0 = it was */
#define NATIVE_PART_NUMBER UINT32_C(7)
#define NATIVE_PART_NUMBER_MAX 6u

/* What one process has of one device. */
struct native_part {
	uint32_t device; /* as the process numbers it */
	uint32_t flags;
	uint64_t unique_id; /* 0 = not known */
	uint64_t closed_ns; /* 0 = open */
	char arch[24];      /* any bytes, padded with NULs */
	char card[24];
	struct native_memory memory[NATIVE_TYPES];
};

_Static_assert(sizeof(struct native_part) == 912, "part size");

/* Devices that fit into one packet. */
#define NATIVE_PARTS_MAX                                                  \
	((NATIVE_PAYLOAD_MAX - (uint32_t)sizeof(struct native_process)) / \
	 (uint32_t)sizeof(struct native_part))

/* What the driver keeps for a process on one card. A packet contains any number of them. */
struct native_driver_memory {
	uint32_t pid;
	uint32_t number; /* N of /dev/tenstorrent/N */
	uint64_t pinned; /* bytes, likewise the next two */
	uint64_t dma;
	uint64_t tlb;
	uint32_t tlb_windows;
	uint32_t reserved; /* 0 */
};

_Static_assert(sizeof(struct native_driver_memory) == 40, "driver memory size");

#define NATIVE_DRIVER_MEMORY_MAX \
	(NATIVE_PAYLOAD_MAX / (uint32_t)sizeof(struct native_driver_memory))

/* A request with all mandatory fields set. */
void native_request_init(struct native_request *request, enum native_kind kind);

/*
 * Whether these bytes are meant as a request at all: then a packet that native_request_decode()
 * refuses is an error of a client that speaks this protocol.
 */
bool native_is_request(const void *bytes, size_t length);

/* 0; -EPROTONOSUPPORT for another version; -EBADMSG. */
int native_request_decode(const void *bytes, size_t length, struct native_request *ret_request);

void native_reply_init(struct native_reply *reply, uint32_t kind);

/*
 * The header of a reply packet. @bytes: the whole packet. 0 and @ret_payload, which has
 * ret_reply->length bytes; -EPROTONOSUPPORT for another version; -EBADMSG.
 */
int native_reply_decode(const void *bytes, size_t length, struct native_reply *ret_reply,
			const void **ret_payload);

/*
 * The payload of a NATIVE_LIST packet. 0 and @ret_parts, ret_process->parts of them (not aligned:
 * copy with native_part_get()); -EBADMSG.
 */
int native_process_decode(const void *payload, size_t length, struct native_process *ret_process,
			  const void **ret_parts);
int native_part_get(const void *parts, uint32_t index, struct native_part *ret_part);

/* One of the numbers in its flags: NATIVE_PART_JOINED, NATIVE_PART_UNMATCHED. */
uint32_t native_part_number(const struct native_part *part, uint32_t shift);

/* The payload of a NATIVE_DRIVER_MEMORY packet: how many there are, and each. 0 or -EBADMSG. */
int native_driver_memory_count(size_t length, uint32_t *ret_count);
int native_driver_memory_get(const void *payload, uint32_t index,
			     struct native_driver_memory *ret_memory);
