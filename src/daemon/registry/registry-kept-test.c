/* SPDX-License-Identifier: Apache-2.0 */

/* When the process of a book that another program keeps has ended, and what becomes of its book. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "book/testing/book-testing.h"
#include "daemon/registry/registry-private.h"
#include "source/proc/proc.h"

#define WORLD_EVENTS 16

/* What the registry has told: "+PID", "-PID" at the end, "=PID" when another book took its place. */
struct world {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct testing_book books[4];
	size_t count;
	char told[WORLD_EVENTS * 12];
	const struct tracked *added;
};

static const char one, other; /* links */

static void told(struct world *world, char what, const struct tracked *tracked)
{
	size_t at = strlen(world->told);

	assert(at + 13 < sizeof(world->told));
	(void)snprintf(world->told + at, sizeof(world->told) - at, "%c%u", what,
		       tracked->process.pid);
}

static void added(void *context, struct tracked *tracked)
{
	struct world *world = context;

	world->added = tracked;
	told(world, '+', tracked);
}

static void ended(void *context, struct tracked *tracked)
{
	assert(tracked_has_ended(tracked));
	told(context, '-', tracked);
}

static void replaced(void *context, struct tracked *tracked)
{
	assert(!tracked_has_ended(tracked));
	told(context, '=', tracked);
}

static void world_open(struct world *world)
{
	struct registry_config config = {
		.hooks = {.context = world, .added = added, .ended = ended, .replaced = replaced}};

	*world = (struct world){0};
	assert(loop_new(&world->loop) == 0);
	assert(worker_new(&world->work,
			  &(struct worker_config){.name = "work", .loop = world->loop}) == 0);
	config.loop = world->loop;
	config.work = world->work;
	assert(registry_new(&world->registry, &config) == 0);
}

static void world_close(struct world *world)
{
	worker_free(world->work);
	registry_free(world->registry);
	for (size_t i = 0; i < world->count; i++)
		testing_book_deinit(&world->books[i]);
	loop_free(world->loop);
}

static int reopen(int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	return fd;
}

static struct testing_book *world_book(struct world *world, uint32_t source)
{
	struct testing_book *book = &world->books[world->count++];

	testing_book_init(book, TESTING_SIZE, BOOK_RING_MIN);
	testing_book_write(book);
	book->writer->header->source = source;
	return book;
}

/* Of a process whose end is played by a descriptor that becomes readable. */
static struct registry_offer offer_of(const struct testing_book *book, uint32_t pid, int pid_fd,
				      const void *link)
{
	struct registry_offer offer = {.pid_fd = -1, .link = link};

	assert(scan_book_new_consume(&offer.book, reopen(book->fd)) == 0);
	offer.book->owner = (struct proc_facts){.id = {pid, 77}, .real_uid = 4321};
	offer.book->uid = 4321;
	if (pid_fd >= 0)
		offer.pid_fd = fcntl(pid_fd, F_DUPFD_CLOEXEC, 0);
	return offer;
}

static int keep(struct world *world, const struct testing_book *book, uint32_t pid, int pid_fd,
		const void *link)
{
	struct registry_offer offer = offer_of(book, pid, pid_fd, link);

	return registry_keep_consume(world->registry, &offer);
}

static int process_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert(fd >= 0);
	return fd;
}

static void process_end(int fd)
{
	assert(eventfd_write(fd, 1) == 0);
}

/* Handles what is there; nothing may be left over that is there again and again. */
static void settle(struct world *world)
{
	for (int i = 0; i < 3; i++)
		assert(loop_turn(world->loop, 0) == 0);
}

static bool says(const struct world *world, const char *what)
{
	struct registry_counts counts;

	registry_counts(world->registry, &counts);
	if (strcmp(world->told, what) == 0)
		return true;
	(void)fprintf(stderr, "told: %s\n", world->told);
	return false;
}

static struct book_id id_of(const struct world *world)
{
	return world->added->id;
}

