/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * What exits with memory still allocated. For a book this is one line in the kernel log,
 * rate-limited per user. For a plain client it is only counted, because anybody can open and close
 * the node any number of times and nobody may fill the log that way.
 */

#include <linux/types.h>

struct holder;
struct seq_file;

void leak_init(void);

/* The holder is in no view any more, and its figures no longer change. */
void leak_log(struct holder *holder);
void leak_count(struct holder *holder);

/* A line for one device, and lines for all devices. */
void leak_show_device(struct seq_file *seq, u32 device);
void leak_show(struct seq_file *seq);
