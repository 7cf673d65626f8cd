/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds books. A pass goes over all processes once and records for each book who holds it and
 * whether its owner is among them. Then the books without an owner are resolved, which takes a look
 * at every process and is rare: a child outlived its parent, or an application closed our
 * descriptor.
 */

#include "source/books/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "source/books/book-kept.h"
#include "source/books/book-rest.h"
#include "source/books/verify-book.h"
#include "source/proc/descriptors.h"
#include "source/proc/owner.h"

/* What is known about the process being visited. */
struct scan_visit {
	struct scan *scan;
	struct proc_facts facts; /* pid 0: not read yet */
	uint32_t candidates;
};

uint64_t scan_book_number(struct book_id id, uint64_t start_ticks)
{
	return hash_u64(id.inode) ^ hash_fold(start_ticks ^ HASH_K0, id.device ^ HASH_K1);
}

struct scan_book *scan_book_free(struct scan_book *book)
{
	if (!book)
		return NULL;
	reader_deinit(&book->reader);
	totals_cache_deinit(&book->totals_cache);
	book_rest_drop(book);
	free(book->recorded);
	book_kept_free(book->kept);
	if (book->file.fd >= 0)
		close(book->file.fd);
	free(book);
	return NULL;
}

int scan_new(struct scan **ret_scan)
{
	CLEANUP_FREE struct scan *scan = calloc(1, sizeof(*scan));
	int r;

	if (!scan)
		return -ENOMEM;
	scan->maps_budget = MAPS_BUDGET;
	r = proc_open(&scan->proc);
	if (r < 0)
		return r;
	*ret_scan = cleanup_steal(scan);
	return 0;
}

struct scan *scan_free(struct scan *scan)
{
	if (!scan)
		return NULL;
	for (size_t i = 0; i < scan->count; i++)
		scan_book_free(scan->books[i]);
	free(scan->books);
	quota_deinit(&scan->maps_budget);
	proc_close(&scan->proc);
	free(scan);
	return NULL;
}

static void scan_refuse(struct scan *scan, uint32_t pid, const char *reason, struct book_id book)
{
	if (scan->refused_count < SCAN_REFUSED_MAX)
		scan->refused[scan->refused_count] = (struct scan_refused){
			.pid = pid,
			.reason = reason,
			.book = book,
		};
	scan->refused_count++;
}

static void scan_refuse_file(struct scan *scan, uint32_t pid, int result, const struct stat *st)
{
	scan->starved = scan->starved || result == -EMFILE || result == -ENFILE;
	scan_refuse(scan, pid, verify_book_strerror(result),
		    st ? book_id_of(st) : (struct book_id){0});
}

static struct scan_book *scan_find(struct scan *scan, struct book_id id)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (book_id_equal(scan->books[i]->id, id))
			return scan->books[i];
	}
	return NULL;
}

static int scan_add(struct scan *scan, struct scan_book *book)
{
	struct scan_book **books;

	books = array_grow(scan->books, &scan->capacity, scan->count + 1,
			   sizeof(struct scan_book *));
	if (!books)
		return -ENOMEM;
	scan->books = books;
	books[scan->count++] = book;
	return 0;
}

int scan_book_new_consume(struct scan_book **ret_book, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	CLEANUP(scan_book_cleanup) struct scan_book *book = calloc(1, sizeof(*book));
	struct stat st;
	int r;

	if (!book)
		return -ENOMEM;
	book->file.fd = -1;
	if (fstat(owned, &st) < 0)
		return -errno;
	r = file_fd_init(&book->file, owned);
	if (r < 0)
		return r;
	(void)cleanup_steal_fd(&owned); /* owned by the book from now on */
	r = reader_init(&book->reader, &book->file.file);
	if (r != 0)
		return r;
	book->id = book_id_of(&st);
	book->uid = st.st_uid;
	*ret_book = cleanup_steal(book);
	return 0;
}

/*
 * Opens and checks a file not seen before. Returns 0 and @ret_book (owned by the scan), NULL if
 * refused.
 */
