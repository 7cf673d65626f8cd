/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * The folders of devices under /proc/driver/ttmem. There is one for each card of the machine, and for
 * each device that a living holder has used: a process that uses every possible number leaves nothing behind.
 */

#include <linux/types.h>

struct holder;
struct proc_dir_entry;
struct seq_file;

/* The files of each folder; the function prints the file for the given device. */
struct folder_file {
	const char *name;
	void (*show)(struct seq_file *seq, u32 device);
};

#define FOLDER_FILES_MAX 4

/* @files: at most FOLDER_FILES_MAX, terminated by one without a name. 0 or -ENOMEM. */
int folder_init(const struct folder_file *files);
void folder_exit(void);

/* The module's folder, which contains all others. */
struct proc_dir_entry *folder_root(void);

/* The holder has used the device. Without memory there is no folder; the next call tries again. */
void folder_use(struct holder *holder, u32 device);

/* The holder has ended. Does not wait. */
void folder_leave(struct holder *holder);
