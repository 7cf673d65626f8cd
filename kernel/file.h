/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * Files of books. They lie in a file system of their own that nobody can mount, so that each book has an
 * inode: a number that tells it from others, a size, an owner, and a way to be opened again through /proc.
 */

#include <linux/types.h>

struct file;
struct ttmem_ioc_attach;
struct ttmem_ioc_book;

/*
 * Makes a book and its file; fills in id, room and fd: a number that is kept for the file, which the caller
 * installs once nothing can fail any more. 0 or a negative errno.
 */
int file_new_book(struct ttmem_ioc_book *args, struct file **ret_file);

/* A file for reading of a book that is there; fills in fd likewise. 0 or a negative errno. */
int file_attach(struct ttmem_ioc_attach *args, struct file **ret_file);

/* Copies arguments in and checks what all of them have in common: size and flags. 0, -EFAULT, -EINVAL. */
int file_get_args(void *to, const void __user *from, size_t size);

/* The answer. 0, -EFAULT. */
int file_put_args(void __user *to, const void *from, size_t size);