static int scan_take(struct scan *scan, uint32_t pid, int path_fd, const struct stat *st,
		     struct scan_book **ret_book)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	int r, fd = -1;

	*ret_book = NULL;
	r = verify_book_open(path_fd, &fd);
	if (r != 0) {
		scan_refuse_file(scan, pid, r, st);
		return 0;
	}
	r = scan_book_new_consume(&book, fd);
	if (r == -ENOMEM)
		return r;
	if (r != 0 || !book) {
		scan_refuse(scan, pid, reader_strerror(r), book_id_of(st));
		return 0;
	}
	book->first_pass = scan->pass;
	r = scan_add(scan, book);
	if (r < 0)
		return r;
	*ret_book = cleanup_steal(book);
	return 0;
}

/* The owner has been found: records what people want to know about it. */
static void scan_own(struct scan *scan, struct scan_book *book, const struct proc_facts *facts)
{
	bool known = process_id_equal(book->owner.id, facts->id) && book->alive;

	book->owner = *facts;
	book->alive = !proc_is_over(&scan->proc, facts);
	if (!known)
		proc_container(&scan->proc, facts->id.pid, book->container);
}

static int scan_candidate(void *context, uint32_t pid, int folder, const char *name)
{
	struct scan_visit *visit = context;
	struct scan *scan = visit->scan;
	CLEANUP_CLOSE int path_fd = -1;
	struct scan_book *book;
	struct stat st;
	int r;

	if (++visit->candidates > SCAN_CANDIDATES_MAX) {
		scan_refuse(scan, pid, "holds too many files that look like books",
			    (struct book_id){0});
		return 1;
	}
	r = verify_book_find(folder, name, &path_fd, &st);
	if (r == -ENOENT)
		return 0; /* closed meanwhile */
	if (r != 0) {
		scan_refuse_file(scan, pid, r, NULL);
		return 0;
	}
	book = scan_find(scan, book_id_of(&st));
	if (!book) {
		r = scan_take(scan, pid, path_fd, &st, &book);
		if (r < 0 || !book)
			return r;
	}
	if (book->pass != scan->pass) {
		book->pass = scan->pass;
		book->owner_found = book->refused = book->handed = false;
		book->holder = pid;
	}
	if (!visit->facts.id.pid && proc_read(&scan->proc, pid, &visit->facts) < 0)
		return 1; /* it is exiting */
	switch (owner_judge(&scan->proc, &book->reader.header, book->uid, &visit->facts)) {
	case OWNER_YES:
		book->owner_found = true;
		scan_own(scan, book, &visit->facts);
		break;
	case OWNER_FORGED:
		scan_refuse(scan, pid, "made by another user than the process it names",
			    book_id_of(&st));
		book->refused = true;
		break;
	case OWNER_NO:
		break;
	}
	return 0;
}

static int scan_process(struct scan *scan, uint32_t pid)
{
	struct scan_visit visit = {.scan = scan};
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SCAN_PROCESS_NS;
	int r = descriptors_each(&scan->proc, pid, deadline, scan_candidate, &visit);

	scan->starved = scan->starved || r == -EMFILE || r == -ENFILE;
	if (r == -ETIME)
		scan_refuse(scan, pid, "has more descriptors than could be looked at",
			    (struct book_id){0});
	if (r == -EACCES) {
		if (proc_read(&scan->proc, pid, &visit.facts) == 0 &&
		    visit.facts.real_uid == getuid()) {
			if (scan->unreadable++ == 0)
				scan->unreadable_pid = pid;
		} else {
			scan->others++;
		}
	}
	return r == -ENOMEM ? r : 0;
}

/*
 * A book whose owner does not hold it is alive if the owner has it mapped: exec ends an address
 * space.
 */
