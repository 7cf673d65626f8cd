/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Users take turns. What a user's turn costs is a debt, which shrinks as time passes; while it is
 * too large, the user waits. Then its rings may be overrun, and its recorder writes gaps and
 * keyframes: this costs as much as we allow, whatever the user does.
 */

#include "recording/flight/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/bits.h"
#include "recording/flight/flight-private.h"
#include "recording/write/recorder.h"
#include "source/books/scan.h"

#define FLIGHT_MS UINT64_C(1000000)

#define FLIGHT_WAIT_MIN_NS \
	(4 * FLIGHT_MS) /* a default ring is full after 32 ms of 0.5 M events/s */

/* Of a user who has been quiet: a burst after that may begin with a gap. */
#define FLIGHT_WAIT_MAX_NS (128 * FLIGHT_MS)
#define FLIGHT_DEBT_NS (100 * FLIGHT_MS) /* that a user may have: a new book's first keyframes */
#define FLIGHT_TURN_NS (20 * FLIGHT_MS)  /* a turn ends with the book that takes longer */
#define FLIGHT_RETRY_MIN_NS NS_PER_S
#define FLIGHT_RETRY_MAX_NS (600 * NS_PER_S)
#define FLIGHT_WEIGH_NS NS_PER_S
#define FLIGHT_LATE_NS (10 * NS_PER_S)

int flight_new(struct flight **ret_flight, const struct flight_options *options)
{
	const struct retention_limits limits = {.size_max = options->size_max,
						.time_ns = options->time_ns};
	struct flight *flight = calloc(1, sizeof(*flight));
	int r;

	if (!flight)
		return -ENOMEM;
	flight->options = *options;
	r = retention_new(&flight->retention, &limits);
	if (r < 0) {
		free(flight);
		return r;
	}
	*ret_flight = flight;
	return 0;
}

/* Ends a user's recorder; what it had written is gone too, because its books are numbered anew. */
static void flight_stop(struct flight *flight, struct flight_user *user)
{
	user->recorder = recorder_free(user->recorder);
	chunk_pipe_deinit(&user->pipe);
	retention_drop_user(flight->retention, user->number);
	for (size_t i = 0; i < user->count; i++) {
		if (!user->books[i].has_ended)
			continue;
		user->books[i].number = RECORDING_NONE;
		chunk_pipe_deinit(&user->books[i].past);
	}
	flight->events += user->events;
	flight->missed += user->missed;
	user->events = user->missed = 0;
}

/* Something has failed: most likely there is no memory. It is tried again, but not all the time. */
static void flight_fail(struct flight *flight, struct flight_user *user)
{
	flight_stop(flight, user);
	user->retry_ns =
		bits_min(bits_max(2 * user->retry_ns, FLIGHT_RETRY_MIN_NS), FLIGHT_RETRY_MAX_NS);
	user->due = clock_ns(CLOCK_MONOTONIC) + user->retry_ns;
}

static int flight_record(struct flight_user *user, struct flight_book *book)
{
	int r = recorder_add(user->recorder, book->book, false);

	if (r == 0)
		book->number = recorder_sums(user->recorder)->books - 1;
	return r;
}

static int flight_start(struct flight_user *user)
{
	const struct recorder_options options = {.round_ns = FLIGHT_TURN_NS};
	int r = chunk_pipe_init(&user->pipe);

	if (r == 0)
		r = recorder_new(&user->recorder, user->pipe.fd, &options);
	for (size_t i = 0; r == 0 && i < user->count; i++) {
		if (user->books[i].number != RECORDING_NONE)
			r = flight_record(user, &user->books[i]);
	}
	return r;
}

static struct flight_user *flight_find_user(const struct flight *flight, uint32_t number)
{
	for (size_t i = 0; i < flight->count; i++) {
		if (flight->users[i].number == number)
			return &flight->users[i];
	}
	return NULL;
}

struct flight_user *flight_find(const struct flight *flight, const struct scan_book *book,
				struct flight_book **ret_book)
{
	for (size_t i = 0; i < flight->count; i++) {
		struct flight_user *user = &flight->users[i];

		for (size_t k = 0; k < user->count; k++) {
			if (user->books[k].book == book) {
				*ret_book = &user->books[k];
				return user;
			}
		}
	}
	return NULL;
}

static int flight_add_user(struct flight *flight, uint32_t number, struct flight_user **ret_user)
{
	struct flight_user *user;

	user = array_grow(flight->users, &flight->capacity, flight->count + 1, sizeof(*user));
	if (!user)
		return -ENOMEM;
	flight->users = user;
	user += flight->count++;
	*user = (struct flight_user){.number = number, .pipe = CHUNK_PIPE_NULL};
	*ret_user = user;
	return 0;
}

static void flight_free_user(struct flight *flight, struct flight_user *user)
{
	flight_stop(flight, user);
	free(user->books);
	*user = flight->users[--flight->count];
}

