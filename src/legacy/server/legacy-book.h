/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A book that the daemon keeps for a process that speaks the old protocol and so cannot keep one
 * itself: a sealed memory file like the library's, with a writer over it, and the same file opened
 * for reading as by everybody else. Users share the memory of all such books (base/quota.h).
 */

#include <stdint.h>

struct book_header;
struct legacy_book;
struct proc;
struct proc_facts;
struct quota;
struct scan_book;
struct writer;

/* The maximum size of a file: a million buffers. It is sparse. */
#define LEGACY_BOOK_SIZE (UINT64_C(96) << 20)
#define LEGACY_BOOK_RING 4096u /* events of history per device: 256 KiB */

/*
 * A book for the process that @owner describes, made by user @uid as far as visibility goes. @old: the
 * header of a book that this one goes on from, or NULL. 0 or a negative errno. @memory must outlive
 * the book; @ret_book is the caller's.
 */
int legacy_book_new(struct legacy_book **ret_keep, struct quota *memory, const struct proc *proc,
		    const struct proc_facts *owner, const struct book_header *old,
		    struct scan_book **ret_book);
struct legacy_book *legacy_book_free(struct legacy_book *keep);

struct writer *legacy_book_writer(struct legacy_book *keep);

/* What the old book had is in it: from now on its user's share is the limit. */
void legacy_book_adopted(struct legacy_book *keep);
