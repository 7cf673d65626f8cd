/* SPDX-License-Identifier: Apache-2.0 */

/* Queries the provider, and finds where its frames belong among the native ones. */

#include "lib/stack/frame-provider.h"

#include <ttmem/provider.h>

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/writer.h"

#define FRAME_PROVIDER_EXPORT __attribute__((visibility("default")))
#define FRAME_PROVIDER_OUTSIDE_MAX 255u /* bits of a frame's flags */

_Static_assert(INTERN_FRAMES_MAX <= FRAME_PROVIDER_OUTSIDE_MAX, "what is outside can be said");

/* Collects frames until all are known. */
struct ttmem_frames {
	struct writer *writer;
	struct book_frame *frames;
	uint64_t places[INTERN_FRAMES_MAX];
	size_t count;
	size_t max;
};

static const struct ttmem_provider *frame_provider_current;

FRAME_PROVIDER_EXPORT int ttmem_provider(const struct ttmem_provider *provider)
{
	const struct ttmem_provider *none = NULL;

	if (!provider) {
		__atomic_store_n(&frame_provider_current, NULL, __ATOMIC_RELEASE);
		return 0;
	}
	if (provider->struct_size < sizeof(*provider) || !provider->look || !provider->tell)
		return -EINVAL;
	/* Release: a reader that sees the pointer sees the struct. Pairs with frame_provider_look(). */
	if (!__atomic_compare_exchange_n(&frame_provider_current, &none, provider, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
	    none != provider)
		return -EBUSY;
	return 0;
}

FRAME_PROVIDER_EXPORT void ttmem_frames_add(struct ttmem_frames *frames,
					    const struct ttmem_frame *frame)
{
	uint32_t function, file;

	if (frames->count >= frames->max || frame->struct_size < sizeof(*frame))
		return;
	function = intern_string(frames->writer, frame->function, BOOK_NAME_MAX);
	file = intern_string(frames->writer, frame->file, BOOK_PATH_MAX);
	frames->frames[frames->count] = (struct book_frame){
		.value = (uint64_t)function << 32 | file,
		.module = frame->line,
		.flags = BOOK_FRAME_PYTHON |
			 (frame->flags & TTMEM_FRAME_ENTRY ? BOOK_FRAME_ENTRY : 0),
	};
	frames->places[frames->count++] = frame->place;
}

void frame_provider_look(struct writer *writer, struct frame_provider_sight *sight, uint32_t depth)
{
	const struct ttmem_provider *provider =
		__atomic_load_n(&frame_provider_current, __ATOMIC_ACQUIRE);
	uint64_t identity = provider ? provider->look(depth) : TTMEM_FRAMES_NONE;

	sight->is_approximate = false;
	if (unlikely(identity == TTMEM_FRAMES_OFF)) {
		writer_reject(&writer->header->lost_frames);
		identity = 0;
	} else if (unlikely(identity == TTMEM_FRAMES_LAST)) {
		sight->is_approximate = true;
		identity = sight->last_id ? hash_u64(sight->last) : 0;
		if (!identity)
			writer_reject(&writer->header->lost_frames);
	}
	sight->identity = identity;
}

/*
 * The number of native frames inside a run of the interpreter, that is, called from it. @from: the
 * number inside the previous run. Stacks grow downwards, so frames inside are below @place.
 */
static size_t frame_provider_inside(const struct ttmem_provider *provider,
				    const struct frame_provider_native *native, size_t from,
				    uint64_t place)
{
	size_t i = from;

	/* A place below the innermost frame is on another stack, as used by coroutines in C. */
	if (native->count > 0 && native->places[0] && place >= native->places[0]) {
		while (i < native->count && native->places[i] <= place)
			i++;
		return i;
	}
	while (i < native->count && !(native->addresses[i] > provider->loop_from &&
				      native->addresses[i] <= provider->loop_to))
		i++;
	return bits_min(i + 1, native->count);
}

static void frame_provider_merge(const struct ttmem_provider *provider, struct ttmem_frames *frames,
				 const struct frame_provider_native *native)
{
	size_t inside = 0, first = 0;

	for (size_t i = 0; i < frames->count; i++) {
		/* A truncated list ends inside a run; the native frames known end there too. */
		if (!(frames->frames[i].flags & BOOK_FRAME_ENTRY) && i + 1 < frames->count)
			continue;
		if (frames->frames[i].flags & BOOK_FRAME_ENTRY)
			inside = frame_provider_inside(provider, native, inside, frames->places[i]);
		else
			inside = native->count;
		for (; first <= i; first++)
			frames->frames[first].flags |= (uint32_t)(native->count - inside)
						       << BOOK_FRAME_OUTSIDE_SHIFT;
	}
}

/* The last exact frames again. Their place among today's native ones is unknown: outside all. */
static size_t frame_provider_again(struct writer *writer, const struct frame_provider_sight *sight,
				   struct book_frame *frames, size_t max)
{
	struct book_frame last[INTERN_FRAMES_MAX];
	struct book_stack head;
	size_t count = intern_frames(writer, sight->last_id, &head, last, INTERN_FRAMES_MAX);
	size_t n = 0;

	for (size_t i = 0; i < count && n < max; i++) {
		if (!(last[i].flags & BOOK_FRAME_PYTHON))
			continue;
		frames[n] = last[i];
		frames[n++].flags = BOOK_FRAME_PYTHON | BOOK_FRAME_APPROXIMATE |
				    (last[i].flags & BOOK_FRAME_ENTRY);
	}
	return n;
}

size_t frame_provider_tell(struct writer *writer, const struct frame_provider_sight *sight,
			   uint32_t depth, const struct frame_provider_native *native,
			   struct book_frame *frames)
{
	const struct ttmem_provider *provider =
		__atomic_load_n(&frame_provider_current, __ATOMIC_ACQUIRE);
	struct ttmem_frames all = {
		.writer = writer,
		.frames = frames + native->count,
		.max = bits_min(depth, INTERN_FRAMES_MAX - native->count),
	};

	if (!sight->identity || !provider)
		return 0;
	if (sight->is_approximate)
		return frame_provider_again(writer, sight, all.frames, all.max);
	provider->tell(depth, &all);
	frame_provider_merge(provider, &all, native);
	return all.count;
}
