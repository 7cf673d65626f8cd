/* SPDX-License-Identifier: GPL-2.0 */

/*
 * A folder is removed when no holder uses its device and no file in it is open. Those of the cards
 * stay, so that the files of an idle card say that it is idle. The cards are counted on the PCI bus
 * when the module is loaded, with or without their driver. Applications number them from 0.
 *
 * proc_remove() waits for all readers, and a reader can be made to take forever: its buffer may lie
 * in memory that another process has to provide. So files are counted as they are opened and
 * closed. A folder without open files has no readers, and once it is marked no file in it can be
 * opened: removing it then takes only a moment, whatever users do, and others may wait for that.
 * Whoever keeps a file open keeps its folder, at the price of a descriptor.
 *
 * A work item removes it: an exiting process does not wait, and a file cannot be removed by its own
 * close.
 */

#include "kernel/folder.h"

#include <linux/bitmap.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include "kernel/holder.h"

#define FOLDER_ROOT "driver/ttmem"
#define FOLDER_VENDOR 0x1e52 /* Tenstorrent */

static int cards = -1;
module_param_named(cards, cards, int, 0444);
MODULE_PARM_DESC(cards, "devices that always have a folder; -1: as many as there are cards");

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 17, 0)
#define pde_data PDE_DATA
#endif

struct folder {
	struct proc_dir_entry *entry; /* under folder_making */
	unsigned int users; /* this and all that follow under folder_lock: holders, and a card */
	unsigned int files; /* open ones */
	bool is_open;       /* all files are there, and may be opened */
};

static void folder_tidy(struct work_struct *work);

static const struct folder_file *folder_files;
static struct proc_dir_entry *folder_top; /* under folder_making once others exist */
static struct folder folder_devices[TTMEM_UAPI_DEVICES];
static DEFINE_MUTEX(folder_making);  /* held while folders are made and removed */
static DEFINE_SPINLOCK(folder_lock); /* the only lock that opening and closing a file takes */
static DECLARE_WORK(folder_work, folder_tidy);

/* A file's data: its device, and its index among the files. */
static void *folder_data(u32 device, u32 file)
{
	return (void *)(uintptr_t)(device * FOLDER_FILES_MAX + file);
}

static u32 folder_device_of(const struct inode *inode)
{
	return (uintptr_t)pde_data(inode) / FOLDER_FILES_MAX;
}

static int folder_show(struct seq_file *seq, void *unused)
{
	uintptr_t data = (uintptr_t)seq->private;

	folder_files[data % FOLDER_FILES_MAX].show(seq, data / FOLDER_FILES_MAX);
	return 0;
}

/* Decrements @count; the last decrement schedules the work. */
static void folder_less(struct folder *folder, unsigned int *count)
{
	bool is_idle;

	spin_lock(&folder_lock);
	(*count)--;
	is_idle = !folder->users && !folder->files;
	spin_unlock(&folder_lock);
	if (is_idle)
		schedule_work(&folder_work);
}

static int folder_open(struct inode *inode, struct file *file)
{
	struct folder *folder = &folder_devices[folder_device_of(inode)];
	bool is_open;
	int r;

	spin_lock(&folder_lock);
	is_open = folder->is_open;
	folder->files += is_open;
	spin_unlock(&folder_lock);
	if (!is_open)
		return -ENOENT;
	r = single_open(file, folder_show, pde_data(inode));
	if (r < 0)
		folder_less(folder, &folder->files);
	return r;
}

static int folder_release(struct inode *inode, struct file *file)
{
	struct folder *folder = &folder_devices[folder_device_of(inode)];
	int r = single_release(inode, file);

	folder_less(folder, &folder->files);
	return r;
}

static const struct proc_ops folder_operations = {
	.proc_open = folder_open,
	.proc_read_iter = seq_read_iter,
	.proc_lseek = seq_lseek,
	.proc_release = folder_release,
};

static struct proc_dir_entry *folder_make(u32 device)
{
	struct proc_dir_entry *entry;
	char name[12];
	u32 i;

	snprintf(name, sizeof(name), "%u", device);
	entry = proc_mkdir(name, folder_top);
	for (i = 0; entry && folder_files[i].name; i++) {
		if (!proc_create_data(folder_files[i].name, 0444, entry, &folder_operations,
				      folder_data(device, i))) {
			proc_remove(entry); /* no file was ever opened */
			entry = NULL;
		}
	}
	return entry;
}

/* With folder_making held, for one that is counted. */
static void folder_open_device(struct folder *folder, u32 device)
{
	if (!folder->entry)
		folder->entry = folder_make(device);
	spin_lock(&folder_lock);
	WRITE_ONCE(folder->is_open, folder->entry != NULL);
	spin_unlock(&folder_lock);
}

void folder_use(struct holder *holder, u32 device)
{
	struct folder *folder = &folder_devices[device];

	/* It stays as long as we are counted. */
	if (test_bit(device, holder->devices) && READ_ONCE(folder->is_open))
		return;
	mutex_lock(&folder_making);
	spin_lock(&folder_lock);
	if (!test_and_set_bit(device, holder->devices))
		folder->users++;
	spin_unlock(&folder_lock);
	folder_open_device(folder, device);
	mutex_unlock(&folder_making);
}

void folder_leave(struct holder *holder)
{
	u32 device;

	for_each_set_bit(device, holder->devices, TTMEM_UAPI_DEVICES)
	{
		struct folder *folder = &folder_devices[device];

		folder_less(folder, &folder->users);
	}
	bitmap_zero(holder->devices, TTMEM_UAPI_DEVICES);
}

/* Whether it is unused; if so, it can no longer be used. */
static bool folder_close(struct folder *folder)
{
	bool is_idle;

	spin_lock(&folder_lock);
	is_idle = !folder->users && !folder->files;
	if (is_idle)
		WRITE_ONCE(folder->is_open, false);
	spin_unlock(&folder_lock);
	return is_idle;
}

static void folder_tidy(struct work_struct *work)
{
	u32 device;

	for (device = 0; device < TTMEM_UAPI_DEVICES; device++) {
		struct folder *folder = &folder_devices[device];

		mutex_lock(&folder_making);
		if (folder_top && folder->entry && folder_close(folder)) {
			proc_remove(folder->entry);
			folder->entry = NULL;
		}
		mutex_unlock(&folder_making);
		cond_resched();
	}
}

struct proc_dir_entry *folder_root(void)
{
	return folder_top;
}

static unsigned int folder_count_cards(void)
{
	struct pci_dev *card = NULL;
	unsigned int count = 0;

	while ((card = pci_get_device(FOLDER_VENDOR, PCI_ANY_ID, card)))
		count++;
	return count;
}

int folder_init(const struct folder_file *files)
{
	unsigned int count = cards < 0 ? folder_count_cards() : cards;
	u32 device;

	folder_files = files;
	folder_top = proc_mkdir(FOLDER_ROOT, NULL);
	if (!folder_top)
		return -ENOMEM;
	mutex_lock(&folder_making);
	for (device = 0; device < count && device < TTMEM_UAPI_DEVICES; device++) {
		folder_devices[device].users++; /* it has no files yet */
		folder_open_device(&folder_devices[device], device);
	}
	mutex_unlock(&folder_making);
	return 0;
}

/* All are removed with the root. That closes open files, which may schedule the work once more. */
void folder_exit(void)
{
	struct proc_dir_entry *top = folder_top;

	mutex_lock(&folder_making);
	folder_top = NULL;
	mutex_unlock(&folder_making);
	proc_remove(top);
	cancel_work_sync(&folder_work);
}