UNIT(a_process_has_ended_when_it_and_its_keeper_say_so)
{
	static const bool keeper_first[] = {false, true};

	for (size_t i = 0; i < 2; i++) {
		struct world world;
		int process = process_new();

		world_open(&world);
		assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &one) == 0);
		assert(world.added->maker == 4321 && world.added->link == &one);
		if (keeper_first[i])
			registry_closed(world.registry, &one, id_of(&world));
		else
			process_end(process);
		settle(&world);
		assert(says(&world, "+5"));
		if (keeper_first[i])
			process_end(process);
		else
			registry_closed(world.registry, &one, id_of(&world));
		settle(&world);
		assert(says(&world, "+5-5") && close(process) == 0);
		world_close(&world);
	}
}

/* Else the loop would find its pidfd readable in every turn. */
UNIT(nobody_watches_a_process_whose_keeper_is_not_done)
{
	struct world world;
	int process = process_new();
	struct registry_entry *entry;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &one) == 0);
	entry = registry_find(world.registry, id_of(&world));
	assert(entry->pid_fd.added);
	process_end(process);
	settle(&world);
	assert(!entry->pid_fd.added && entry->pid_fd.fd >= 0 && close(process) == 0);
	world_close(&world);
}

/* A link is gone, and its program does not come back in time. */
static void lose(struct world *world, const void *link)
{
	registry_unlink(world->registry, link);
	for (size_t i = world->registry->count; i > 0; i--) {
		struct loop_timer *patience = &world->registry->entries[i - 1]->patience;

		if (patience->place == 0)
			continue;
		assert(patience->due_ns - loop_now(world->loop) <= REGISTRY_PATIENCE_NS);
		loop_cancel(world->loop, patience);
		patience->fire(patience);
	}
}

UNIT(a_keeper_that_comes_back_goes_on_even_if_the_process_has_ended)
{
	int process = process_new();
	struct testing_book *book;
	struct world world;

	world_open(&world);
	book = world_book(&world, BOOK_SOURCE_SOCKET);
	assert(keep(&world, book, 5, process, &one) == 0);
	registry_unlink(world.registry, &one);
	process_end(process);
	settle(&world);
	assert(says(&world, "+5") && keep(&world, book, 5, process, &other) == 0);
	settle(&world);
	assert(says(&world, "+5"));
	registry_closed(world.registry, &other, id_of(&world));
	assert(says(&world, "+5-5") && close(process) == 0);
	world_close(&world);
}

UNIT(the_end_of_a_link_is_the_keepers_word_for_all_its_books)
{
	int first = process_new(), second = process_new(), third = process_new();
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, first, &one) == 0);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 6, second, &one) == 0);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 7, third, &other) == 0);
	process_end(first);
	process_end(third);
	settle(&world);
	assert(says(&world, "+5+6+7"));
	lose(&world, &one);
	settle(&world);
	assert(says(&world, "+5+6+7-5"));
	process_end(second);
	settle(&world);
	assert(says(&world, "+5+6+7-5-6"));
	assert(close(first) == 0 && close(second) == 0 && close(third) == 0);
	world_close(&world);
}

UNIT(only_its_own_link_closes_a_book)
{
	int process = process_new();
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &one) == 0);
	process_end(process);
	settle(&world);
	registry_closed(world.registry, &other, id_of(&world));
	registry_closed(world.registry, &one, (struct book_id){1, 1});
	lose(&world, &other);
	assert(says(&world, "+5") && close(process) == 0);
	world_close(&world);
}

UNIT(a_process_that_has_ended_already_waits_for_its_keeper)
{
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, -1, &one) == 0);
	settle(&world);
	assert(says(&world, "+5"));
	registry_closed(world.registry, &one, id_of(&world));
	assert(says(&world, "+5-5"));
	world_close(&world);
}

