/* SPDX-License-Identifier: Apache-2.0 */

/* Children by file, and what they have answered by address. */

#include "cli/naming.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "book/clock.h"
#include "cli/naming-child.h"
#include "cli/naming-fetch.h"

#define NAMING_FILES 64u                /* at once; the one used longest ago gives way */
#define NAMING_KNOWN 16384u             /* answers; a power of two */
#define NAMING_NEAR 16u                 /* places that an answer may have */
#define NAMING_NS UINT64_C(20000000000) /* for all questions together; then there are no more */

_Static_assert(NAMER_NAMES_MAX >= RESOLVE_FRAMES_MAX, "room for all names");

struct naming_file {
	char *path; /* NULL = free */
	uint32_t pid;
	uint32_t build_id_length;
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
	uint64_t used; /* the number of the last question */
	bool fetched;  /* its debug information was asked for elsewhere */
	struct naming_child child;
};

/* An answer that is kept, under the hash of everything that was asked. */
struct naming_known {
	uint64_t hash; /* 0 = empty */
	uint64_t address;
	uint32_t pid; /* so that no process can put its names on another's */
	uint32_t count;
	struct resolve_frame *frames;
};

struct naming {
	struct namer namer;
	uint64_t questions;
	uint64_t deadline_ns; /* 0 = nothing was asked yet */
	struct naming_fetch fetch;
	struct naming_file files[NAMING_FILES];
	struct naming_known known[NAMING_KNOWN];
	struct naming_answer answer;
};

static bool naming_is(const struct naming_file *file, const struct namer_place *place)
{
	return file->path && file->pid == place->pid &&
	       file->build_id_length == place->build_id_length &&
	       memcmp(file->build_id, place->build_id, place->build_id_length) == 0 &&
	       strcmp(file->path, place->path) == 0;
}

static void naming_forget(struct naming_file *file)
{
	naming_child_end(&file->child);
	free(file->path);
	*file = (struct naming_file){.path = NULL};
}

/* A file that has no child, because it cannot be opened or cost one, keeps its place and is not tried. */
static struct naming_file *naming_file(struct naming *naming, const struct namer_place *place)
{
	struct naming_file *file = &naming->files[0];

	for (size_t i = 0; i < NAMING_FILES; i++) {
		if (naming_is(&naming->files[i], place))
			return &naming->files[i];
		if (naming->files[i].used < file->used)
			file = &naming->files[i];
	}
	naming_forget(file);
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
static bool naming_fetch(struct naming *naming, struct naming_file *file,
			 const struct namer_place *place)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	CLEANUP_CLOSE int debug = -1;
	int r;

	if (file->fetched)
		return false;
	file->fetched = true;
	r = naming_fetch_debug(&naming->fetch, place, &debug);
	naming->deadline_ns += clock_ns(CLOCK_MONOTONIC) - start; /* it has a limit of its own */
	if (r < 0)
		return false;
	naming_child_end(&file->child);
	return naming_child_start(&file->child, place, debug) == 0;
}

static int naming_ask(struct naming *naming, struct naming_file *file,
		      const struct namer_place *place)
{
	if (!file->child.pid)
		return -ENOENT;
	return naming_child_ask(&file->child, place->address, &naming->answer);
}

static uint64_t naming_hash(const struct namer_place *place)
{
	uint64_t hash = hash_bytes(place->path, strlen(place->path));

	hash ^= hash_fold(hash_bytes(place->build_id, place->build_id_length) ^ HASH_K1, HASH_K0);
	hash = hash_fold(hash ^ place->address, HASH_K1) ^ hash_u64(place->pid);
	return hash ? hash : 1;
}

/* Asks; what comes is kept, even if it is nothing. */
static void naming_learn(struct naming *naming, const struct namer_place *place,
			 struct naming_known *known, uint64_t hash)
{
	struct naming_file *file = naming_file(naming, place);
	struct resolve_frame *frames;
	size_t length;
	int r;

	free(known->frames);
	*known = (struct naming_known){.hash = hash, .address = place->address, .pid = place->pid};
	if (!file)
		return;
	file->used = ++naming->questions;
	r = naming_ask(naming, file, place);
	if ((r == -ENOENT || (r == 0 && !naming->answer.has_debug)) &&
	    naming_fetch(naming, file, place))
		r = naming_ask(naming, file, place);
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
static struct naming_known *naming_known(struct naming *naming, const struct namer_place *place,
					 uint64_t hash)
{
	for (uint64_t i = 0; i < NAMING_NEAR; i++) {
		struct naming_known *known = &naming->known[(hash + i) % NAMING_KNOWN];

		if (known->hash == 0 || (known->hash == hash && known->address == place->address &&
					 known->pid == place->pid))
			return known;
	}
	return &naming->known[hash % NAMING_KNOWN];
}

static size_t naming_find(struct namer *namer, const struct namer_place *place,
			  struct namer_name *ret_names, size_t max)
{
	struct naming *self = container_of(namer, struct naming, namer);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct naming_known *known;
	uint64_t hash;
	size_t count;

	if (!place->path || place->is_lost || place->build_id_length > RESOLVE_BUILD_ID_MAX)
		return 0;
	if (!self->deadline_ns)
		self->deadline_ns = now + NAMING_NS;
	hash = naming_hash(place);
	known = naming_known(self, place, hash);
	if (known->hash != hash || known->address != place->address || known->pid != place->pid) {
		if (now > self->deadline_ns)
			return 0;
		naming_learn(self, place, known, hash);
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

int naming_new(struct naming **ret_naming)
{
	struct naming *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return -ENOMEM;
	naming->namer.find = naming_find;
	naming->fetch = NAMING_FETCH_INIT;
	*ret_naming = naming;
	return 0;
}

uint64_t naming_questions(const struct naming *naming)
{
	return naming->questions;
}

struct naming *naming_free(struct naming *naming)
{
	if (!naming)
		return NULL;
	for (size_t i = 0; i < NAMING_FILES; i++)
		naming_forget(&naming->files[i]);
	naming_fetch_deinit(&naming->fetch);
	for (size_t i = 0; i < NAMING_KNOWN; i++)
		free(naming->known[i].frames);
	free(naming);
	return NULL;
}

void naming_renew(struct naming *naming)
{
	naming->deadline_ns = 0;
}

struct namer *naming_namer(struct naming *naming)
{
	return &naming->namer;
}
