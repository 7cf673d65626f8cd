/* SPDX-License-Identifier: Apache-2.0 */

/* The order in which exits are judged, and what may wait. */

#include "daemon/recorder/exit-queue.h"

#include <errno.h>

#include "base/testing/unit.h"

#define MIB (UINT64_C(1) << 20)

static char names[2 * EXIT_QUEUE_BOOKS_MAX]; /* their addresses */

static struct exit_queue_book book(size_t name, uint32_t user, uint64_t bytes)
{
	return (struct exit_queue_book){.context = &names[name], .user = user, .bytes = bytes};
}

static int put(struct exit_queue *queue, size_t name, uint32_t user, uint64_t bytes)
{
	const struct exit_queue_book one = book(name, user, bytes);

	return exit_queue_put(queue, &one);
}

static int put_in(struct exit_queue *queue, size_t name, uint64_t bytes, ino_t group,
		  uint64_t limit)
{
	struct exit_queue_book one = book(name, 1000 + (uint32_t)name, bytes);

	one.group = (struct memory_cgroup){.device = 1, .inode = group, .limit = limit};
	return exit_queue_put(queue, &one);
}

static size_t take(struct exit_queue *queue)
{
	const char *name = exit_queue_take(queue);

	assert(name);
	return (size_t)(name - names);
}

UNIT(users_are_served_in_turn_however_many_one_has)
{
	struct exit_queue queue = EXIT_QUEUE_NULL;

	for (size_t i = 0; i < 100; i++)
		assert(put(&queue, i, 1000, MIB) == 0);
	assert(take(&queue) == 0); /* it is being read when the others come */
	assert(put(&queue, 100, 1001, MIB) == 0 && put(&queue, 101, 1002, MIB) == 0);
	assert(put(&queue, 102, 1001, MIB) == 0);
	assert(take(&queue) == 100);
	assert(take(&queue) == 101);
	assert(take(&queue) == 1);
	assert(take(&queue) == 102);
	assert(take(&queue) == 2);
	assert(take(&queue) == 3);
	exit_queue_deinit(&queue);
}

UNIT(a_user_who_ends_one_process_at_a_time_is_not_always_first)
{
	static const uint32_t ones[] = {999, 1001};

	for (size_t i = 0; i < 2; i++) {
		struct exit_queue queue = EXIT_QUEUE_NULL;
		size_t others = 0;

		for (size_t n = 1; n < 10; n++)
			assert(put(&queue, n, 1000, MIB) == 0);
		assert(put(&queue, 0, ones[i], MIB) == 0);
		for (size_t n = 0; n < 19; n++) {
			if (take(&queue) > 0) {
				others++;
				continue;
			}
			exit_queue_remove(&queue, &names[0]);
			assert(put(&queue, 0, ones[i], MIB) == 0);
		}
		assert(others == 9);
		exit_queue_deinit(&queue);
	}
}

UNIT(what_was_read_counts_until_it_is_let_go)
{
	struct exit_queue queue = EXIT_QUEUE_NULL;
	size_t n = 0;

	while (put(&queue, n, 1000, MIB) == 0)
		n++;
	assert(n == EXIT_QUEUE_BOOKS_MAX / 2 && queue.count == n && queue.bytes.used == n * MIB);
	assert(take(&queue) == 0 && put(&queue, n, 1000, MIB) == -ENOSPC);
	assert(exit_queue_remove(&queue, &names[0]) == &names[0]);
	assert(!exit_queue_remove(&queue, &names[0]));
	assert(put(&queue, n, 1000, MIB) == 0 && put(&queue, n + 1, 1000, MIB) == -ENOSPC);
	/* Another user has a share of what is left. */
	assert(put(&queue, n + 2, 1001, MIB) == 0 && put(&queue, n + 3, 1001, MIB) == 0);
	for (size_t i = 1; i <= n + 3; i++)
		exit_queue_remove(&queue, &names[i]);
	assert(queue.count == 0 && queue.bytes.used == 0 && queue.books.count == 0);
	assert(!exit_queue_take(&queue));
	exit_queue_deinit(&queue);
}

