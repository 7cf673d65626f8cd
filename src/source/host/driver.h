/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The driver's files: which cards there are and their state (/sys/class/tenstorrent), and who has
 * them open (/proc/driver/tenstorrent). A device itself is never opened. Every file may be missing:
 * drivers and firmwares differ, and a missing value is unknown.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pid_cache;
struct proc;
struct snapshot;

#define DRIVER_PIDS_MAX 4096u /* of one card; the rest is left out, with a note */

/* TTMEM_SYS_ROOT, else /sys. */
const char *driver_sys_root(void);

/*
 * Adds the cards. Returns 0 or -ENOMEM. @ret_complete: false if some may be missing, as for lack of
 * descriptors.
 */
int driver_collect_cards(struct snapshot *snapshot, bool *ret_complete);

/* Adds who has them open; to be called after the cards were added. Returns 0 or -ENOMEM. */
int driver_collect_pids(struct pid_cache *pid_cache, struct snapshot *snapshot);

/*
 * Reads the openers of one card: how many there are, of which at most DRIVER_PIDS_MAX are filled in, and
 * how many are outside of our pid namespace. Returns 0 or -ENOMEM.
 */
int driver_read_pids(const struct proc *proc, uint32_t number, uint32_t ret_pids[DRIVER_PIDS_MAX],
		     size_t *ret_count, size_t *ret_outside);

/*
 * Parses the pids of a text, one per line; other lines are ignored. Returns how many there are, and
 * at most @max of them in @ret_pids.
 */
size_t driver_parse_pids(const char *text, uint32_t *ret_pids, size_t max);

/* How many lines are 0: descriptors of processes that our pid namespace does not have. */
size_t driver_count_outside(const char *text);
