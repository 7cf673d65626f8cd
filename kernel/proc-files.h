/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/* What everybody may see: files under /proc/driver/ttmem, and the fdinfo of our descriptors. */

#include <linux/types.h>

struct holder;
struct seq_file;

int view_init(void);
void view_exit(void);

/* A process that has exited holds nothing any more, whatever can still be read of it. */
void view_fdinfo(struct seq_file *seq, struct holder *holder, bool has_ended);

/*
 * Exported: the table of one device, for the device driver's own folder under /proc. See
 * docs/kernel-integration.md.
 */
void ttmem_show_allocations(struct seq_file *seq, u32 device);
