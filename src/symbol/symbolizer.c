/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file that has cost us a process would do so again, and each time takes the time-out: it is left alone
 * for a while, and so is a user who has several of them.
 */

#include "symbol/symbolizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "book/clock.h"
#include "symbol/symbolizer-cache.h"
#include "symbol/symbolizer-open.h"
#include "symbol/symbolizer-worker.h"

#define SYMBOLIZER_SECOND UINT64_C(1000000000)

/* A module and the file with its debug information. */
struct symbolizer_pair {
	struct symbolizer_identity module;
	uint32_t user;
	int debug; /* -1 = this place is free */
};

struct symbolizer_bad {
	struct symbolizer_identity module;
	uint32_t user;
	uint64_t until_ns;
};

struct symbolizer {
	struct symbolizer_config config;
	struct symbolizer_worker worker;
	struct symbolizer_cache cache;
	struct symbolizer_pair pairs[SYMBOLIZER_PAIRS];
	size_t next_pair;
	struct symbolizer_bad bad[SYMBOLIZER_BAD_MAX];
	size_t next_bad;
	uint64_t cached; /* atomic */
};

int symbolizer_new(struct symbolizer **ret_symbolizer, const struct symbolizer_config *config)
{
	CLEANUP_FREE struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return -ENOMEM;
	symbolizer->config = *config;
	for (size_t i = 0; i < SYMBOLIZER_PAIRS; i++)
		symbolizer->pairs[i].debug = -1;
	symbolizer_worker_init(&symbolizer->worker, &symbolizer->config);
	*ret_symbolizer = cleanup_steal(symbolizer);
	return 0;
}

void symbolizer_rest(struct symbolizer *symbolizer)
{
	symbolizer_worker_end(&symbolizer->worker);
	for (size_t i = 0; i < SYMBOLIZER_PAIRS; i++) {
		if (symbolizer->pairs[i].debug >= 0)
			(void)close(symbolizer->pairs[i].debug); /* open for reading only */
		symbolizer->pairs[i].debug = -1;
	}
}

struct symbolizer *symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return NULL;
	symbolizer_rest(symbolizer);
	symbolizer_cache_deinit(&symbolizer->cache);
	free(symbolizer);
	return NULL;
}

static bool symbolizer_is_same(const struct symbolizer_identity *a,
			       const struct symbolizer_identity *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static int symbolizer_debug_of(const struct symbolizer *symbolizer,
			       const struct symbolizer_key *key)
{
	for (size_t i = 0; i < SYMBOLIZER_PAIRS; i++) {
		const struct symbolizer_pair *pair = &symbolizer->pairs[i];

		if (pair->debug >= 0 && pair->user == key->user &&
		    symbolizer_is_same(&pair->module, &key->file))
			return pair->debug;
	}
	return -1;
}

/* Takes the descriptor, which stays open until others need its place. */
static void symbolizer_keep_consume(struct symbolizer *symbolizer, const struct symbolizer_key *key,
				    int debug)
{
	struct symbolizer_pair *pair =
		&symbolizer->pairs[symbolizer->next_pair++ % SYMBOLIZER_PAIRS];

	if (pair->debug >= 0)
		(void)close(pair->debug); /* open for reading only */
	*pair = (struct symbolizer_pair){.module = key->file, .user = key->user, .debug = debug};
}

static bool symbolizer_is_bad(const struct symbolizer *symbolizer, const struct symbolizer_key *key)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t of_user = 0;

	for (size_t i = 0; i < SYMBOLIZER_BAD_MAX; i++) {
		const struct symbolizer_bad *bad = &symbolizer->bad[i];

		if (bad->until_ns <= now || bad->user != key->user)
			continue;
		if (symbolizer_is_same(&bad->module, &key->file) ||
		    ++of_user >= SYMBOLIZER_BAD_USER)
			return true;
	}
	return false;
}

static void symbolizer_mark_bad(struct symbolizer *symbolizer, const struct symbolizer_key *key)
{
	symbolizer->bad[symbolizer->next_bad++ % SYMBOLIZER_BAD_MAX] = (struct symbolizer_bad){
		.module = key->file,
		.user = key->user,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + SYMBOLIZER_BAD_S * SYMBOLIZER_SECOND,
	};
}

static int symbolizer_ask(struct symbolizer *symbolizer, const struct symbolizer_key *key, int fd,
			  int debug, struct symbolizer_wire_answer *ret_answer)
{
	const int files[SYMBOLIZER_WIRE_FILES] = {fd, debug};
	int r = symbolizer_worker_ask(&symbolizer->worker, key->user, key->address, files,
				      ret_answer);

	if (r == -ETIMEDOUT || r == -EPIPE || r == -EBADMSG)
		symbolizer_mark_bad(symbolizer, key);
	return r < 0 ? r : ret_answer->result;
}

