/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For the library's tests: what another process sees of a process's book. The book is found like
 * any reader finds it, by the link of a descriptor under /proc, and read by the checking reader.
 * Nothing here looks inside the library.
 *
 * Helpers assert: a test that cannot read has failed.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "book/format/layout.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"

#if defined(__SANITIZE_THREAD__)
#define OBSERVER_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define OBSERVER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OBSERVER_TSAN 1
#elif __has_feature(address_sanitizer)
#define OBSERVER_ASAN 1
#endif
#endif
#ifndef OBSERVER_TSAN
#define OBSERVER_TSAN 0
#endif
#ifndef OBSERVER_ASAN
#define OBSERVER_ASAN 0
#endif

struct observer {
	int fd;
	struct file_fd file;
	struct reader reader;
	struct view view; /* of the device that was read last */
};

/* Turns tracking on for this process, which has had no event yet, without offering the book. */
void observer_track(void);
void observer_track_without_stacks(void);

/* Turns it off, whatever else would turn it on. */
void observer_untrack(void);

/* Whether ttmem.ko is loaded: then tracking is on by default, and books are the kernel's. */
bool observer_has_kernel(void);

/* Whether the link of a descriptor names a book. */
bool observer_is_book(const char *link);

/* How many books of its own @pid holds; copies of one are counted once. */
uint32_t observer_count(pid_t pid);

/* Opens @pid's own book; if there are several, the first. False if it has none. */
bool observer_open(struct observer *ret_observer, pid_t pid);

/* The book behind a descriptor, which the caller keeps. */
void observer_open_fd(struct observer *ret_observer, int fd);
void observer_close(struct observer *observer);

/* Reads a device, and asserts that this works. False if it never had an event. */
bool observer_look(struct observer *observer, uint32_t device, enum view_owner owner);

/* Reads one type of a living process. All 0 for a device without events. */
struct book_hot observer_hot(struct observer *observer, uint32_t device, uint32_t type);
struct book_cold observer_cold(struct observer *observer, uint32_t device, uint32_t type);
uint64_t observer_inexact(struct observer *observer, uint32_t device);

/* The live record at an address in the view; NULL if there is none. */
const struct book_record *observer_row(const struct observer *observer, uint32_t type,
				       uint64_t address);

/* Text of a string id as a C string, "" for none; valid until the next call. */
const char *observer_text(struct observer *observer, uint32_t id);

/* The current header. */
const struct book_header *observer_header(struct observer *observer);

/* Waits for a child, and asserts that it succeeded. */
void observer_wait(pid_t child);

/* Monotonic seconds. */
double observer_now(void);

/* A handler, and a timer that signals this thread. */
void observer_handle(int number, void (*handler)(int), int flags);
timer_t observer_timer(int number, long nanoseconds);
