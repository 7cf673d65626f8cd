/* SPDX-License-Identifier: GPL-2.0 */

/*
 * In the place of the cards' driver: a node, a list of those who have it open, and a folder with the file
 * that docs/kernel-integration.md proposes, made the way it proposes. It can be loaded with and without
 * ttmem.ko, before and after it. With cards=N there is a PCI bus with so many cards as well.
 */

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

extern void ttmem_show_openers(struct seq_file *seq, u32 device, struct pid *const *openers,
			       size_t count);

struct beside_opener {
	struct list_head link;
	struct pid *pid;
};

static DEFINE_MUTEX(beside_mutex);
static LIST_HEAD(beside_openers);
static struct proc_dir_entry *beside_root;

static int beside_open(struct inode *inode, struct file *file)
{
	struct beside_opener *opener = kzalloc(sizeof(*opener), GFP_KERNEL);

	if (!opener)
		return -ENOMEM;
	opener->pid = get_pid(task_tgid(current));
	mutex_lock(&beside_mutex);
	list_add(&opener->link, &beside_openers);
	mutex_unlock(&beside_mutex);
	file->private_data = opener;
	return 0;
}

static int beside_release(struct inode *inode, struct file *file)
{
	struct beside_opener *opener = file->private_data;

	mutex_lock(&beside_mutex);
	list_del(&opener->link);
	mutex_unlock(&beside_mutex);
	put_pid(opener->pid);
	kfree(opener);
	return 0;
}

/* References to all openers: the table must not be asked for under a mutex that release() takes. */
static struct pid **beside_get_openers(size_t *ret_count)
{
	struct beside_opener *opener;
	struct pid **pids;
	size_t count = 0;

	mutex_lock(&beside_mutex);
	list_for_each_entry(opener, &beside_openers, link) count++;
	pids = kvmalloc_array(count + 1, sizeof(*pids), GFP_KERNEL);
	*ret_count = 0;
	if (pids) {
		list_for_each_entry(opener, &beside_openers, link) pids[(*ret_count)++] =
			get_pid(opener->pid);
	}
	mutex_unlock(&beside_mutex);
	return pids;
}

static int beside_show(struct seq_file *seq, void *unused)
{
	typeof(&ttmem_show_openers) show = symbol_get(ttmem_show_openers);
	struct pid **pids;
	size_t count;

	if (!show)
		return 0; /* empty: nobody knows */
	pids = beside_get_openers(&count);
	if (pids) {
		show(seq, (uintptr_t)seq->private, pids, count);
		while (count > 0)
			put_pid(pids[--count]);
		kvfree(pids);
	}
	symbol_put(ttmem_show_openers);
	return pids ? 0 : -ENOMEM;
}

static const struct file_operations beside_operations = {
	.owner = THIS_MODULE,
	.open = beside_open,
	.release = beside_release,
};

static struct miscdevice beside_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "beside",
	.fops = &beside_operations,
};

#define BESIDE_BUS 0x60 /* that the emulated machine does not have */
#define BESIDE_VENDOR 0x1e52
#define BESIDE_CARD 0x401e
#define BESIDE_CLASS 0x120000 /* a processing accelerator */

static unsigned int beside_cards;
module_param_named(cards, beside_cards, uint, 0444);

static struct pci_bus *beside_bus;
static struct pci_sysdata beside_sysdata = {.node = NUMA_NO_NODE};

/* Registers that say no more than what a card is. */
static int beside_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *ret_value)
{
	u32 value = where < 4    ? BESIDE_CARD << 16 | BESIDE_VENDOR
		    : where < 8  ? 0
		    : where < 12 ? BESIDE_CLASS << 8
				 : 0;

	if (PCI_FUNC(devfn) || PCI_SLOT(devfn) >= beside_cards) {
		*ret_value = ~0U;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	*ret_value = value >> where % 4 * 8;
	return PCIBIOS_SUCCESSFUL;
}

static int beside_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops beside_registers = {.read = beside_read, .write = beside_write};

static void beside_add_cards(void)
{
	LIST_HEAD(resources);

	if (!beside_cards)
		return;
	pci_lock_rescan_remove();
	beside_bus =
		pci_scan_root_bus(NULL, BESIDE_BUS, &beside_registers, &beside_sysdata, &resources);
	pci_unlock_rescan_remove();
	pci_free_resource_list(&resources);
}

static void beside_remove_cards(void)
{
	if (!beside_bus)
		return;
	pci_lock_rescan_remove();
	pci_stop_root_bus(beside_bus);
	pci_remove_root_bus(beside_bus);
	pci_unlock_rescan_remove();
}

static int __init beside_init(void)
{
	int r = -ENOMEM;

	beside_root = proc_mkdir("driver/beside", NULL);
	if (!beside_root)
		return r;
	if (proc_create_single_data("20", 0444, beside_root, beside_show, (void *)20))
		r = misc_register(&beside_device);
	if (r < 0)
		proc_remove(beside_root);
	else
		beside_add_cards();
	return r;
}

static void __exit beside_exit(void)
{
	beside_remove_cards();
	misc_deregister(&beside_device);
	proc_remove(beside_root);
}

module_init(beside_init);
module_exit(beside_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A test of ttmem.ko");