UNIT(bytes_of_a_user_are_bounded_and_one_book_may_always_wait)
{
	struct exit_queue queue = EXIT_QUEUE_NULL;

	assert(put(&queue, 0, 1000, 2 * EXIT_QUEUE_BYTES_MAX) == 0);
	assert(put(&queue, 1, 1000, 1) == -ENOSPC);
	assert(put(&queue, 2, 1001, 1) == 0 && put(&queue, 3, 1001, 1) == -ENOSPC);
	exit_queue_remove(&queue, &names[0]);
	assert(put(&queue, 0, 1000, EXIT_QUEUE_BYTES_MAX / 4) == 0);
	assert(put(&queue, 1, 1000, EXIT_QUEUE_BYTES_MAX / 2) == -ENOSPC);
	assert(put(&queue, 3, 1001, 1) == 0);
	exit_queue_deinit(&queue);
}

UNIT(books_of_a_user_are_bounded_however_small_they_are)
{
	struct exit_queue queue = EXIT_QUEUE_NULL;
	size_t n = 0;

	while (n < EXIT_QUEUE_BOOKS_MAX && put(&queue, n, 1000, 1) == 0)
		n++;
	assert(n == EXIT_QUEUE_BOOKS_MAX / 2);
	exit_queue_deinit(&queue);
}

UNIT(a_memory_group_has_the_larger_of_eight_mib_and_a_sixteenth)
{
	struct exit_queue queue = EXIT_QUEUE_NULL;

	/* 64 MiB: a sixteenth is less than 8 MiB. The users differ: their shares are not full. */
	assert(put_in(&queue, 0, 5 * MIB, 7, 64 * MIB) == 0);
	assert(put_in(&queue, 1, 3 * MIB + 1, 7, 64 * MIB) == -ENOSPC);
	assert(put_in(&queue, 1, 3 * MIB, 7, 64 * MIB) == 0);
	assert(put_in(&queue, 2, 1, 7, 64 * MIB) == -ENOSPC);
	/* Another group, one without a limit, and a larger one. */
	assert(put_in(&queue, 2, 5 * MIB, 8, 64 * MIB) == 0);
	assert(put_in(&queue, 3, 50 * MIB, 9, 0) == 0 && put_in(&queue, 4, 50 * MIB, 9, 0) == 0);
	assert(put_in(&queue, 5, 5 * MIB, 10, 160 * MIB) == 0);
	assert(put_in(&queue, 6, 5 * MIB + 1, 10, 160 * MIB) == -ENOSPC);
	assert(put_in(&queue, 6, 5 * MIB, 10, 160 * MIB) == 0);
	/* What is read still counts, until it is let go. */
	assert(take(&queue) == 0 && put_in(&queue, 7, 1, 7, 64 * MIB) == -ENOSPC);
	exit_queue_remove(&queue, &names[0]);
	assert(put_in(&queue, 7, 5 * MIB, 7, 64 * MIB) == 0);
	exit_queue_deinit(&queue);
}

UNIT(a_book_that_is_larger_than_may_wait_is_the_first_of_its_user)
{
	struct exit_queue queue = EXIT_QUEUE_NULL;
	struct exit_queue_book large = book(2, 1000, 20 * MIB);

	large.group = (struct memory_cgroup){.device = 1, .inode = 7, .limit = 64 * MIB};
	assert(put(&queue, 0, 1000, MIB) == 0 && put(&queue, 1, 1000, MIB) == 0);
	assert(exit_queue_put(&queue, &large) == 0);
	assert(put_in(&queue, 3, 1, 7, 64 * MIB) == -ENOSPC);
	assert(take(&queue) == 2);
	assert(take(&queue) == 0);
	assert(take(&queue) == 1);
	exit_queue_deinit(&queue);
}
