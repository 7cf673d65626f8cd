/* SPDX-License-Identifier: Apache-2.0 */

/* Searches the stack for callbacks of the loader and for signal handlers. */

#include "lib/stack/safe-to-load.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "lib/stack/modules.h"

#define SAFE_TO_LOAD_CALLBACK_NS ((int64_t)NS_PER_S)

/*
 * The parts of the kernel's signal frame that are checked, as offsets from the return address:
 * flags and link of the context, a segment register with a fixed value, and the previously blocked
 * signals.
 */
#define SAFE_TO_LOAD_FLAGS 8u
#define SAFE_TO_LOAD_FLAGS_MAX 7u
#define SAFE_TO_LOAD_LINK 16u
#define SAFE_TO_LOAD_SEGMENT 192u
#define SAFE_TO_LOAD_SEGMENT_USER 0x33u
#define SAFE_TO_LOAD_BLOCKED 304u
#define SAFE_TO_LOAD_SIZE 312u

static int64_t safe_to_load_first_callback; /* when one was first seen; 0 = never */

/* Handlers that are interrupted by their own signal: nothing is blocked for them. */
static bool safe_to_load_has_undeferred(void)
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
safe_to_load_is_handled(const struct bounds *bounds, uintptr_t at, const sigset_t *blocked)
{
	uint64_t before, now;

	/* sigaction() leaves the same address on the stack, but not all of these values. */
	if (bounds->high - at < SAFE_TO_LOAD_SIZE ||
	    *(const uint64_t *)(at + SAFE_TO_LOAD_FLAGS) > SAFE_TO_LOAD_FLAGS_MAX ||
	    *(const uint64_t *)(at + SAFE_TO_LOAD_LINK) != 0 ||
	    *(const uint16_t *)(at + SAFE_TO_LOAD_SEGMENT) != SAFE_TO_LOAD_SEGMENT_USER)
		return false;
	before = *(const uint64_t *)(at + SAFE_TO_LOAD_BLOCKED);
	memcpy(&now, blocked, sizeof(now)); /* the kernel's signals are the first ones */
	return now & ~before || safe_to_load_has_undeferred();
}

static bool safe_to_load_is_called_back(void)
{
	int64_t now = (int64_t)clock_ns_kernel(CLOCK_MONOTONIC);

	if (safe_to_load_first_callback == 0)
		safe_to_load_first_callback = now;
	return now - safe_to_load_first_callback < SAFE_TO_LOAD_CALLBACK_NS;
}

__attribute__((no_sanitize("address"))) bool
safe_to_load(const struct bounds *bounds, const void *frame, const sigset_t *blocked)
{
	uintptr_t trampoline = modules_trampoline();
	uintptr_t at = (uintptr_t)frame;

	if (!bounds_hold(bounds, at, sizeof(uintptr_t)))
		return false;
	for (; at < bounds->high; at += sizeof(uintptr_t)) {
		uintptr_t address = *(const uintptr_t *)at;

		if (modules_is_callback(address) && safe_to_load_is_called_back())
			return false;
		if (address && address == trampoline &&
		    safe_to_load_is_handled(bounds, at, blocked))
			return false;
	}
	return true;
}
