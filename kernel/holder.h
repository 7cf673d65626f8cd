/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * Who holds device memory: a book, or a client of the plain ioctls. The views under /proc get
 * everything from here, so they need not know which of the two it is.
 */

#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include <uapi/ttmem.h>

struct holder;
struct pid;

/* Counters of one type of memory on one device. Books may contain anything: each is bounded. */
struct holder_memory {
	u64 bytes;
	u64 buffers;
	u64 peak;
	u64 allocs;
	u64 frees;
	u32 bound;    /* enum holder_bound */
	bool is_torn; /* from different moments: the owner kept them from being read together */
};

enum holder_bound {
	HOLDER_EXACT = 0,
	HOLDER_AT_LEAST = 1,
	HOLDER_AT_MOST = 2,
};

#define HOLDER_FIGURE_MAX (1ULL << 62)

/*
 * For everything that is kept for a process: charged to its memory cgroup. Failure is silent and
 * does not invoke the OOM killer: the caller can do without.
 */
#define HOLDER_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/* Called with holder_lock held. None may wait for anything that a process can delay. */
struct holder_ops {
	const char *kind;
	/* Whether both count against the same limit on the number of holders. */
	bool (*is_kin)(struct holder *holder, struct holder *other);
	unsigned int kin_max;
	/* The first device at or after @from that was ever used; TTMEM_UAPI_DEVICES = none. */
	u32 (*next_device)(struct holder *holder, u32 from);
	/* Whether this one was used; cheaper than searching for the next. */
	bool (*uses)(struct holder *holder, u32 device);
	void (*read)(struct holder *holder, u32 device, u32 type, struct holder_memory *ret_memory);
};

struct holder {
	struct list_head link;
	const struct holder_ops *ops;
	u64 id;
	struct pid *pid; /* owned; of the whole process; changes under holder_lock */
	kuid_t uid;
	kuid_t payer;             /* whose share and limits it counts against: from share_payer() */
	char comm[TASK_COMM_LEN]; /* when it was made */
	DECLARE_BITMAP(devices, TTMEM_UAPI_DEVICES); /* whose folders count it; used by folder.c */
};

extern struct mutex holder_lock;     /* protects the list */
extern struct list_head holder_list; /* in the order of ids */

/* When the module is loaded, before there is a holder. */
void holder_start(void);

/* For the calling process; not in the list yet. */
void holder_init(struct holder *holder, const struct holder_ops *ops);
void holder_deinit(struct holder *holder);

/* Adds it to the list. 0, or -EMFILE if there are enough of its kin. */
int holder_add(struct holder *holder);

/* The first in the list whose id is at least @id; NULL = none. With holder_lock held. */
struct holder *holder_from(u64 id);

/* Removes it from every view. */
void holder_remove(struct holder *holder);

/* Its current name, fit for a column of a table: no blanks, no terminal control characters. */
#define HOLDER_NAME_SIZE (TASK_COMM_LEN * 4 + 1)
void holder_name(struct holder *holder, char ret_name[HOLDER_NAME_SIZE]);

/*
 * Whether the process has exited. A plain client then lasts as long as another process has its
 * descriptor, a book as long as another process shares its address space.
 */
bool holder_is_gone(struct holder *holder);

/* Its pid as the caller sees it; 0 = not visible, or gone: the pid may have been reused. */
pid_t holder_pid(struct holder *holder);

/* If its process is gone, the caller, who uses it, takes its place. The paying user stays. */
void holder_adopt(struct holder *holder);

static inline bool holder_is_exact(const struct holder_memory *memory)
{
	return memory->bound == HOLDER_EXACT && !memory->is_torn;
}

/* Sums saturate. */
void holder_add_memory(struct holder_memory *to, const struct holder_memory *more);

/* Over all devices; with holder_lock held, or once it is in no list. */
void holder_sum(struct holder *holder, struct holder_memory ret_memory[TTMEM_UAPI_TYPES]);
