/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file that has cost us a process would do so again, and each time takes the time-out: it is left alone
 * for a while, and so is a user who has several of them.
 */

#include "daemon/symbols-lookup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "book/clock.h"

#define LOOKUP_SECOND UINT64_C(1000000000)

int symbols_lookup_init(struct symbols_lookup *lookup, const struct symbols_config *config,
			int stop_fd)
{
	*lookup = (struct symbols_lookup){.config = config};
	for (size_t i = 0; i < SYMBOLS_LOOKUP_PAIRS; i++)
		lookup->pairs[i].debug = -1;
	return symbols_worker_init(&lookup->worker, config, stop_fd);
}

void symbols_lookup_rest(struct symbols_lookup *lookup)
{
	symbols_worker_end(&lookup->worker);
	for (size_t i = 0; i < SYMBOLS_LOOKUP_PAIRS; i++) {
		if (lookup->pairs[i].debug >= 0)
			(void)close(lookup->pairs[i].debug); /* open for reading only */
		lookup->pairs[i].debug = -1;
	}
}

void symbols_lookup_deinit(struct symbols_lookup *lookup)
{
	symbols_lookup_rest(lookup);
	symbols_worker_deinit(&lookup->worker);
	symbols_cache_deinit(&lookup->cache);
}

static bool lookup_is_same(const struct symbols_identity *a, const struct symbols_identity *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static int lookup_debug_of(const struct symbols_lookup *lookup, const struct symbols_key *key)
{
	for (size_t i = 0; i < SYMBOLS_LOOKUP_PAIRS; i++) {
		const struct symbols_pair *pair = &lookup->pairs[i];

		if (pair->debug >= 0 && pair->user == key->user &&
		    lookup_is_same(&pair->module, &key->file))
			return pair->debug;
	}
	return -1;
}

/* Takes the descriptor, which stays open until others need its place. */
static void lookup_keep_consume(struct symbols_lookup *lookup, const struct symbols_key *key,
				int debug)
{
	struct symbols_pair *pair = &lookup->pairs[lookup->next_pair++ % SYMBOLS_LOOKUP_PAIRS];

	if (pair->debug >= 0)
		(void)close(pair->debug); /* open for reading only */
	*pair = (struct symbols_pair){.module = key->file, .user = key->user, .debug = debug};
}

static bool lookup_is_bad(const struct symbols_lookup *lookup, const struct symbols_key *key)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t of_user = 0;

	for (size_t i = 0; i < SYMBOLS_LOOKUP_BAD_MAX; i++) {
		const struct symbols_bad *bad = &lookup->bad[i];

		if (bad->until_ns <= now || bad->user != key->user)
			continue;
		if (lookup_is_same(&bad->module, &key->file) ||
		    ++of_user >= SYMBOLS_LOOKUP_BAD_USER)
			return true;
	}
	return false;
}

static void lookup_mark_bad(struct symbols_lookup *lookup, const struct symbols_key *key)
{
	lookup->bad[lookup->next_bad++ % SYMBOLS_LOOKUP_BAD_MAX] = (struct symbols_bad){
		.module = key->file,
		.user = key->user,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + SYMBOLS_LOOKUP_BAD_S * LOOKUP_SECOND,
	};
}

static int lookup_ask(struct symbols_lookup *lookup, const struct symbols_key *key, int fd,
		      int debug, struct symbols_wire_answer *ret_answer)
{
	const int files[SYMBOLS_WIRE_FILES] = {fd, debug};
	int r = symbols_worker_ask(&lookup->worker, key->user, key->address, files, ret_answer);

	if (r == -ETIMEDOUT || r == -EPIPE || r == -EBADMSG)
		lookup_mark_bad(lookup, key);
	return r < 0 ? r : ret_answer->result;
}

static bool lookup_is_build(const struct symbols_module *module,
			    const struct symbols_wire_answer *answer)
{
	return module->build_id_length == 0 ||
	       (module->build_id_length == answer->build_id_length &&
		memcmp(module->build_id, answer->build_id, module->build_id_length) == 0);
}

