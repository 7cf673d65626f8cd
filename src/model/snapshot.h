/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One view over all sources, from which every tool takes its data. Sources fill it with processes,
 * their parts of devices, buffers and incidents; snapshot_finish() merges the devices, and from
 * then on nothing changes. No fds and no clock: the caller passes the time. All times are
 * CLOCK_REALTIME in ns, 0 = never; all texts are valid UTF-8 and live as long as the snapshot.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/pool.h"
#include "base/process-id.h"
#include "book/format/layout.h"
#include "model/page-cursor.h"
#include "model/snapshot-moment.h"
#include "model/snapshot-recording.h"

/* How much one caller can make a snapshot hold; beyond it the lists are truncated, with a note. */
#define SNAPSHOT_NOTES_MAX 100u
#define SNAPSHOT_BUFFERS_MAX (UINT32_C(1) << 24)
#define SNAPSHOT_INCIDENTS_MAX 100000u

#define SNAPSHOT_CLAIMS_MAX 65536u
#define SNAPSHOT_CARDS_MAX 1024u

#define SNAPSHOT_TYPE_NONE UINT32_MAX

#define SNAPSHOT_FLAG_ALIAS 0x04u /* TTMEM_FLAG_ALIAS: lies inside another buffer */

enum snapshot_bound {
	SNAPSHOT_EXACT = 0,
	SNAPSHOT_AT_LEAST = 1, /* allocations went unrecorded */
	SNAPSHOT_AT_MOST = 2,  /* frees went unrecorded */
};

/* What buffers take of a memory, as far as it is known. */
struct stack;

struct snapshot_occupied {
	uint64_t bytes;
	uint64_t known; /* buffers that are included */
	/* Of a sum: at least so much is taken besides, by processes of which it is not known. */
	uint64_t rest;
};

/* Where memory of a type lies: addresses base to base + size - 1 in each bank. All 0: not known. */
struct snapshot_window {
	uint64_t base;
	uint64_t size;
	uint32_t banks;
	uint32_t alignment;
};

/* All counters of one type of memory on one device: of a process, or the sums of several. */
struct snapshot_memory {
	uint64_t used;
	uint64_t buffers;
	struct snapshot_occupied occupied;
	uint64_t peak;
	uint64_t allocs;
	uint64_t frees;
	uint64_t allocs_before, frees_before; /* of these, before this daemon started */
	uint64_t unknown_frees;
	uint64_t double_frees;
	uint64_t size_changes;
	uint64_t realloc_live;
	uint64_t ambiguous_frees;
	uint64_t unplaced_frees; /* named no space, and several had a buffer there */
	uint64_t hooked;
	uint64_t overflow_frees;
	uint64_t last_ns;
	uint32_t bound;                /* enum snapshot_bound */
	bool peak_is_unknown;          /* two books were added: their peaks need not coincide */
	uint64_t capacity;             /* of sums; 0 = not known */
	struct snapshot_window window; /* likewise: from the process that declared the capacity */
};

/* What a process declared about a device. */
struct snapshot_facts {
	bool declared;
	bool remote;
	uint64_t unique_id; /* 0 = not known */
	const char *arch;   /* NULL = not known */
	const char *card;
	uint64_t closed_ns; /* 0 = open */
	uint64_t capacity[BOOK_TYPES];
	struct snapshot_window windows[BOOK_TYPES];
	uint64_t dram_bank_size; /* 0 = not known; likewise the next */
	uint32_t dram_banks;
	uint32_t l1_per_core;
};

/*
 * What the driver says it keeps for a process on one card: memory of the host, and windows to the
 * card's. It is never part of a total.
 */
struct snapshot_driver_memory {
	uint32_t pid;
	uint32_t number;      /* N of /dev/tenstorrent/N */
	uint64_t pinned;      /* bytes of the process's own pages, pinned for the card */
	uint64_t dma;         /* bytes of buffers that the driver has allocated for it */
	uint64_t tlb;         /* bytes of TLB windows that it has mapped */
	uint32_t tlb_windows; /* that are allocated to it, mapped or not */
};

