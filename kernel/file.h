/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * Files of books. They lie in a private file system that nobody can mount, so that each book has an
 * inode: a number that identifies it, a size, an owner, and a way to be opened again by /proc.
 */

#include <linux/types.h>

struct file;
struct ttmem_ioc_attach;
struct ttmem_ioc_book;

/*
 * Makes a book and its file; fills in id, room and fd: a descriptor reserved for the file, which
 * the caller installs once nothing can fail any more. 0 or a negative errno.
 */
int file_new_book(struct ttmem_ioc_book *args, struct file **ret_file);

/* A read-only file of an existing book; fills in fd likewise. 0 or a negative errno. */
int file_attach(struct ttmem_ioc_attach *args, struct file **ret_file);

/* Copies arguments in and checks their common fields, size and flags. 0, -EFAULT, -EINVAL. */
int file_get_args(void *to, const void __user *from, size_t size);

/* Copies the reply out. 0, -EFAULT. */
int file_put_args(void __user *to, const void *from, size_t size);
