/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens the gate: once per process, and again in every forked child that has an event.
 *
 * Any change here is made with the gate's lock held and signals blocked (lib/process/block-signals.h): a handler
 * running in the middle could find no book and lose its event, wait for its own thread, or leave by
 * siglongjmp() and never release the lock. The lock is in the page that is wiped on fork, so a
 * child forked while another thread held it finds it free.
 */

#include "lib/api/gate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/process/freeze.h"
#include "book/write/writer.h"
#include "lib/api/debug-log.h"
#include "lib/api/debug.h"
#include "lib/bookfile/book-file.h"
#include "lib/bookfile/kernel-book.h"
#include "lib/process/block-signals.h"
#include "lib/process/identity.h"
#include "lib/process/sandbox.h"
#include "lib/stack/stack.h"

/* In .bss, so in anonymous memory, which MADV_WIPEONFORK requires. */
struct gate gate_current;

static bool gate_is_wiped;    /* in children of this process */
static bool gate_is_prepared; /* when the program started */
static bool gate_has_node;    /* of the kernel module, at that time */
static uint32_t gate_instances;
static uint32_t gate_pauses;
static char gate_phase_text[BOOK_PATH_MAX + 1];
static char gate_skip_text[BOOK_PATH_MAX + 1];
static char
	gate_gave_up_text[BOOK_PATH_MAX + 1]; /* valid once the next is set; never changes then */
static bool gate_has_given_up;
static bool gate_phase_is_set; /* TTMEM_PHASE was read, or the application has set a phase */

static bool gate_says(const char *name, const char *value)
{
	const char *text = secure_getenv(name);

	return text && strcmp(text, value) == 0;
}

static bool gate_is_asked_for(void)
{
	return !gate_says("TTMEM", "0") &&
	       (gate_says("TTMEM", "1") || gate_says("TT_ALLOC_TRACKING_ENABLED", "1") ||
		debug_log_tracks());
}

/* Where the kernel module is loaded, tracking is on by default. */
static bool gate_wanted(void)
{
	return gate_is_asked_for() || (!gate_says("TTMEM", "0") && kernel_book_is_there());
}

/* If the page survived a fork, children would write to their parent's counters. */
static bool gate_wipe_on_fork(void)
{
	if (__atomic_load_n(&gate_is_wiped, __ATOMIC_RELAXED))
		return true;
	if (madvise(&gate_current, sizeof(gate_current), MADV_WIPEONFORK) < 0)
		return false;
	__atomic_store_n(&gate_is_wiped, true, __ATOMIC_RELAXED);
	return true;
}

/* Without tracking. */
static void gate_close(void)
{
	if (gate_word() == GATE_UNDECIDED)
		__atomic_store_n(&gate_current.word, GATE_OFF, __ATOMIC_RELEASE);
}

/* Whether there is nothing to decide: as when the program started, nobody asks for anything. */
static bool gate_is_needless(void)
{
	return gate_is_prepared && !gate_has_node && !gate_is_asked_for() &&
	       !secure_getenv("TTMEM_DEBUG");
}

/*
 * Whether this process may make system calls, and needs to. Asked before the first one is made, of threads
 * that come at the same time each once: the descriptor is used up by the first, and shows all that can be
 * known.
 */
static bool gate_may_call(void)
{
	bool may;

	if (freeze_is_on()) {
		gate_close();
		return false;
	}
	if (gate_word() != GATE_UNDECIDED ||
	    __atomic_load_n(&gate_current.is_checked, __ATOMIC_RELAXED))
		return true;
	if (gate_is_needless())
		return false;
	may = sandbox_allows(__atomic_exchange_n(&gate_current.sandbox, 0, __ATOMIC_RELAXED));
	if (may)
		__atomic_store_n(&gate_current.is_checked, true, __ATOMIC_RELAXED);
	else
		gate_close();
	return may;
}

static bool gate_take(struct block_signals *hold)
{
	if (!gate_may_call())
		return false;
	block_signals_begin(hold);
	if (!gate_wipe_on_fork()) {
		gate_close();
		block_signals_end(hold);
		return false;
	}
	if (lock_take(&gate_current.lock))
		return true;
	block_signals_end(hold);
	return false;
}

static void gate_give(const struct block_signals *hold)
{
	lock_drop(&gate_current.lock);
	block_signals_end(hold);
}

/* Lets calls see the writer, or sends them down the slow path. The gate is held. */
static void gate_publish(struct writer *writer)
{
	bool paused = gate_is_paused();
	bool slow = paused || debug_is_on() || debug_log_is_on();
	uintptr_t word = slow ? GATE_SLOW : stack_is_on() ? GATE_STACKS : (uintptr_t)writer;

	writer_set_paused(writer, paused);
	__atomic_store_n(&gate_current.word, word, __ATOMIC_RELEASE);
}

/* @to has room for BOOK_PATH_MAX bytes and a NUL. */
static void gate_copy(const char *text, char *to)
{
	size_t length = text ? intern_length(text, BOOK_PATH_MAX) : 0;

	bits_copy(to, text, length);
	to[length] = '\0';
}

static void gate_copy_phase(const char *text)
{
	gate_copy(text, gate_phase_text);
	gate_phase_is_set = true;
}