/* How it is known which chip a process's device is; strongest first. join.c has the rule. */
enum snapshot_joined {
	SNAPSHOT_JOINED_UID = 0,    /* by its ASIC id */
	SNAPSHOT_JOINED_BOARD = 1,  /* by the board's serial number and the place on the board */
	SNAPSHOT_JOINED_REGION = 2, /* by the process's row in a region of tt-metal */
	SNAPSHOT_JOINED_OPEN = 3,   /* by the driver's nodes that the process has open */
	SNAPSHOT_JOINED_NUMBER = 4, /* by its number, which nothing contradicts */
	SNAPSHOT_BY_NUMBER = 5,     /* not at all: its number is all that is known */
	SNAPSHOT_JOINED_WAYS = 6,
};

/* Why a process's device has no card, though there are cards. */
enum snapshot_unmatched {
	SNAPSHOT_MATCHED = 0,
	SNAPSHOT_UNMATCHED_REMOTE = 1,  /* a chip without a node: that is as it should be */
	SNAPSHOT_UNMATCHED_ID = 2,      /* no card has the id that the process declares */
	SNAPSHOT_UNMATCHED_NUMBER = 3,  /* no card has the number */
	SNAPSHOT_UNMATCHED_OPEN = 4,    /* the process has other nodes open, and not so many */
	SNAPSHOT_UNMATCHED_NO_NODE = 5, /* the process has no node open */
	SNAPSHOT_UNMATCHED_TAKEN = 6,   /* the card it could be is another chip's */
};

#define SNAPSHOT_NO_CARD UINT32_MAX

/* A process's part of a device. */
struct snapshot_part {
	uint32_t device; /* as the process numbers it */
	uint32_t row;    /* index into snapshot->devices, once finished */
	uint32_t summed; /* devices that it is the sum of; 0 = it is one. A sum is the last part */
	bool is_claim;   /* made from a claim, not by the process itself */
	/* As a daemon, which sees more than we, has joined it; then joined and unmatched are set. */
	bool is_told;
	/* Once finished: */
	bool is_joined;
	uint32_t card;      /* index into snapshot->cards, or SNAPSHOT_NO_CARD */
	uint32_t joined;    /* enum snapshot_joined */
	uint32_t unmatched; /* enum snapshot_unmatched */
	struct snapshot_facts facts;
	struct snapshot_memory memory[BOOK_TYPES];

	/* Once finished: from before a reset or removal of the card; not counted on the device. */
	bool before_reset;

	/*
	 * Once finished, for a part that tt-metal's region reports as well: its figures. Where they
	 * differ from the memory above, differs is set. They are counted if the book has nothing about
	 * the device, or has given up: then what it says is not all.
	 */
	bool claimed;
	bool is_claim_only; /* the book has nothing about this device */
	bool is_region_counted;
	bool differs;
	uint64_t claimed_used[BOOK_TYPES];

	/* Once finished: an entry of the snapshot's list; NULL = not known. */
	const struct snapshot_driver_memory *driver_memory;
};

struct snapshot_process {
	struct process_id id;
	uint32_t ns_pid; /* as the process sees itself */
	uint64_t start_ns;
	const char *comm;
	const char *user;
	uint32_t user_id;
	uint32_t maker_id;      /* user when the book was made: who may see its details */
	const char *namespaces; /* in the daemon: where that counts; NULL = not known */
	const char *container;  /* NULL = none */
	const char *phase;      /* when its book was made; only if it has rows; NULL = none */
	uint64_t forgotten_ns;  /* if asked for: closings before are not known; 0 = all are */
	const char *source;     /* "book", "socket", "kernel", "tt-metal" (a region), "driver" */
	bool alive;
	bool exact;
	/* Why what it reports is incomplete from some moment on, for good; NULL = it is not. */
	const char *gave_up;
	bool stale;     /* exited, and only a region still names it; alive is false */
	bool unproven;  /* stale, but such a process lives: a region claims that it wrote the row */
	bool untracked; /* has a device open and reports nothing: its memory is unknown */
	bool differs;   /* one of its parts differs */
	bool nodes_known; /* its descriptors were searched: claims name all nodes that it has open */
	const char
		*visible; /* TT_VISIBLE_DEVICES of its environment; NULL = not set, or not known */
	uint32_t umd;   /* version of UMD, see numbering.h; 0 = not known, or it does not matter */
	bool is_opener; /* the driver lists it among those that have a device open */
	uint64_t last_ns;
	struct book_rejected rejected;
	size_t capacities_refused; /* once finished: of its devices; see declared.h */
	/* Once finished: devices that no card stands for, and how many of them have rows. */
	size_t loose, loose_rows;
	uint64_t
		stray_frees; /* once finished: frees of unknown buffers on devices that nobody has */

