/* SPDX-License-Identifier: Apache-2.0 */

/* Searches the stack for callbacks of the loader and for signal handlers. */

#include "lib/stack/safe-to-load.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "lib/stack/modules.h"

#define MOMENT_CALLBACK_NS ((int64_t)NS_PER_S)

/*
 * The parts of the kernel's signal frame that are checked, as offsets from the return address:
 * flags and link of the context, a segment register with a fixed value, and the previously blocked
 * signals.
 */
#define MOMENT_FLAGS 8u
#define MOMENT_FLAGS_MAX 7u
#define MOMENT_LINK 16u
#define MOMENT_SEGMENT 192u
#define MOMENT_SEGMENT_USER 0x33u
#define MOMENT_BLOCKED 304u
#define MOMENT_SIZE 312u

static int64_t moment_first_callback; /* when one was first seen; 0 = never */

/* Handlers that are interrupted by their own signal: nothing is blocked for them. */
static bool moment_has_undeferred(void)
{
	struct sigaction action;

	for (int number = 1; number < _NSIG; number++) {
		if (sigaction(number, NULL, &action) == 0 && action.sa_flags & SA_NODEFER &&
		    action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
			return true;
	}
	return false;
}

/* Whether the handler that returns here may still be running. */
static __attribute__((no_sanitize("address"))) bool
moment_is_handled(const struct bounds *bounds, uintptr_t at, const sigset_t *blocked)
{
	uint64_t before, now;

	/* sigaction() leaves the same address on the stack, but not all of these values. */
	if (bounds->high - at < MOMENT_SIZE ||
	    *(const uint64_t *)(at + MOMENT_FLAGS) > MOMENT_FLAGS_MAX ||
	    *(const uint64_t *)(at + MOMENT_LINK) != 0 ||
	    *(const uint16_t *)(at + MOMENT_SEGMENT) != MOMENT_SEGMENT_USER)
		return false;
	before = *(const uint64_t *)(at + MOMENT_BLOCKED);
	memcpy(&now, blocked, sizeof(now)); /* the kernel's signals are the first ones */
	return now & ~before || moment_has_undeferred();
}

static bool moment_is_called_back(void)
{
	int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);

	if (moment_first_callback == 0)
		moment_first_callback = now;
	return now - moment_first_callback < MOMENT_CALLBACK_NS;
}

__attribute__((no_sanitize("address"))) bool
moment_is_calm(const struct bounds *bounds, const void *frame, const sigset_t *blocked)
{
	uintptr_t trampoline = modules_trampoline();
	uintptr_t at = (uintptr_t)frame;

	if (!bounds_hold(bounds, at, sizeof(uintptr_t)))
		return false;
	for (; at < bounds->high; at += sizeof(uintptr_t)) {
		uintptr_t address = *(const uintptr_t *)at;

		if (modules_is_callback(address) && moment_is_called_back())
			return false;
		if (address && address == trampoline && moment_is_handled(bounds, at, blocked))
			return false;
	}
	return true;
}
