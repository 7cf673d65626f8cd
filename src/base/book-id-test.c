/* SPDX-License-Identifier: Apache-2.0 */

/* An inode is one only in its file system. */

#include "base/book-id.h"

#include "base/testing/unit.h"

UNIT(the_same_inode_of_another_device_is_another_book)
{
	const struct stat file = {.st_dev = 5, .st_ino = 7};
	const struct book_id id = book_id_of(&file);

	assert(book_id_equal(id, (struct book_id){5, 7}));
	assert(!book_id_equal(id, (struct book_id){6, 7}));
	assert(!book_id_equal(id, (struct book_id){5, 8}));
}