/* Readers may look at any time. */
static void gate_write_skip_frames(struct writer *writer)
{
	uint32_t id = intern_string(writer, gate_skip_text, BOOK_PATH_MAX);

	__atomic_store_n(&writer->header->skip_frames, id, __ATOMIC_RELAXED);
}

/* Whatever is allocated from now on may be missing, on any device. */
static void gate_write_gave_up(struct writer *writer)
{
	uint32_t id;

	if (!gate_has_given_up)
		return;
	id = intern_string(writer, gate_gave_up_text, BOOK_PATH_MAX);
	__atomic_store_n(&writer->header->gave_up, id ? id : BOOK_GAVE_UP_UNSAID, __ATOMIC_RELAXED);
	for (uint32_t device = 0; device < BOOK_DEVICES; device++)
		writer_lost(writer, device, false, INDEX_ANY);
}

static struct writer *gate_make_book(void)
{
	struct writer *writer = book_file_make();

	if (!writer)
		return NULL;
	if (!gate_phase_is_set)
		gate_copy_phase(secure_getenv("TTMEM_PHASE"));
	gate_current.writer = writer;
	gate_current.instance = ++gate_instances;
	gate_current.phase = intern_string(writer, gate_phase_text, BOOK_PATH_MAX);
	writer->header->first_phase = gate_current.phase;
	gate_write_skip_frames(writer);
	gate_write_gave_up(writer);
	/* Threads that gave up waiting for the gate lost one event each; what it was is unknown. */
	writer->header->rejected.lock += __atomic_load_n(&gate_current.missed, __ATOMIC_RELAXED);
	gate_publish(writer);
	return writer;
}

static void gate_decide(void)
{
	bool wanted = gate_wanted();
	struct writer *writer;

	/* A vfork child's book would end with the child: the parent, which shares it, makes it. */
	if (wanted && identity_is_borrowed())
		return;
	debug_open();
	if (wanted) {
		debug_log_open();
		stack_open();
	}
	writer = wanted ? gate_make_book() : NULL;
	if (!writer)
		__atomic_store_n(&gate_current.word, GATE_OFF, __ATOMIC_RELEASE);
	debug_opened(wanted, writer != NULL);
}

void gate_prepare(void)
{
	if (gate_word() != GATE_UNDECIDED || !gate_wipe_on_fork())
		return;
	gate_has_node = kernel_book_is_there();
	gate_is_prepared = true;
	if (!gate_wanted())
		return;
	gate_current.sandbox = sandbox_open();
	debug_log_prepare();
}

struct writer *gate_open(void)
{
	struct block_signals hold;
	struct writer *writer;

	if (gate_word() != GATE_UNDECIDED)
		return gate_peek();
	if (gate_take(&hold)) {
		if (gate_word() == GATE_UNDECIDED)
			gate_decide();
		gate_give(&hold);
	} else if (gate_is_needless()) {
		gate_close();
	}
	writer = gate_peek();
	if (!writer && gate_word() == GATE_UNDECIDED)
		__atomic_fetch_add(&gate_current.missed, 1, __ATOMIC_RELAXED);
	return writer;
}

/* Adds or removes one reason to pause, even if the gate cannot be locked. */
static void gate_change_pauses(int change)
{
	struct block_signals hold;
	bool held = gate_word() != GATE_OFF && gate_take(&hold); /* off: only matters to children */

	if (change > 0 || gate_is_paused())
		__atomic_fetch_add(&gate_pauses, (uint32_t)change, __ATOMIC_RELAXED);
	if (gate_current.writer)
		gate_publish(gate_current.writer);
	if (held)
		gate_give(&hold);
}

void gate_pause(void)
{
	gate_change_pauses(1);
}

void gate_resume(void)
{
	gate_change_pauses(-1);
}

bool gate_is_paused(void)
{
	return __atomic_load_n(&gate_pauses, __ATOMIC_RELAXED) != 0;
}

void gate_set_skip_frames(const char *text)
{
	struct block_signals hold;

	if (!gate_take(&hold))
		return;
	gate_copy(text, gate_skip_text);
	if (gate_current.writer)
		gate_write_skip_frames(gate_current.writer);
	gate_give(&hold);
}

void gate_set_gave_up(const char *text)
{
	struct block_signals hold;

	if (!gate_take(&hold))
		return;
	if (!gate_has_given_up) {
		gate_copy(text, gate_gave_up_text);
		__atomic_store_n(&gate_has_given_up, true, __ATOMIC_RELEASE);
		if (gate_current.writer)
			gate_write_gave_up(gate_current.writer);
	}
	gate_give(&hold);
}

const char *gate_gave_up(void)
{
	return __atomic_load_n(&gate_has_given_up, __ATOMIC_ACQUIRE) ? gate_gave_up_text : NULL;
}

void gate_set_phase(const char *text)
{
	struct block_signals hold;
	uint32_t id;

	if (!gate_take(&hold))
		return;
	gate_copy_phase(text);
	if (gate_current.writer) {
		id = intern_string(gate_current.writer, gate_phase_text, BOOK_PATH_MAX);
		__atomic_store_n(&gate_current.phase, id, __ATOMIC_RELAXED);
	}
	gate_give(&hold);
}