	/* Not to be set by callers that add a process. */
	struct snapshot_part *parts;
	size_t part_count;
	size_t part_capacity;
	bool is_unsorted; /* the parts are not in the order of their numbers */
	uint32_t books;   /* that were read; 0 = only totals from other sources are known */
};

/* Values of a card's sensors, in thousandths except for clocks (MHz) and the fan (rpm). */
enum snapshot_sensor {
	SNAPSHOT_TEMPERATURE = 0, /* 1/1000 degree Celsius, may be negative */
	SNAPSHOT_POWER = 1,       /* mW */
	SNAPSHOT_VOLTAGE = 2,     /* mV */
	SNAPSHOT_CURRENT = 3,     /* mA */
	SNAPSHOT_AICLK = 4,
	SNAPSHOT_AXICLK = 5,
	SNAPSHOT_ARCCLK = 6,
	SNAPSHOT_FAN = 7,
	SNAPSHOT_SENSORS = 8,
};

struct snapshot_telemetry {
	uint32_t known; /* bit 1 << sensor: there is a value */
	int64_t value[SNAPSHOT_SENSORS];
};

enum snapshot_state {
	SNAPSHOT_STATE_UNKNOWN = 0, /* the driver does not have it, as a remote chip */
	SNAPSHOT_PRESENT = 1,
	SNAPSHOT_IN_RESET = 2,      /* the driver has it, and no data of it */
	SNAPSHOT_NOT_ANSWERING = 3, /* reads yield ones only, or its heartbeat stands still */
	SNAPSHOT_GONE = 4,          /* removed, or unbound from the driver */
};

/* How a card does, as the driver reports it. */
struct snapshot_condition {
	uint32_t state;                   /* enum snapshot_state */
	struct snapshot_telemetry limits; /* of the sensors that have one */
	bool has_heartbeat, has_trips;
	uint32_t heartbeat; /* counts while the firmware runs */
	uint32_t trips;     /* times that it was too hot and switched itself off */
	uint32_t outside;   /* descriptors open in processes outside of our pid namespace */
	uint32_t ended;     /* openers that have ended; who inherited the node still has it */
};

/* A chip with a connection to the host, as the driver reports it. */
struct snapshot_card {
	uint32_t number; /* N of /dev/tenstorrent/N */
	uint64_t node;   /* its device number, as in st_rdev; 0 = not known */
	uint64_t
		folder; /* inode of its folder: a new one whenever the driver registers it; 0 = not known */
	uint64_t unique_id; /* ASIC id; 0 = not known, likewise the next */
	uint64_t serial;    /* of the board; chips of one board share it */
	const char *arch;   /* NULL = not known, likewise the next */
	const char *card;
	const char *bus; /* "0000:c1:00.0" */
	const char *firmware;
	struct snapshot_telemetry telemetry;
	struct snapshot_condition condition;
};

/* A part that its process has had since before its card was reset or removed. */
struct snapshot_left {
	struct process_id process;
	uint32_t device; /* as the process numbers it; UINT32_MAX = that of the node, see join.h */
	uint32_t node;   /* of the card at that time; UINT32_MAX = all of the process's devices */
	const char *bus; /* of the card; NULL = not known */
};