/* Asks for the file, and if it has no debug information, again with that beside it. */
static int lookup_ask_both(struct symbols_lookup *lookup, const struct symbols_module *module,
			   const struct symbols_key *key, int fd,
			   struct symbols_wire_answer *ret_answer)
{
	int debug = lookup_debug_of(lookup, key);
	int r = lookup_ask(lookup, key, fd, debug, ret_answer);
	const struct symbols_hint hint = {
		.build_id = ret_answer->build_id,
		.build_id_length = ret_answer->build_id_length,
		.link = ret_answer->link,
	};

	if (r < 0)
		return r;
	if (!lookup_is_build(module, ret_answer))
		return -ESTALE;
	if (debug >= 0 || ret_answer->has_debug ||
	    symbols_open_debug(lookup->config->debug_folder, module, &hint, &debug) < 0)
		return 0;
	lookup_keep_consume(lookup, key, debug);
	return lookup_ask(lookup, key, fd, debug, ret_answer);
}

/* What is in an open file, from memory or by looking. */
static int lookup_look(struct symbols_lookup *lookup, const struct symbols_module *module,
		       const struct symbols_key *key, int fd, struct symbols_answer *ret_answer)
{
	struct symbols_wire_answer answer = {.count = 0};
	int r = symbols_cache_find(&lookup->cache, key, ret_answer->frames);

	if (r >= 0) {
		__atomic_add_fetch(&lookup->cached, 1, __ATOMIC_RELAXED);
		ret_answer->count = (size_t)r;
		return r > 0 ? 0 : -ENOENT;
	}
	if (lookup_is_bad(lookup, key))
		return -EBUSY;
	r = lookup_ask_both(lookup, module, key, fd, &answer);
	if (r < 0)
		return r;
	symbols_cache_put(&lookup->cache, key, answer.frames, answer.count);
	ret_answer->count = answer.count;
	memcpy(ret_answer->frames, answer.frames, answer.count * sizeof(answer.frames[0]));
	return answer.count > 0 ? 0 : -ENOENT;
}

int symbols_lookup_find(struct symbols_lookup *lookup, const struct symbols_module *module,
			uint64_t address, struct symbols_answer *ret_answer)
{
	const struct symbols_hint hint = {
		.build_id = module->build_id,
		.build_id_length = bits_min(module->build_id_length, RESOLVE_BUILD_ID_MAX),
		.link = "",
	};
	struct symbols_key key = {.address = address, .user = module->user};
	CLEANUP_CLOSE int fd = -1;
	CLEANUP_CLOSE int loaded = -1;
	CLEANUP_CLOSE int debug = -1;
	int r;

	if (module->build_id_length > RESOLVE_BUILD_ID_MAX)
		return -EINVAL;
	if (hint.build_id_length > 0)
		key.build = hash_bytes(hint.build_id, hint.build_id_length);
	r = symbols_open_module(module, &fd, &key.file);
	if (r == 0)
		r = lookup_look(lookup, module, &key, fd, ret_answer);
	if (r == 0 || hint.build_id_length == 0)
		return r;
	/* The file is gone, or was built anew: the process still has the old one. */
	if ((fd < 0 || r == -ESTALE) && symbols_open_loaded(module, &loaded, &key.file) == 0)
		r = lookup_look(lookup, module, &key, loaded, ret_answer);
	if (r != -ESTALE && r != -ENOENT)
		return r;
	/* Its debug information may have been kept. */
	if (symbols_open_debug(lookup->config->debug_folder, module, &hint, &debug) < 0)
		return r;
	key.file = (struct symbols_identity){.inode = key.build};
	return lookup_look(lookup, module, &key, debug, ret_answer);
}

void symbols_lookup_counts(const struct symbols_lookup *lookup, struct symbols_counts *ret_counts)
{
	*ret_counts = (struct symbols_counts){
		.cached = __atomic_load_n(&lookup->cached, __ATOMIC_RELAXED),
		.started = __atomic_load_n(&lookup->worker.started, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&lookup->worker.lost, __ATOMIC_RELAXED),
	};
}
