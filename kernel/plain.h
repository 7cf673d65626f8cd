/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * Clients without a mapping: one system call for each event, and the kernel keeps what they report.
 * For tools that use the old ioctls; a book is far cheaper and records more.
 */

#include <linux/types.h>

struct holder;
struct plain;
struct ttmem_ioc_track_alloc;
struct ttmem_ioc_track_free;

int plain_init(void);
void plain_exit(void);

/* One for each open of the node. NULL: no memory. */
struct plain *plain_new(void);

/* What it still holds is freed, and counted. */
void plain_free(struct plain *plain);

/*
 * The reply goes to @user before anything is counted, and only if all else succeeded: what cannot
 * be answered has not happened.
 */
int plain_alloc(struct plain *plain, struct ttmem_ioc_track_alloc *args, void __user *user);
int plain_release(struct plain *plain, struct ttmem_ioc_track_free *args, void __user *user);

struct holder *plain_holder(struct plain *plain);