/*
 * What a source other than the process's own book says it has of a device: tt-metal's region of the
 * device, or the driver (which knows only that it is open). resolve-claims.c decides whether it is
 * counted when the snapshot is finished.
 */
struct snapshot_claim {
	struct snapshot_process process; /* who, as for snapshot_add_process() */
	uint32_t device;
	struct snapshot_facts facts;
	bool is_open_only; /* from the driver: nothing is known about memory */
	uint32_t types;    /* bit 1 << type: it reports that type */
	uint64_t used[BOOK_TYPES];
	uint64_t last_ns;
	uint32_t bound;          /* of used: enum snapshot_bound */
	uint64_t region;         /* the id that the region's file has in its name */
	uint32_t region_version; /* 0 = not known */
	uint32_t region_user;    /* who owns the file */
	bool region_is_full;     /* there is no row for a further process */
	bool region_is_private;  /* there are no rows of other users' processes */
};

struct snapshot_device {
	uint32_t device; /* the driver's number, else the smallest that a process uses for it */
	uint64_t unique_id;
	const char *arch;
	const char *card;
	bool remote;
	bool by_number;  /* no unique id: identified by number only */
	uint32_t summed; /* devices that this row sums up, of one user; 0 = it is one */
	/* The user whose word all of this is; NULL = the driver has it, or several users agree. */
	const char *declared_by;
	uint32_t declarer_id;
	uint32_t
		joined; /* the weakest way in which a part was joined to it; enum snapshot_joined */
	bool is_joined; /* a living process reports memory of it */
	bool closed;    /* every living process that had it has closed it */
	uint32_t processes; /* living ones that report their memory */
	uint32_t untracked; /* living ones that have it open and do not */
	uint32_t stale;     /* exited ones that only a region still names */
	bool present;       /* the driver has it; then: */
	uint32_t number;    /* N of /dev/tenstorrent/N */
	uint64_t serial;    /* 0 = not known */
	const char *bus;    /* NULL = not known, likewise firmware */
	const char *firmware;
	struct snapshot_telemetry telemetry;
	struct snapshot_condition condition;
	uint32_t before_reset; /* living processes whose part is from before a reset */
	uint32_t cores;        /* 0 = not known */
	uint32_t origin;       /* private to merge.c */
	struct snapshot_memory memory[BOOK_TYPES];
};

struct snapshot_buffer {
	uint32_t process; /* index */
	uint32_t device;  /* as the process numbers it */
	uint64_t address;
	uint64_t size;
	uint64_t born_ns;  /* converted anew by every reading: may differ by a little */
	uint64_t birth;    /* by its book's own clock: the same in every reading; 0 = no book */
	const char *name;  /* NULL = none */
	const char *phase; /* NULL = none */
	const struct stack *stack; /* of the snapshot's texts; NULL = none */
	uint32_t thread;
	uint32_t refs;
	uint8_t type;
	uint8_t flags; /* TTMEM_FLAG_... */
	uint8_t kernel_sort;
	uint8_t closed;         /* not live any more: closing its device ended it */
	uint32_t banks;         /* 0 = all */
	uint64_t size_per_bank; /* taken in each bank; 0 = not known */
	uint32_t space;         /* of the allocator that it is from */
	uint32_t alike; /* of a peak: so many buffers in one row, @size in all; 0 = it is one */
};

struct snapshot_party {
	bool known;
	uint64_t time_ns;
	uint64_t size;
	uint32_t thread;
	const char *name;
	const char *phase;
	const struct stack *stack; /* as a buffer's */
	uint64_t stack_key; /* the same for the same stack, with names or without; 0 = not known */
};

