/* SPDX-License-Identifier: Apache-2.0 */

/* Opening the gate: once per process, and once more in every forked child that has an event. */

#include "lib/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "book/writer.h"
#include "lib/debug.h"
#include "lib/make.h"

#define GATE_PAGE 4096u

static struct gate gate_undecided = {.word = GATE_UNDECIDED};
static struct gate gate_off = {.word = GATE_OFF};
static struct gate *gate_page; /* the wiped one, made once, kept by children */

struct gate *gate_current = &gate_undecided;

/* Pid of the process that is opening, 0 = nobody. A pid because a child may be forked in the middle. */
static uint32_t gate_opening;
static uint32_t gate_instances;
static uint32_t gate_pauses;
static char gate_phase_text[BOOK_PATH_MAX + 1];

static bool gate_says(const char *name, const char *value)
{
	const char *text = secure_getenv(name);

	return text && strcmp(text, value) == 0;
}

static bool gate_wanted(void)
{
	if (gate_says("TTMEM", "0"))
		return false;
	return gate_says("TTMEM", "1") || gate_says("TT_ALLOC_TRACKING_ENABLED", "1");
}

static struct gate *gate_make_page(void)
{
	void *page =
		mmap(NULL, GATE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	/* Without this a child would write into its parent's counters: then better no tracking. */
	if (madvise(page, GATE_PAGE, MADV_WIPEONFORK) < 0) {
		(void)munmap(page, GATE_PAGE); /* ours and whole: cannot fail */
		return NULL;
	}
	return page;
}

/* The word that calls shall see while there is a writer. */
static uintptr_t gate_word_for(struct writer *writer)
{
	if (gate_pauses || debug_is_on())
		return GATE_SLOW;
	return (uintptr_t)writer;
}

static void gate_use(struct gate *gate)
{
	__atomic_store_n(&gate_current, gate, __ATOMIC_RELEASE);
}

static struct writer *gate_open_book(void)
{
	struct writer *writer;

	if (!gate_page)
		gate_page = gate_make_page();
	if (!gate_page)
		return NULL;
	writer = make_book();
	if (!writer)
		return NULL;
	if (!gate_phase_text[0]) {
		const char *phase = secure_getenv("TTMEM_PHASE");

		if (phase)
			strncpy(gate_phase_text, phase, sizeof(gate_phase_text) - 1);
	}
	gate_page->writer = writer;
	gate_page->instance = ++gate_instances;
	gate_page->phase = intern_string(writer, gate_phase_text, BOOK_PATH_MAX);
	if (gate_pauses)
		writer_set_paused(writer, true);
	__atomic_store_n(&gate_page->word, gate_word_for(writer), __ATOMIC_RELEASE);
	gate_use(gate_page);
	return writer;
}

/*
 * Alone with the static state above. A holder with another pid is a thread of the parent that was in
 * here while this process was forked off: its lock is ours. @until_decided: no need to wait any longer
 * once somebody else has opened the gate.
 */
static bool gate_begin(bool until_decided)
{
	static const struct timespec pause = {.tv_nsec = 100000};
	uint32_t pid = (uint32_t)getpid();

	for (int i = 0; i < 20000; i++) {
		uint32_t holder = __atomic_load_n(&gate_opening, __ATOMIC_ACQUIRE);

		if (holder != pid &&
		    __atomic_compare_exchange_n(&gate_opening, &holder, pid, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		if (until_decided && gate_word() != GATE_UNDECIDED)
			return false;
		(void)nanosleep(&pause, NULL); /* shortened by a signal: we look again */
	}
	return false;
}

static void gate_end(void)
{
	__atomic_store_n(&gate_opening, 0, __ATOMIC_RELEASE);
}

struct writer *gate_peek(void)
{
	uintptr_t word = gate_word();

	if (word == GATE_SLOW)
		return gate_current->writer;
	return word > GATE_LAST ? (struct writer *)word : NULL;
}

struct writer *gate_open(void)
{
	int saved_errno = errno;

	if (gate_word() == GATE_UNDECIDED && gate_begin(true)) {
		if (gate_word() == GATE_UNDECIDED) {
			debug_open();
			if (!gate_wanted() || !gate_open_book())
				gate_use(&gate_off);
			debug_opened(gate_wanted(), gate_peek() != NULL);
		}
		gate_end();
	}
	errno = saved_errno;
	return gate_peek();
}

void gate_pause(void)
{
	struct writer *writer = gate_peek();

	__atomic_fetch_add(&gate_pauses, 1, __ATOMIC_RELAXED);
	if (writer) {
		writer_set_paused(writer, true);
		__atomic_store_n(&gate_page->word, GATE_SLOW, __ATOMIC_RELEASE);
	}
}

void gate_resume(void)
{
	struct writer *writer = gate_peek();
	uint32_t pauses = __atomic_load_n(&gate_pauses, __ATOMIC_RELAXED);

	do {
		if (pauses == 0)
			return;
	} while (!__atomic_compare_exchange_n(&gate_pauses, &pauses, pauses - 1, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (writer && pauses == 1) {
		writer_set_paused(writer, false);
		__atomic_store_n(&gate_page->word, gate_word_for(writer), __ATOMIC_RELEASE);
	}
}

bool gate_is_paused(void)
{
	return __atomic_load_n(&gate_pauses, __ATOMIC_RELAXED) != 0;
}

void gate_set_phase(const char *text)
{
	struct writer *writer = gate_peek();

	if (!gate_begin(false))
		return;
	memset(gate_phase_text, 0, sizeof(gate_phase_text));
	if (text)
		strncpy(gate_phase_text, text, sizeof(gate_phase_text) - 1);
	if (writer)
		__atomic_store_n(&gate_page->phase,
				 intern_string(writer, gate_phase_text, BOOK_PATH_MAX),
				 __ATOMIC_RELAXED);
	gate_end();
}
