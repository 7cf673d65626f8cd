/* SPDX-License-Identifier: Apache-2.0 */

/* Children by file, and what they have answered by address. */

#include "cli/frame-names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "book/clock.h"
#include "cli/debuginfod.h"
#include "cli/naming-child.h"

#define FRAME_NAMES_FILES 64u    /* at once; the one used longest ago gives way */
#define FRAME_NAMES_KNOWN 16384u /* answers; a power of two */
#define FRAME_NAMES_NEAR 16u     /* places that an answer may have */
#define FRAME_NAMES_NS \
	UINT64_C(20000000000) /* for all questions together; then there are no more */

_Static_assert(NAMER_NAMES_MAX >= RESOLVE_FRAMES_MAX, "room for all names");

struct frame_names_file {
	char *path; /* NULL = free */
	uint32_t pid;
	uint32_t build_id_length;
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
	uint64_t used; /* the number of the last question */
	bool fetched;  /* its debug information was asked for elsewhere */
	struct naming_child child;
};

/* An answer that is kept, under the hash of everything that was asked. */
struct frame_names_known {
	uint64_t hash; /* 0 = empty */
	uint64_t address;
	uint32_t pid; /* so that no process can put its names on another's */
	uint32_t count;
	struct resolve_frame *frames;
};

struct frame_names {
	struct namer namer;
	uint64_t questions;
	uint64_t deadline_ns; /* 0 = nothing was asked yet */
	struct debuginfod fetch;
	struct frame_names_file files[FRAME_NAMES_FILES];
	struct frame_names_known known[FRAME_NAMES_KNOWN];
	struct naming_answer answer;
};

static bool frame_names_is(const struct frame_names_file *file, const struct namer_place *place)
{
	return file->path && file->pid == place->pid &&
	       file->build_id_length == place->build_id_length &&
	       memcmp(file->build_id, place->build_id, place->build_id_length) == 0 &&
	       strcmp(file->path, place->path) == 0;
}

static void frame_names_forget(struct frame_names_file *file)
{
	naming_child_end(&file->child);
	free(file->path);
	*file = (struct frame_names_file){.path = NULL};
}

/* A file that has no child, because it cannot be opened or cost one, keeps its place and is not tried. */
static struct frame_names_file *frame_names_file(struct frame_names *naming,
						 const struct namer_place *place)
{
	struct frame_names_file *file = &naming->files[0];

	for (size_t i = 0; i < FRAME_NAMES_FILES; i++) {
		if (frame_names_is(&naming->files[i], place))
			return &naming->files[i];
		if (naming->files[i].used < file->used)
			file = &naming->files[i];
	}
	frame_names_forget(file);
	file->path = strdup(place->path);
	if (!file->path)
		return NULL;
	file->pid = place->pid;
	file->build_id_length = place->build_id_length;
	memcpy(file->build_id, place->build_id, place->build_id_length);
	(void)naming_child_start(&file->child, place, -1); /* without one there are no names */
	return file;
}

/* Nothing on this machine knows more: perhaps a server does. Return: whether it is worth asking again. */
static bool frame_names_fetch(struct frame_names *naming, struct frame_names_file *file,
			      const struct namer_place *place)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	CLEANUP_CLOSE int debug = -1;
	int r;

	if (file->fetched)
		return false;
	file->fetched = true;
	r = debuginfod_fetch(&naming->fetch, place, &debug);
	naming->deadline_ns += clock_ns(CLOCK_MONOTONIC) - start; /* it has a limit of its own */
	if (r < 0)
		return false;
	naming_child_end(&file->child);
	return naming_child_start(&file->child, place, debug) == 0;
}

static int frame_names_ask(struct frame_names *naming, struct frame_names_file *file,
			   const struct namer_place *place)
{
	if (!file->child.pid)
		return -ENOENT;
	return naming_child_ask(&file->child, place->address, &naming->answer);
}