static bool symbolizer_is_build(const struct symbolizer_module *module,
				const struct symbolizer_wire_answer *answer)
{
	return module->build_id_length == 0 ||
	       (module->build_id_length == answer->build_id_length &&
		memcmp(module->build_id, answer->build_id, module->build_id_length) == 0);
}

/* Asks for the file, and if it has no debug information, again with that beside it. */
static int symbolizer_ask_both(struct symbolizer *symbolizer,
			       const struct symbolizer_module *module,
			       const struct symbolizer_key *key, int fd,
			       struct symbolizer_wire_answer *ret_answer)
{
	int debug = symbolizer_debug_of(symbolizer, key);
	int r = symbolizer_ask(symbolizer, key, fd, debug, ret_answer);
	const struct symbolizer_hint hint = {
		.build_id = ret_answer->build_id,
		.build_id_length = ret_answer->build_id_length,
		.link = ret_answer->link,
	};

	if (r < 0)
		return r;
	if (!symbolizer_is_build(module, ret_answer))
		return -ESTALE;
	if (debug >= 0 || ret_answer->has_debug ||
	    symbolizer_open_debug(symbolizer->config.debug_folder, module, &hint, &debug) < 0)
		return 0;
	symbolizer_keep_consume(symbolizer, key, debug);
	return symbolizer_ask(symbolizer, key, fd, debug, ret_answer);
}

/* What is in an open file, from memory or by looking. */
static int symbolizer_look(struct symbolizer *symbolizer, const struct symbolizer_module *module,
			   const struct symbolizer_key *key, int fd,
			   struct symbolizer_answer *ret_answer)
{
	struct symbolizer_wire_answer answer = {.count = 0};
	int r = symbolizer_cache_find(&symbolizer->cache, key, ret_answer->frames);

	if (r >= 0) {
		__atomic_add_fetch(&symbolizer->cached, 1, __ATOMIC_RELAXED);
		ret_answer->count = (size_t)r;
		return r > 0 ? 0 : -ENOENT;
	}
	if (symbolizer_is_bad(symbolizer, key))
		return -EBUSY;
	r = symbolizer_ask_both(symbolizer, module, key, fd, &answer);
	if (r < 0)
		return r;
	symbolizer_cache_put(&symbolizer->cache, key, answer.frames, answer.count);
	ret_answer->count = answer.count;
	memcpy(ret_answer->frames, answer.frames, answer.count * sizeof(answer.frames[0]));
	return answer.count > 0 ? 0 : -ENOENT;
}

int symbolizer_find(struct symbolizer *symbolizer, const struct symbolizer_module *module,
		    uint64_t address, struct symbolizer_answer *ret_answer)
{
	const struct symbolizer_hint hint = {
		.build_id = module->build_id,
		.build_id_length = bits_min(module->build_id_length, RESOLVE_BUILD_ID_MAX),
		.link = "",
	};
	struct symbolizer_key key = {.address = address, .user = module->user};
	CLEANUP_CLOSE int fd = -1;
	CLEANUP_CLOSE int loaded = -1;
	CLEANUP_CLOSE int debug = -1;
	int r;

	if (module->build_id_length > RESOLVE_BUILD_ID_MAX)
		return -EINVAL;
	if (hint.build_id_length > 0)
		key.build = hash_bytes(hint.build_id, hint.build_id_length);
	r = symbolizer_open_module(module, &fd, &key.file);
	if (r == 0)
		r = symbolizer_look(symbolizer, module, &key, fd, ret_answer);
	if (r == 0 || hint.build_id_length == 0)
		return r;
	/* The file is gone, or was built anew: the process still has the old one. */
	if ((fd < 0 || r == -ESTALE) && symbolizer_open_loaded(module, &loaded, &key.file) == 0)
		r = symbolizer_look(symbolizer, module, &key, loaded, ret_answer);
	if (r != -ESTALE && r != -ENOENT)
		return r;
	/* Its debug information may have been kept. */
	if (symbolizer_open_debug(symbolizer->config.debug_folder, module, &hint, &debug) < 0)
		return r;
	key.file = (struct symbolizer_identity){.inode = key.build};
	return symbolizer_look(symbolizer, module, &key, debug, ret_answer);
}

void symbolizer_counts(const struct symbolizer *symbolizer, struct symbolizer_counts *ret_counts)
{
	*ret_counts = (struct symbolizer_counts){
		.cached = __atomic_load_n(&symbolizer->cached, __ATOMIC_RELAXED),
		.started = __atomic_load_n(&symbolizer->worker.started, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&symbolizer->worker.lost, __ATOMIC_RELAXED),
	};
}