static int scan_mapped(struct scan *scan, const struct scan_book *book, uint32_t pid)
{
	const struct proc_file file = {.device = book->id.device, .inode = book->id.inode};
	uint64_t key = maps_budget_key(book->uid, 0);
	size_t left = maps_budget_left(&scan->maps_budget, key), bytes = 0;
	int r = left ? proc_has_mapped(&scan->proc, pid, &file, left, &bytes) : -EFBIG;

	(void)quota_add(&scan->maps_budget, key, bytes); /* without memory it does not count */
	return r;
}

/* Looks for the owner among all processes. False: the book is forged. */
static bool scan_settle(struct scan *scan, struct scan_book *book, const struct proc_facts *all,
			size_t count)
{
	const struct book_header *header = &book->reader.header;

	for (size_t i = 0; i < count; i++) {
		switch (owner_judge(&scan->proc, header, book->uid, &all[i])) {
		case OWNER_YES:
			scan_own(scan, book, &all[i]);
			/* The daemon holds an old client's book on its behalf. */
			book->alive = book->alive && (header->source == BOOK_SOURCE_SOCKET ||
						      scan_mapped(scan, book, all[i].id.pid) != 0);
			return true;
		case OWNER_FORGED:
			return false;
		case OWNER_NO:
			break;
		}
	}
	if (header->pid == 0 || header->pid > INT32_MAX)
		return false;
	book->alive = false;
	book->owner = (struct proc_facts){
		.id = {header->pid, header->start_ticks},
		.ns_pid = header->pid,
		.real_uid = book->uid,
		.saved_uid = book->uid,
	};
	memcpy(book->owner.comm, header->comm, sizeof(header->comm));
	return true;
}

static struct proc_facts *scan_everybody(struct scan *scan, size_t *ret_count)
{
	CLEANUP_FREE struct proc_facts *all = NULL;
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	size_t count = 0, capacity = 0;
	uint32_t pid;

	listing = proc_list(&scan->proc, ".");
	if (!listing)
		return NULL;
	while ((pid = proc_next(listing))) {
		struct proc_facts *more = array_grow(all, &capacity, count + 1, sizeof(*more));

		if (!more)
			return NULL;
		all = more;
		if (proc_read(&scan->proc, pid, &all[count]) == 0)
			count++;
	}
	*ret_count = count;
	return cleanup_steal(all);
}

static int scan_settle_all(struct scan *scan)
{
	CLEANUP_FREE struct proc_facts *all = NULL;
	size_t count = 0;

	for (size_t i = 0; i < scan->count; i++) {
		struct scan_book *book = scan->books[i];

		if (book->pass != scan->pass || book->owner_found)
			continue;
		if (!all)
			all = scan_everybody(scan, &count);
		if (!all)
			return -ENOMEM;
		if (book->refused || !scan_settle(scan, book, all, count)) {
			if (!book->refused)
				scan_refuse(scan, book->holder,
					    "names no process, or one of another user", book->id);
			book->pass = 0; /* not found */
		}
	}
	return 0;
}

/* Nobody holds it, but its owner may have closed our descriptor and still be writing. */
static bool scan_goes_on(struct scan *scan, const struct scan_book *book)
{
	struct proc_facts facts;
	int mapped;

	if (!book->alive || proc_read(&scan->proc, book->owner.id.pid, &facts) < 0 ||
	    proc_is_over(&scan->proc, &facts))
		return false;
	/* We may not be allowed to see its mappings; it must suffice that the process is alive. */
	if (book->handed)
		return process_id_equal(facts.id, book->owner.id);
	if (book->refused ||
	    owner_judge(&scan->proc, &book->reader.header, book->uid, &facts) != OWNER_YES)
		return false;
	mapped = scan_mapped(scan, book, book->owner.id.pid);
	return mapped == 1 || mapped == -EFBIG;
}

/* Drops what the last pass did not find, and forgets what it refused. */
static void scan_sweep(struct scan *scan)
{
	size_t n = 0;

	for (size_t i = 0; i < scan->count; i++) {
		if (scan->books[i]->gone)
			scan_book_free(scan->books[i]);
		else
			scan->books[n++] = scan->books[i];
	}
	scan->count = n;
	scan->refused_count = 0;
	scan->others = scan->unreadable = scan->unreadable_pid = 0;
	scan->starved = false;
}

