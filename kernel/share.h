/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * How much memory books and plain clients may have: in total, and per user. Without the second
 * limit one user could take all of the first, and no other user could be tracked any more.
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

/* Exists as long as the user has a holder of either kind; charged to the first one's cgroup. */
struct share {
	struct list_head link;
	kuid_t uid;
	unsigned int holders[SHARE_KINDS];
	atomic_long_t pages;
};

extern struct mutex share_lock;     /* protects list and counts; nothing waits under it */
extern struct list_head share_list; /* in the order of users */

/*
 * Who pays for what the caller makes: its effective user; within a user namespace the user who made
 * it, or who made the outermost of nested ones.
 */
kuid_t share_payer(void);

/* That user's share, with one more holder. NULL: no memory. */
struct share *share_get(kuid_t payer, enum share_kind kind);
void share_put(struct share *share, enum share_kind kind);

/* Charges one more page, for the calling process. False: too many. */
bool share_charge(struct share *share);
void share_refund(struct share *share, unsigned long pages);

/* The first whose uid is at least @uid; NULL = none. With share_lock held. */
struct share *share_from(u64 uid);

/* Bytes, for display: used by all; the limit for all; the limit for one user. */
u64 share_total(void);
u64 share_total_limit(void);
u64 share_user_limit(void);