UNIT(a_book_that_is_offered_again_belongs_to_the_latest_link)
{
	int process = process_new();
	struct testing_book *book;
	struct world world;

	world_open(&world);
	book = world_book(&world, BOOK_SOURCE_SOCKET);
	assert(keep(&world, book, 5, process, &one) == 0);
	registry_closed(world.registry, &one, id_of(&world));
	assert(keep(&world, book, 5, process, &other) == 0 && world.added->link == &other);
	process_end(process);
	lose(&world, &one);
	settle(&world);
	assert(says(&world, "+5"));
	lose(&world, &other);
	assert(says(&world, "+5-5"));
	/* It was judged: nothing is told again. */
	assert(keep(&world, book, 5, process, &one) == -EEXIST && says(&world, "+5-5"));
	assert(close(process) == 0);
	world_close(&world);
}

UNIT(what_continues_a_book_takes_its_place_without_an_end)
{
	int process = process_new();
	struct registry_counts counts;
	struct registry_offer offer;
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &one) == 0);
	assert(!world.added->is_older);
	lose(&world, &one);
	offer = offer_of(world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &other);
	offer.old = id_of(&world);
	assert(registry_keep_consume(world.registry, &offer) == 0);
	assert(says(&world, "+5+5=5") && !registry_find(world.registry, offer.old));
	assert(world.added->is_older); /* what it has is not allocated now */
	registry_counts(world.registry, &counts);
	assert(counts.processes == 1 && counts.ended == 0 && counts.refused == 0);
	process_end(process);
	settle(&world);
	lose(&world, &other);
	assert(says(&world, "+5+5=5-5") && close(process) == 0);
	/* Of the old book an end was never told: it could be added anew. */
	assert(!registry_was_judged(world.registry, offer.old));
	world_close(&world);
}

UNIT(a_book_whose_end_was_told_is_not_continued)
{
	struct registry_offer offer;
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, -1, &one) == 0);
	offer = offer_of(world_book(&world, BOOK_SOURCE_SOCKET), 5, -1, &other);
	offer.old = id_of(&world);
	lose(&world, &one);
	assert(registry_keep_consume(world.registry, &offer) == -EEXIST && says(&world, "+5-5"));
	world_close(&world);
}

UNIT(a_book_of_another_process_is_not_replaced)
{
	int process = process_new();
	struct registry_counts counts;
	struct registry_offer offer;
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &one) == 0);
	offer = offer_of(world_book(&world, BOOK_SOURCE_SOCKET), 6, process, &one);
	offer.old = id_of(&world);
	assert(registry_keep_consume(world.registry, &offer) == -EPERM && says(&world, "+5"));
	registry_counts(world.registry, &counts);
	assert(counts.processes == 1 && counts.refused == 1 && close(process) == 0);
	world_close(&world);
}

UNIT(the_book_of_a_library_is_neither_kept_nor_taken)
{
	struct accept_peer *peer = calloc(1, sizeof(*peer));
	struct testing_book *library;
	struct registry_offer offer;
	struct world world;

	world_open(&world);
	library = world_book(&world, BOOK_SOURCE_LIBRARY);
	assert(keep(&world, library, 5, -1, &one) == -EPERM && says(&world, ""));
	/* Nor does an offer of one that is kept come the library's way. */
	offer = offer_of(world_book(&world, BOOK_SOURCE_SOCKET), 5, -1, NULL);
	assert(peer);
	*peer = (struct accept_peer){.fd = -1, .pid_fd = -1, .book = offer.book};
	assert(registry_add_peer_consume(world.registry, peer) == -EPERM && says(&world, ""));
	/* A known one stays its owner's. */
	offer = offer_of(library, 5, -1, NULL);
	assert(registry_add_consume(world.registry, offer.book, -1, NULL, NULL) == 0);
	library->writer->header->source = BOOK_SOURCE_SOCKET;
	assert(keep(&world, library, 5, -1, &one) == -EPERM && says(&world, "+5"));
	assert(!world.added->link);
	world_close(&world);
}

