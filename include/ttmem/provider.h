/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_PROVIDER_H
#define TTMEM_PROVIDER_H

/*
 * For runtimes of languages that have frames of their own: a provider tells libttmem which of them the
 * calling thread has, so that an event's stack shows them between the native ones. There is one provider;
 * Python's comes with the package ttmem.
 *
 * Its functions are called on the thread that reports an event, in the middle of that call, whenever
 * stacks are on (TTMEM_STACKS). They must be quick, wait for nobody, take no lock that their thread may
 * hold already, let no exception and no jump out, and leave errno alone. An event that they cause
 * themselves is put aside like one of a signal handler. After ttmem_provider(NULL) other threads may still
 * be inside them, so their code must stay loaded.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What look() answers if not who the frames are. */
#define TTMEM_FRAMES_NONE UINT64_C(0) /* this thread has none */
#define TTMEM_FRAMES_LAST \
	UINT64_C(1)                  /* cannot look now: take the thread's last ones, approximate */
#define TTMEM_FRAMES_OFF UINT64_C(2) /* must not look; counted */

/* The outermost frame of one run of the interpreter: what is further out called it through native code. */
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
	 * Of an entry: an address in the native frame of that run of the interpreter, on this thread's
	 * stack. It tells which native frames are inside and which outside. 0 = not known.
	 */
	uint64_t place;
};

struct ttmem_frames; /* where frames go */

struct ttmem_provider {
	uint32_t struct_size;
	uint32_t reserved;
	/*
	 * For every event: who the innermost @depth frames are, as one number that is the same again only
	 * for the same functions, files and lines. Or TTMEM_FRAMES_...; those are never numbers of frames.
	 */
	uint64_t (*look)(uint32_t depth);
	/* For what the thread has not had before, right after look(): the frames, innermost first. */
	void (*tell)(uint32_t depth, struct ttmem_frames *frames);
	/*
	 * The code of the function that is one run of the interpreter, for entries without a place: the
	 * first entry is at the first native frame that returns there, and so on. Both 0 = not known.
	 */
	uint64_t loop_from;
	uint64_t loop_to;
};

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct of the same name, as stat() has */
#endif
/*
 * Makes @provider the one that is asked; it must stay as it is for good. If the environment says nothing of
 * stacks (TTMEM_STACKS) they are on from now on. NULL takes the provider away. 0, -EINVAL, or -EBUSY if there
 * is another one.
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
