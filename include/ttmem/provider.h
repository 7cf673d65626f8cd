/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_PROVIDER_H
#define TTMEM_PROVIDER_H

/*
 * For runtimes of languages with frames of their own: a provider gives libttmem those of the calling
 * thread, so that an event's stack shows them between the native ones. There is one provider; Python's
 * comes with the package ttmem.
 *
 * Its functions are called on the thread that reports an event, in the middle of that call, whenever
 * stacks are on (TTMEM_STACKS). They must be quick, never block, take no lock that their thread may
 * already hold, let no exception or longjmp() out, and preserve errno. An event that they cause
 * themselves is deferred like one in a signal handler. After ttmem_provider(NULL) other threads may still
 * be inside them, so their code must stay loaded.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What look() returns instead of a number for the frames. */
#define TTMEM_FRAMES_NONE UINT64_C(0) /* this thread has none */
#define TTMEM_FRAMES_LAST \
	UINT64_C(1) /* cannot look now: use the thread's last frames, as approximate */
#define TTMEM_FRAMES_OFF UINT64_C(2) /* must not look; counted */

/* The outermost frame of one run of the interpreter, which native code called. */
#define TTMEM_FRAME_ENTRY 0x01u

/* One frame. The texts are UTF-8, copied at once; NULL = not known. */
struct ttmem_frame {
	uint32_t struct_size;
	uint32_t flags;
	uint32_t line; /* 0 = not known */
	uint32_t reserved;
	const char *function;
	const char *file;
	/*
	 * For an entry: an address in the native frame of that run of the interpreter, on this thread's
	 * stack. It separates the native frames inside from those outside. 0 = not known.
	 */
	uint64_t place;
};

struct ttmem_frames; /* receives the frames */

struct ttmem_provider {
	uint32_t struct_size;
	uint32_t reserved;
	/*
	 * For every event: a number that identifies the innermost @depth frames; it is equal only for the
	 * same functions, files and lines. Or TTMEM_FRAMES_..., which never identify frames.
	 */
	uint64_t (*look)(uint32_t depth);
	/* For a number that is new to the thread, right after look(): adds the frames, innermost first. */
	void (*tell)(uint32_t depth, struct ttmem_frames *frames);
	/*
	 * The code of the interpreter's loop function, for entries without a place: the first entry
	 * belongs to the first native frame that returns there, and so on. Both 0 = not known.
	 */
	uint64_t loop_from;
	uint64_t loop_to;
};

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct of the same name, like stat() */
#endif
/*
 * Registers @provider, which must never change or go away. NULL removes it. 0, -EINVAL, or -EBUSY if
 * there is another one.
 */
int ttmem_provider(const struct ttmem_provider *provider);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Called by tell(). Frames beyond the depth are dropped. */
void ttmem_frames_add(struct ttmem_frames *frames, const struct ttmem_frame *frame);

#ifdef __cplusplus
}
#endif

#endif