UNIT(a_process_has_room_for_a_few_kept_books_and_one_that_goes_makes_some)
{
	struct testing_book book;
	struct registry_offer offer;
	struct world world;
	struct registry_counts counts;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, -1, &one) == 0);
	for (int i = 1; i < 16; i++) {
		testing_book_init(&book, TESTING_SIZE, BOOK_RING_MIN);
		testing_book_write(&book);
		book.writer->header->source = BOOK_SOURCE_SOCKET;
		assert(keep(&world, &book, 5, -1, &one) == 0);
		testing_book_deinit(&book);
	}
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, -1, &one) == -ENOSPC);
	offer = offer_of(&world.books[1], 5, -1, &one);
	offer.old = id_of(&world);
	assert(registry_keep_consume(world.registry, &offer) == 0);
	registry_counts(world.registry, &counts);
	assert(counts.processes == 16 && counts.refused == 1);
	world_close(&world);
}

/* A child that has ended and was waited for; its start time. */
static struct process_id ended_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return (struct process_id){(uint32_t)pid, 1};
}

static struct registry_entry *restore(struct world *world, struct process_id process)
{
	const struct testing_book *book = world_book(world, BOOK_SOURCE_SOCKET);

	book->writer->header->uid = 4321;
	assert(registry_restore_consume(world->registry, reopen(book->fd), process) == 0);
	return registry_find(world->registry, id_of(world));
}

UNIT(a_restored_book_of_the_dead_waits_for_its_keeper)
{
	struct process_id process = ended_process();
	struct registry_entry *entry;
	struct world world;

	world_open(&world);
	entry = restore(&world, process);
	settle(&world);
	assert(entry && entry->patience.place != 0 && world.added->maker == 4321);
	assert(entry->patience.due_ns - loop_now(world.loop) <= REGISTRY_PATIENCE_NS);
	/* Nobody comes. */
	loop_cancel(world.loop, &entry->patience);
	entry->patience.fire(&entry->patience);
	assert(strchr(world.told, '-'));
	world_close(&world);
}

UNIT(a_restored_book_of_the_dead_is_taken_over_by_its_keeper)
{
	struct process_id process = ended_process();
	struct registry_entry *entry;
	struct registry_offer offer;
	struct world world;

	world_open(&world);
	entry = restore(&world, process);
	offer = offer_of(&world.books[0], process.pid, -1, &one);
	offer.book->owner.id = process;
	assert(registry_keep_consume(world.registry, &offer) == 0);
	assert(entry->patience.place == 0 && entry->tracked->link == &one);
	settle(&world);
	assert(!strchr(world.told, '-'));
	registry_closed(world.registry, &one, id_of(&world));
	assert(strchr(world.told, '-'));
	world_close(&world);
}

UNIT(a_restored_book_of_a_living_process_can_be_taken_over)
{
	struct process_id process = {.pid = (uint32_t)getpid()};
	struct registry_entry *entry;
	struct registry_offer offer;
	struct world world;

	world_open(&world);
	process.start_ticks = proc_start_ticks(registry_proc(world.registry), process.pid);
	entry = restore(&world, process);
	assert(entry->patience.place == 0 && entry->pid_fd.fd >= 0 && !world.added->link);
	offer = offer_of(&world.books[0], process.pid, -1, &one);
	offer.book->owner.id = process;
	offer.pid_fd = process_new();
	assert(registry_keep_consume(world.registry, &offer) == 0 && entry->tracked->link == &one);
	assert(registry_pid_fd(world.registry, entry->tracked) == entry->pid_fd.fd);
	world_close(&world);
}

/* It would look in the mappings of its process, and find that another program runs there. */
UNIT(the_search_leaves_kept_books_to_their_keepers)
{
	int process = process_new();
	struct registry_entry *entry;
	struct world world;

	world_open(&world);
	assert(keep(&world, world_book(&world, BOOK_SOURCE_SOCKET), 5, process, &one) == 0);
	entry = registry_find(world.registry, id_of(&world));
	assert(registry_is_kept(entry));
	registry_over(entry); /* as when /proc says that it has ended */
	registry_over(entry);
	assert(says(&world, "+5") && entry->is_over);
	lose(&world, &one);
	assert(says(&world, "+5-5") && close(process) == 0);
	world_close(&world);
}
