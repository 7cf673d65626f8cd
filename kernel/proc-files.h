/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/* What everybody may see: files under /proc/driver/ttmem, and the fdinfo of our descriptors. */

#include <linux/types.h>

struct holder;
struct pid;
struct seq_file;

int view_init(void);
void view_exit(void);

/* A process that has exited holds nothing any more, whatever can still be read of it. */
void view_fdinfo(struct seq_file *seq, struct holder *holder, bool has_ended);

/*
 * Exported: the table of one device, for the device driver's own folder under /proc, with only the
 * processes that the driver names: those that have its node open. They are compared as thread group
 * leaders (task_tgid()); the caller holds a reference on each. See docs/kernel-integration.md.
 */
void ttmem_show_openers(struct seq_file *seq, u32 device, struct pid *const *openers, size_t count);