struct flight *flight_free(struct flight *flight)
{
	if (!flight)
		return NULL;
	while (flight->count > 0)
		flight_free_user(flight, &flight->users[flight->count - 1]);
	free(flight->users);
	retention_free(flight->retention);
	free(flight);
	return NULL;
}

/* Who is there takes the place of a user all of whose processes have ended. */
static void flight_free_ended(struct flight *flight)
{
	for (size_t i = 0; i < flight->count; i++) {
		struct flight_user *user = &flight->users[i];
		size_t ended = 0;

		for (size_t k = 0; k < user->count; k++)
			ended += user->books[k].has_ended;
		if (ended == user->count) {
			flight_free_user(flight, user);
			return;
		}
	}
}

int flight_add(struct flight *flight, uint32_t number, struct scan_book *book)
{
	struct flight_user *user = flight_find_user(flight, number);
	struct flight_book *books;
	int r = 0;

	if (!user && flight->count >= FLIGHT_USERS_MAX)
		flight_free_ended(flight);
	if (user ? user->count >= FLIGHT_BOOKS_MAX : flight->count >= FLIGHT_USERS_MAX) {
		flight->left_out++;
		return 0;
	}
	if (!user)
		r = flight_add_user(flight, number, &user);
	if (r < 0)
		return r;
	books = array_grow(user->books, &user->capacity, user->count + 1, sizeof(*books));
	if (!books) {
		if (user->count == 0)
			flight_free_user(flight, user);
		return -ENOMEM;
	}
	user->books = books;
	books += user->count++;
	*books = (struct flight_book){.book = book, .number = 0, .past = CHUNK_PIPE_NULL};
	flight->weighed_ns = 0; /* before it is read */
	/* With all its books at its next turn, if there is no recorder yet. */
	if (user->recorder && flight_record(user, books) < 0)
		flight_fail(flight, user);
	else
		user->due = 0;
	return 0;
}

/* Takes chunks from the recorder to what is kept. */
static int flight_take(struct flight *flight, struct flight_user *user)
{
	const struct recorder_sums *sums = recorder_sums(user->recorder);
	struct recording_entry entry;
	int r;

	while ((r = chunk_pipe_next(&user->pipe, &entry)) > 0) {
		/* Without memory for it the device is forgotten for a while. */
		(void)retention_add(flight->retention, user->number, &entry, user->pipe.contents);
	}
	chunk_pipe_clear(&user->pipe);
	if (sums->missed > user->missed)
		user->missed_ns = clock_ns(CLOCK_MONOTONIC);
	user->events = sums->events;
	user->missed = sums->missed;
	return r;
}

/*
 * Ends the recording of a book, without which there would be too much. Nothing of it is read: that
 * would be work which nobody pays for.
 */
static void flight_leave_out(struct flight *flight, struct flight_user *user,
			     struct flight_book *book)
{
	chunk_pipe_deinit(&book->past);
	if (user->recorder)
		recorder_drop_book(user->recorder, book->book);
	retention_drop_book(flight->retention, user->number, book->number);
	book->number = RECORDING_NONE;
	user->size -= book->size;
	book->size = 0;
}

void flight_remove(struct flight *flight, struct scan_book *scan)
{
	struct flight_book *book;
	struct flight_user *user = flight_find(flight, scan, &book);

	if (!user)
		return;
	if (book->number != RECORDING_NONE)
		flight_leave_out(flight, user, book);
	*book = user->books[--user->count];
	if (user->count == 0)
		flight_free_user(flight, user);
}

bool flight_keeps(const struct flight *flight, const struct scan_book *scan)
{
	struct flight_book *book;

	return flight_find(flight, scan, &book) && book->number != RECORDING_NONE;
}

/* Who has ended goes before who lives. */
static bool flight_goes_first(const struct flight_book *a, const struct flight_book *b)
{
	return a->has_ended != b->has_ended ? a->has_ended : a->size > b->size;
}

/*
 * A recorder has a table of what lives, so it takes about as much as the books themselves; of a book
 * that has only events it takes more. Of one that has ended there is what was copied of it.
 */
static uint64_t flight_weigh_user(struct flight_user *user, struct flight_book **ret_largest)
{
	*ret_largest = NULL;
	user->size = 0;
	for (size_t i = 0; i < user->count; i++) {
		struct flight_book *book = &user->books[i];
		struct stat st;

		if (book->number == RECORDING_NONE)
			continue;
		if (fstat(book->has_ended ? book->past.fd : book->book->file.fd, &st) == 0)
			book->size = (uint64_t)st.st_blocks * 512;
		if (user->recorder)
			book->size = bits_max(book->size,
					      recorder_book_size(user->recorder, book->book));
		user->size += book->size;
		if (!*ret_largest || flight_goes_first(book, *ret_largest))
			*ret_largest = book;
	}
	return user->size;
}

