/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * How much memory books and plain clients may have: all of them together, and those of one user. Without the second
 * bound one user could take all of the first, and nobody else's process would be tracked any more.
 */

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/uidgid.h>

enum share_kind {
	SHARE_BOOK = 0,
	SHARE_CLIENT = 1,
	SHARE_KINDS,
};

/* There as long as the user has one of either, and charged to the same memory cgroup as the first one. */
struct thread_model {
	struct list_head link;
	kuid_t uid;
	unsigned int holders[SHARE_KINDS];
	atomic_long_t pages;
};

extern struct mutex share_lock;     /* protects list and counts; nothing waits under it */
extern struct list_head share_list; /* in the order of users */

/*
 * Who pays for what the caller makes: its effective user; within a user namespace who made that, or the outermost of
 * those that lie in each other.
 */
kuid_t share_payer(void);

/* That user's, with one holder more. NULL: no memory. */
struct thread_model *share_get(kuid_t payer, enum share_kind kind);
void share_put(struct thread_model *share, enum share_kind kind);

/* One page more, by the calling process. False: too many. */
bool share_charge(struct thread_model *share);
void share_refund(struct thread_model *share, unsigned long pages);

/* The first whose user's number is not below; NULL = none. With share_lock held. */
struct thread_model *share_from(u64 uid);

/* Bytes, for who shows it: that all have; that they may have; that those of one user may have. */
u64 share_total(void);
u64 share_total_limit(void);
u64 share_user_limit(void);
