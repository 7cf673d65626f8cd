/* SPDX-License-Identifier: Apache-2.0 */

/* A namer that queries the symbols thread while there is time left. */

#include "daemon/symbols/symbols-namer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"
#include "symbol/symbolizer-namer.h"

#define NAMER_MS UINT64_C(1000000)

/* 0, or a negative errno: the name is unknown. */
static int namer_ask(struct symbols_namer *namer, const struct symbols_note *note,
		     uint64_t deadline_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now >= deadline_ns)
		return -ETIMEDOUT;
	return symbols_resolve(namer->symbols, &note->module, note->address,
			       (int)((deadline_ns - now) / NAMER_MS) + 1, &namer->answer);
}

/* Without memory, or beyond the limit, the name stays an address. */
static void namer_note(struct symbols_namer *namer, const struct symbols_note *note)
{
	struct symbols_note *notes;

	if (namer->count >= SYMBOLS_NAMER_NOTES_MAX)
		return;
	notes = array_grow(namer->notes, &namer->capacity, namer->count + 1, sizeof(*notes));
	if (!notes)
		return;
	namer->notes = notes;
	notes[namer->count++] = *note;
}

/* Looks in the cache, else queries if there is time, else notes the address for later. */
static bool namer_know(struct symbols_namer *namer, const struct symbols_note *note)
{
	int r = symbols_recall(namer->symbols, &note->module, note->address, &namer->answer);

	if (r == 0)
		return true;
	/*
	 * For a live process "unknown" is final; the file of an exited one may exist below our own
	 * root.
	 */
	if (r == -ENOENT && note->module.process.pid != 0)
		return false;
	if (namer->deadline_ns)
		return namer_ask(namer, note, namer->deadline_ns) == 0;
	namer_note(namer, note);
	return false;
}

static size_t symbols_namer_find(struct namer *namer, const struct namer_place *place,
				 struct namer_name *ret_names, size_t max)
{
	struct symbols_namer *self = container_of(namer, struct symbols_namer, namer);
	struct symbols_note note = {.address = place->address};

	if (!symbolizer_namer_module(place, &note.module) || !namer_know(self, &note))
		return 0;
	return symbolizer_namer_names(&self->answer, ret_names, max);
}

void symbols_namer_init(struct symbols_namer *namer, struct symbols *symbols, bool waits)
{
	*namer = (struct symbols_namer){.symbols = symbols};
	namer->namer.find = symbols_namer_find;
	if (waits)
		namer->deadline_ns = clock_ns(CLOCK_MONOTONIC) + SYMBOLS_NAMER_MS * NAMER_MS;
}

void symbols_namer_deinit(struct symbols_namer *namer)
{
	free(namer->notes);
	namer->notes = NULL;
}

/* Like namer_ask(), but skips what is known by now: an address is noted each time it is met. */
static int namer_learn(struct symbols_namer *namer, const struct symbols_note *note,
		       uint64_t deadline_ns)
{
	int r = symbols_recall(namer->symbols, &note->module, note->address, &namer->answer);

	if (r != -EAGAIN && (r != -ENOENT || note->module.process.pid != 0))
		return r;
	namer->asked++;
	return namer_ask(namer, note, deadline_ns);
}

bool symbols_namer_learn(struct symbols_namer *namer, size_t max)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SYMBOLS_NAMER_LEARN_MS * NAMER_MS;
	size_t last = namer->asked + max;
	bool found = false;

	while (namer->count > 0 && namer->asked < last) {
		int r = namer_learn(namer, &namer->notes[namer->count - 1], deadline);

		if (r == -ETIMEDOUT || r == -EBUSY)
			break;
		namer->count--;
		found = found || r == 0;
	}
	return found;
}