/* The largest book of the user who has most goes, until all fit. */
static void flight_weigh(struct flight *flight)
{
	for (;;) {
		struct flight_book *book = NULL, *largest;
		struct flight_user *most = NULL;
		uint64_t size = 0;

		for (size_t i = 0; i < flight->count; i++) {
			struct flight_user *user = &flight->users[i];

			size += flight_weigh_user(user, &largest);
			if (!most || user->size > most->size) {
				most = user;
				book = largest;
			}
		}
		if (size <= flight->options.size_max || !book)
			return;
		flight->left_out += !book->has_ended;
		flight_leave_out(flight, most, book);
	}
}

/* Users who are not quiet share our time. */
static uint32_t flight_active(const struct flight *flight, uint64_t now)
{
	uint32_t active = 0;

	for (size_t i = 0; i < flight->count; i++)
		active += now - flight->users[i].active_ns < NS_PER_S;
	return active ? active : 1;
}

/* When the user's next turn is. Not a struct quota_rate: what is paid off depends on how many are active. */
static void flight_charge(const struct flight *flight, struct flight_user *user, uint64_t now,
			  uint64_t cost, unsigned int wait_ms)
{
	/* Of each nanosecond that passes, a user pays off one in so many. */
	uint64_t part = 1, paid;

	if (wait_ms <= 1) { /* the recorder waits longer as soon as there is nothing new */
		user->active_ns = now;
		user->wait_ns = FLIGHT_WAIT_MIN_NS;
	} else {
		user->wait_ns = bits_min(user->wait_ns + user->wait_ns / 16, FLIGHT_WAIT_MAX_NS);
	}
	if (flight->options.percent)
		part = 100 * flight_active(flight, now) / flight->options.percent;
	paid = (now - user->paid_ns) / part;
	user->debt_ns = (user->debt_ns > paid ? user->debt_ns - paid : 0) + cost;
	user->paid_ns = now;
	user->due = now + user->wait_ns;
	if (user->debt_ns > FLIGHT_DEBT_NS)
		user->due = bits_max(user->due, now + (user->debt_ns - FLIGHT_DEBT_NS) * part);
}

static void flight_turn(struct flight *flight, struct flight_user *user, uint64_t now)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned int wait_ms = 0;
	int r = user->recorder ? 0 : flight_start(user);

	if (r == 0)
		r = recorder_round(user->recorder, &wait_ms);
	if (r == 0)
		r = flight_take(flight, user);
	flight_charge(flight, user, now, clock_ns(CLOCK_THREAD_CPUTIME_ID) - start, wait_ms);
	if (r < 0)
		flight_fail(flight, user);
}

uint64_t flight_round(struct flight *flight, uint64_t now_ns)
{
	uint64_t next = CLOCK_NEVER;

	if (now_ns - flight->weighed_ns >= FLIGHT_WEIGH_NS) {
		flight->weighed_ns = now_ns;
		flight_weigh(flight);
		retention_expire(flight->retention, clock_ns(CLOCK_REALTIME));
	}
	for (size_t i = 0; i < flight->count; i++) {
		struct flight_user *user = &flight->users[i];

		if (user->due <= now_ns) {
			flight_turn(flight, user, now_ns);
			flight->rounds++;
		}
		next = bits_min(next, user->due);
	}
	return next;
}

void flight_flush(struct flight *flight, struct flight_user *user, struct flight_book *book)
{
	int r;

	if (!user->recorder || book->number == RECORDING_NONE || book->has_ended)
		return;
	r = recorder_flush(user->recorder, book->book);
	if (r == 0)
		r = flight_take(flight, user);
	if (r < 0)
		flight_fail(flight, user);
}

bool flight_end(struct flight *flight, struct scan_book *scan, const struct flight_file *file)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct flight_book *book;
	struct flight_user *user = flight_find(flight, scan, &book);
	int r;

	/* It may have lived for less than a turn. */
	if (user && !user->recorder && user->due <= now)
		flight_turn(flight, user, now);
	if (!user || !user->recorder || book->number == RECORDING_NONE)
		return false;
	r = flight_write_now(scan, file, file->ending, &book->past);
	if (r < 0) {
		flight_leave_out(flight, user, book);
		return false;
	}
	book->has_ended = true;
	flight->weighed_ns = 0;
	r = recorder_end_book(user->recorder, scan, file->ending, NULL);
	if (r == 0)
		r = flight_take(flight, user);
	if (r < 0)
		flight_fail(flight, user);
	user->debt_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	return book->number != RECORDING_NONE;
}

void flight_counts(const struct flight *flight, struct flight_counts *ret_counts)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct flight_counts counts = {
		.events = flight->events,
		.missed = flight->missed,
		.dropped = retention_dropped(flight->retention),
		.size = retention_size(flight->retention),
		.rounds = flight->rounds,
		.users = (uint32_t)flight->count,
		.left_out = flight->left_out,
	};

	for (size_t i = 0; i < flight->count; i++) {
		const struct flight_user *user = &flight->users[i];

		counts.events += user->events;
		counts.missed += user->missed;
		for (size_t k = 0; k < user->count; k++)
			counts.books += !user->books[k].has_ended;
		counts.late += user->missed_ns && now - user->missed_ns < FLIGHT_LATE_NS;
	}
	*ret_counts = counts;
}
