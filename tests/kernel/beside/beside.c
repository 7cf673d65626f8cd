/* SPDX-License-Identifier: GPL-2.0 */

/*
 * In the place of the cards' driver: a folder with the file that docs/kernel-integration.md
 * proposes, made the way it proposes. It can be loaded with and without ttmem.ko, before and after it.
 */

#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

extern void ttmem_show_allocations(struct seq_file *seq, u32 device);

static struct proc_dir_entry *beside_root;

static int beside_show(struct seq_file *seq, void *unused)
{
	typeof(&ttmem_show_allocations) show = symbol_get(ttmem_show_allocations);

	if (!show)
		return 0; /* empty: nobody knows */
	show(seq, (uintptr_t)seq->private);
	symbol_put(ttmem_show_allocations);
	return 0;
}

static int __init beside_init(void)
{
	beside_root = proc_mkdir("driver/beside", NULL);
	if (!beside_root)
		return -ENOMEM;
	if (!proc_create_single_data("20", 0444, beside_root, beside_show, (void *)20)) {
		proc_remove(beside_root);
		return -ENOMEM;
	}
	return 0;
}

static void __exit beside_exit(void)
{
	proc_remove(beside_root);
}

module_init(beside_init);
module_exit(beside_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A test of ttmem.ko");