struct snapshot_incident {
	const char *kind;
	uint32_t process;
	uint32_t device;
	uint32_t type; /* SNAPSHOT_TYPE_NONE = not known */
	uint32_t space;
	bool has_address;
	uint64_t address;
	uint64_t size;
	uint64_t largest_free;  /* UINT64_MAX = not known; in each bank if the next is known */
	uint64_t size_per_bank; /* that was needed; 0 = not known, likewise the next */
	uint64_t bank_size;
	uint64_t bank_free; /* known if the bank's size is */
	uint32_t banks;     /* that it would have touched; 0 = not known */
	bool is_per_core;   /* requested on single cores, each with its own addresses */
	uint64_t count;
	uint64_t time_ns;
	uint64_t last_ns;
	struct snapshot_party first, second;
	bool has_other; /* @first is about another process: */
	uint32_t other;
	const char *explanation; /* of a failed allocation, if asked for; NULL = none */
};

struct snapshot {
	uint32_t refs; /* atomic */
	uint64_t time_ns;
	bool exact; /* every figure in it is */
	struct snapshot_recording recording;
	struct snapshot_moment moment;

	struct snapshot_process *processes;
	size_t process_count, process_capacity;
	struct map
		places; /* the processes by pid and number with that pid; private to snapshot.c */
	struct snapshot_device *devices;
	size_t device_count, device_capacity;
	struct snapshot_buffer *buffers;
	size_t buffer_count, buffer_capacity;
	bool has_next;           /* the buffers are a page, and not the last one: */
	struct page_cursor next; /* where it ends */
	struct snapshot_incident *incidents;
	size_t incident_count, incident_capacity;
	struct snapshot_peak *peaks; /* if asked for; see snapshot-peak.h */
	size_t peak_count, peak_capacity;
	struct snapshot_card *cards;
	size_t card_count, card_capacity;
	struct snapshot_claim *claims;
	size_t claim_count, claim_capacity;
	struct snapshot_driver_memory *driver_memory; /* per process and card */
	size_t driver_memory_count, driver_memory_capacity;
	struct snapshot_left *left;
	size_t left_count, left_capacity;
	size_t closed_regions;   /* tt-metal regions that no source could read */
	size_t regions_left_out; /* of more than are read */
	size_t capacities_refused;
	size_t devices_summed; /* in rows for many */
	size_t devices_old;    /* of them, as of an earlier reading */
	size_t devices_looks;  /* places of books that were read to know the sums */
	const char **notes;
	size_t note_count, note_capacity;
	size_t notes_lost;

	struct pool texts;
};

/* Both count references: threads may share a finished snapshot, and then nobody may change it. */
struct snapshot *snapshot_new(uint64_t time_ns);
struct snapshot *snapshot_ref(struct snapshot *snapshot);
struct snapshot *snapshot_free(struct snapshot *snapshot);