static uint64_t frame_names_hash(const struct namer_place *place)
{
	uint64_t hash = hash_bytes(place->path, strlen(place->path));

	hash ^= hash_fold(hash_bytes(place->build_id, place->build_id_length) ^ HASH_K1, HASH_K0);
	hash = hash_fold(hash ^ place->address, HASH_K1) ^ hash_u64(place->pid);
	return hash ? hash : 1;
}

/* Asks; what comes is kept, even if it is nothing. */
static void frame_names_learn(struct frame_names *naming, const struct namer_place *place,
			      struct frame_names_known *known, uint64_t hash)
{
	struct frame_names_file *file = frame_names_file(naming, place);
	struct resolve_frame *frames;
	size_t length;
	int r;

	free(known->frames);
	*known = (struct frame_names_known){
		.hash = hash, .address = place->address, .pid = place->pid};
	if (!file)
		return;
	file->used = ++naming->questions;
	r = frame_names_ask(naming, file, place);
	if ((r == -ENOENT || (r == 0 && !naming->answer.has_debug)) &&
	    frame_names_fetch(naming, file, place))
		r = frame_names_ask(naming, file, place);
	if (r < 0)
		return;
	length = naming->answer.count * sizeof(*frames);
	frames = length ? malloc(length) : NULL;
	if (!frames)
		return;
	memcpy(frames, naming->answer.frames, length);
	known->frames = frames;
	known->count = naming->answer.count;
}

/* Where the answer is, or is to be: beside others if there is room, else in place of one. */
static struct frame_names_known *frame_names_known(struct frame_names *naming,
						   const struct namer_place *place, uint64_t hash)
{
	for (uint64_t i = 0; i < FRAME_NAMES_NEAR; i++) {
		struct frame_names_known *known = &naming->known[(hash + i) % FRAME_NAMES_KNOWN];

		if (known->hash == 0 || (known->hash == hash && known->address == place->address &&
					 known->pid == place->pid))
			return known;
	}
	return &naming->known[hash % FRAME_NAMES_KNOWN];
}

static size_t frame_names_find(struct namer *namer, const struct namer_place *place,
			       struct namer_name *ret_names, size_t max)
{
	struct frame_names *self = container_of(namer, struct frame_names, namer);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct frame_names_known *known;
	uint64_t hash;
	size_t count;

	if (!place->path || place->is_lost || place->build_id_length > RESOLVE_BUILD_ID_MAX)
		return 0;
	if (!self->deadline_ns)
		self->deadline_ns = now + FRAME_NAMES_NS;
	hash = frame_names_hash(place);
	known = frame_names_known(self, place, hash);
	if (known->hash != hash || known->address != place->address || known->pid != place->pid) {
		if (now > self->deadline_ns)
			return 0;
		frame_names_learn(self, place, known, hash);
	}
	count = bits_min(known->count, max);
	for (size_t i = 0; i < count; i++) {
		const struct resolve_frame *frame = &known->frames[i];

		ret_names[i] = (struct namer_name){
			.function = frame->function[0] ? frame->function : NULL,
			.file = frame->file[0] ? frame->file : NULL,
			.line = frame->line,
		};
	}
	return count;
}

int frame_names_new(struct frame_names **ret_naming)
{
	struct frame_names *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return -ENOMEM;
	naming->namer.find = frame_names_find;
	naming->fetch = DEBUGINFOD_INIT;
	*ret_naming = naming;
	return 0;
}

uint64_t frame_names_questions(const struct frame_names *naming)
{
	return naming->questions;
}

struct frame_names *frame_names_free(struct frame_names *naming)
{
	if (!naming)
		return NULL;
	for (size_t i = 0; i < FRAME_NAMES_FILES; i++)
		frame_names_forget(&naming->files[i]);
	debuginfod_deinit(&naming->fetch);
	for (size_t i = 0; i < FRAME_NAMES_KNOWN; i++)
		free(naming->known[i].frames);
	free(naming);
	return NULL;
}

void frame_names_renew(struct frame_names *naming)
{
	naming->deadline_ns = 0;
}

struct namer *frame_names_namer(struct frame_names *naming)
{
	return &naming->namer;
}