struct scan_book *scan_release(struct scan *scan, size_t index)
{
	struct scan_book *book = scan->books[index];

	scan->count--;
	memmove(&scan->books[index], &scan->books[index + 1],
		(scan->count - index) * sizeof(struct scan_book *));
	return book;
}

/* By pid, whatever the order of the listing. */
static int scan_compare(const void *left, const void *right)
{
	const struct scan_book *a = *(struct scan_book *const *)left;
	const struct scan_book *b = *(struct scan_book *const *)right;

	if (a->owner.id.pid != b->owner.id.pid)
		return bits_compare(a->owner.id.pid, b->owner.id.pid);
	return bits_compare(a->id.inode, b->id.inode);
}

void scan_sort(struct scan *scan)
{
	if (scan->count > 0)
		qsort(scan->books, scan->count, sizeof(struct scan_book *), scan_compare);
}

bool scan_has(const struct scan *scan, struct book_id id)
{
	for (size_t i = 0; i < scan->count; i++) {
		const struct scan_book *book = scan->books[i];

		if (book_id_equal(book->id, id))
			return book->pass == scan->pass;
	}
	return false;
}

/*
 * The daemon vouches for what the pass refused: it may have known the owner before that changed its
 * user, or keep the book for a client of another user (and have it open for writing, before Linux
 * 5.14).
 */
static void scan_forgive(struct scan *scan, const struct scan_book *book)
{
	size_t n = 0;

	if (scan->refused_count > SCAN_REFUSED_MAX)
		return; /* not all of them are listed */
	for (size_t i = 0; i < scan->refused_count; i++) {
		const struct scan_refused *refused = &scan->refused[i];

		if (!book_id_equal(refused->book, book->id))
			scan->refused[n++] = *refused;
	}
	scan->refused_count = n;
}

int scan_hand_consume(struct scan *scan, int fd, const struct scan_handed *handed)
{
	CLEANUP_CLOSE int owned = fd;
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	struct scan_book *known;
	struct stat st;
	int r = verify_book_check(owned);

	if (r != 0)
		return r;
	if (fstat(owned, &st) < 0)
		return -errno;
	known = scan_find(scan, book_id_of(&st));
	if (known && known->pass == scan->pass)
		return 0;
	if (!known) {
		r = scan_book_new_consume(&book, cleanup_steal_fd(&owned));
		if (r != 0 || !book)
			return r;
		r = scan_add(scan, book);
		if (r < 0)
			return r;
		book->first_pass = scan->pass;
		known = cleanup_steal(book);
	}
	known->handed = true;
	known->gone = known->refused = false;
	known->pass = scan->pass;
	known->uid = handed->maker;
	known->owner = handed->owner;
	known->holder = handed->owner.id.pid;
	known->alive = handed->alive;
	(void)snprintf(known->container, sizeof(known->container), "%s", handed->container);
	scan_forgive(scan, known);
	return 0;
}

int scan_put_consume(struct scan *scan, struct scan_book *book)
{
	int r = scan_add(scan, book);

	if (r < 0)
		scan_book_free(book);
	return r;
}

int scan_run(struct scan *scan)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	uint32_t pid, own = (uint32_t)getpid();
	int r;

	scan_sweep(scan);
	scan->pass++;
	quota_deinit(&scan->maps_budget);
	listing = proc_list(&scan->proc, ".");
	if (!listing)
		return -errno;
	while ((pid = proc_next(listing))) {
		if (pid == own)
			continue; /* we hold descriptors of many books ourselves */
		if (scan->wants && !scan->wants(scan->context, pid))
			continue;
		r = scan_process(scan, pid);
		if (r < 0)
			return r;
	}
	r = scan_settle_all(scan);
	for (size_t i = 0; i < scan->count; i++) {
		struct scan_book *book = scan->books[i];

		book->gone = book->pass != scan->pass && !scan_goes_on(scan, book);
	}
	scan_sort(scan);
	return r;
}