/* For CLEANUP(). */
static inline void snapshot_cleanup(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

/*
 * Finds the process with @identity's pid, start and state, or adds it. A second book of a process
 * is added to what is there. 0 or -ENOMEM.
 */
int snapshot_add_process(struct snapshot *snapshot, const struct snapshot_process *identity,
			 uint32_t *ret_index);

/* One after another, in the order in which they were added. Zeroed but for the pid at first. */
struct snapshot_search {
	uint32_t pid;
	size_t steps; /* private */
};

/* The next process with the pid; NULL if there is no more. */
struct snapshot_process *snapshot_next_process(const struct snapshot *snapshot,
					       struct snapshot_search *search);

/* The first one of that identity, and the first that also lives; NULL = none. */
struct snapshot_process *snapshot_find_process(const struct snapshot *snapshot,
					       struct process_id id);
struct snapshot_process *snapshot_find_living(const struct snapshot *snapshot,
					      struct process_id id);

/* The process's part of @device, added if need be. NULL: no memory. */
struct snapshot_part *snapshot_part(struct snapshot *snapshot, uint32_t process, uint32_t device);

/* Adds the sum of several devices. 0 or -ENOMEM. */
int snapshot_add_sum(struct snapshot *snapshot, uint32_t process, const struct snapshot_part *sum);

/* Adds a part, even if there is one of that number already. NULL: no memory. */
struct snapshot_part *snapshot_add_part(struct snapshot *snapshot, uint32_t process,
					uint32_t device);

/* The first part of that number, NULL if there is none; never a sum. */
const struct snapshot_part *snapshot_find_part(const struct snapshot *snapshot, uint32_t process,
					       uint32_t device);

/* The unique id of the chip that is a device of a process; 0 = not known. */
uint64_t snapshot_part_uid(const struct snapshot *snapshot, uint32_t process, uint32_t device);

/*
 * The device that @process calls @device: from its part, or if it has none yet, as before its first
 * allocation, the only device of that number. @ret_row: index into devices. False: there is none,
 * or there are several.
 */
bool snapshot_find_row(const struct snapshot *snapshot, uint32_t process, uint32_t device,
		       uint32_t *ret_row);

/* Everything a process holds, over its devices and types; sums saturate. */
void snapshot_process_totals(const struct snapshot_process *process, uint64_t *ret_bytes,
			     uint64_t *ret_buffers);

/* Adds one book's counters to a type's totals. */
void snapshot_add_memory(struct snapshot_memory *to, const struct snapshot_memory *more);

/* 0, -ENOMEM, or -ENOBUFS beyond the maximum (which also adds a note). */
int snapshot_add_buffer(struct snapshot *snapshot, const struct snapshot_buffer *buffer);
int snapshot_add_incident(struct snapshot *snapshot, const struct snapshot_incident *incident);
int snapshot_add_card(struct snapshot *snapshot, const struct snapshot_card *card);
int snapshot_add_claim(struct snapshot *snapshot, const struct snapshot_claim *claim);
int snapshot_add_driver_memory(struct snapshot *snapshot,
			       const struct snapshot_driver_memory *memory);
int snapshot_add_left(struct snapshot *snapshot, const struct snapshot_left *left);

/*
 * Whether it is known what all @buffers take, of which @used bytes are in use: where they are not even
 * counted, as in tt-metal's regions, it is not.
 */
static inline bool snapshot_is_occupied(const struct snapshot_occupied *occupied, uint64_t buffers,
					uint64_t used)
{
	return occupied->known == buffers && occupied->rest == 0 && (buffers > 0 || used == 0);
}

/* What a buffer takes in all banks together. False: not known. */
static inline bool snapshot_buffer_occupied(const struct snapshot_buffer *buffer,
					    uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	if (buffer->flags & SNAPSHOT_FLAG_ALIAS)
		return true;
	return buffer->size_per_bank && buffer->banks &&
	       !__builtin_mul_overflow(buffer->size_per_bank, (uint64_t)buffer->banks, ret_bytes);
}

/* Device memory that a row stands for: none if it lies in a buffer that is counted. */
uint64_t snapshot_buffer_bytes(const struct snapshot_buffer *buffer);

/*
 * For leak reports: removes rows without device memory (aliases, the kernels of a program that lie
 * in a buffer) from the list and from the processes' buffer counts. They are not leaks.
 */
void snapshot_drop_empty(struct snapshot *snapshot);

/* Adds a line for users. Never fails: what cannot be kept is counted. */
void snapshot_note(struct snapshot *snapshot, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Text from another process; NULL for none, and if memory runs out. */
const char *snapshot_text(struct snapshot *snapshot, const char *bytes, size_t length);

/* Decides what is counted, merges devices and sums up. 0 or -ENOMEM. */
int snapshot_finish(struct snapshot *snapshot);

enum snapshot_order {
	SNAPSHOT_BY_SIZE = 0,  /* largest first */
	SNAPSHOT_BY_AGE = 1,   /* oldest first */
	SNAPSHOT_BY_PLACE = 2, /* process, device, address */
};

/* Less than 0 if @a comes first. A total order: 0 only for the same buffer. */
int snapshot_compare_buffers(const struct snapshot_buffer *a, const struct snapshot_buffer *b,
			     enum snapshot_order order);

/* Before that, buffers are in the order of processes and devices. */
void snapshot_sort_buffers(struct snapshot *snapshot, enum snapshot_order order);
