/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * What ends with something left. A book's end is told by a line in the kernel's log, of which one user gets only so
 * many; a plain client's is only counted, because anybody can open and close the node as often as he likes and
 * nobody may fill the log that way.
 */

#include <linux/types.h>

struct holder;
struct seq_file;

void leak_init(void);

/* The holder is in no view any more, and nobody changes its figures. */
void leak_log(struct holder *holder);
void leak_count(struct holder *holder);

/* A line for one device, and lines for all that there are. */
void leak_show_device(struct seq_file *seq, u32 device);
void leak_show(struct seq_file *seq);
