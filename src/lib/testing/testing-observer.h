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
#define WITNESS_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define WITNESS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITNESS_TSAN 1
#elif __has_feature(address_sanitizer)
#define WITNESS_ASAN 1
#endif
#endif
#ifndef WITNESS_TSAN
#define WITNESS_TSAN 0
#endif
#ifndef WITNESS_ASAN
#define WITNESS_ASAN 0
#endif

struct witness {
	int fd;
	struct file_fd file;
	struct reader reader;
	struct view view; /* of the device that was read last */
};

/* Turns tracking on for this process, which has had no event yet, without offering the book. */
void witness_track(void);

/* Turns it off, whatever else would turn it on. */
void witness_untrack(void);

/* Whether ttmem.ko is loaded: then tracking is on by default, and books are the kernel's. */
bool witness_has_kernel(void);

/* Whether the link of a descriptor names a book. */
bool witness_is_book(const char *link);

/* How many books of its own @pid holds; copies of one are counted once. */
uint32_t witness_count(pid_t pid);

/* Opens @pid's own book; if there are several, the first. False if it has none. */
bool witness_open(struct witness *ret_witness, pid_t pid);

/* The book behind a descriptor, which the caller keeps. */
void witness_open_fd(struct witness *ret_witness, int fd);
void witness_close(struct witness *witness);

/* Reads a device, and asserts that this works. False if it never had an event. */
bool witness_look(struct witness *witness, uint32_t device, enum view_owner owner);

/* Reads one type of a living process. All 0 for a device without events. */
struct book_hot witness_hot(struct witness *witness, uint32_t device, uint32_t type);
struct book_cold witness_cold(struct witness *witness, uint32_t device, uint32_t type);
uint64_t witness_inexact(struct witness *witness, uint32_t device);

/* The live record at an address in the view; NULL if there is none. */
const struct book_record *witness_row(const struct witness *witness, uint32_t type,
				      uint64_t address);

/* Text of a string id as a C string, "" for none; valid until the next call. */
const char *witness_text(struct witness *witness, uint32_t id);

/* The current header. */
const struct book_header *witness_header(struct witness *witness);

/* Waits for a child, and asserts that it succeeded. */
void witness_wait(pid_t child);

/* Monotonic seconds. */
double witness_now(void);

/* A handler, and a timer that signals this thread. */
void witness_handle(int number, void (*handler)(int), int flags);
timer_t witness_timer(int number, long nanoseconds);
