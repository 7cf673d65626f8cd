/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file that made us lose a process would do so again, at the cost of a time-out each time: it is
 * not tried again for a while, nor are any files of a user who has several such files.
 */

#include "symbol/symbolizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "symbol/symbolizer-cache.h"
#include "symbol/symbolizer-open.h"
#include "symbol/symbolizer-opened.h"
#include "symbol/symbolizer-pool.h"

/* A module whose debug information was looked up, and the file that has it. */
struct symbolizer_pair {
	struct symbolizer_identity module; /* all 0 = this slot is free */
	uint32_t user;
	int debug; /* -1 = none found */
};

struct symbolizer_bad {
	struct symbolizer_identity module;
	uint32_t user;
	uint64_t until_ns;
};

struct symbolizer {
	struct symbolizer_config config;
	struct symbolizer_pool pool;
	struct symbolizer_cache cache;
	struct symbolizer_opened opened;
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
	symbolizer_pool_init(&symbolizer->pool, &symbolizer->config);
	*ret_symbolizer = cleanup_steal(symbolizer);
	return 0;
}

void symbolizer_rest(struct symbolizer *symbolizer)
{
	symbolizer_pool_end(&symbolizer->pool);
	symbolizer_opened_close(&symbolizer->opened);
	for (size_t i = 0; i < SYMBOLIZER_PAIRS; i++) {
		if (symbolizer->pairs[i].debug >= 0)
			(void)close(symbolizer->pairs[i].debug); /* open for reading only */
		symbolizer->pairs[i] = (struct symbolizer_pair){.debug = -1};
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

/* NULL: not looked up, or since evicted. */
static struct symbolizer_pair *symbolizer_pair(struct symbolizer *symbolizer,
					       const struct symbolizer_key *key)
{
	for (size_t i = 0; i < SYMBOLIZER_PAIRS; i++) {
		struct symbolizer_pair *pair = &symbolizer->pairs[i];

		if (pair->user == key->user && symbolizer_is_same(&pair->module, &key->file))
			return pair;
	}
	return NULL;
}

/*
 * The file with a module's debug information, kept open until its slot is reused. A file on this
 * machine may appear at any time, so it is looked for again; the fetcher is asked once.
 */
static int symbolizer_debug(struct symbolizer *symbolizer, const struct symbolizer_module *module,
			    const struct symbolizer_key *key, const struct symbolizer_hint *hint,
			    int *ret_fd)
{
	struct symbolizer_fetcher *fetcher = symbolizer->config.fetcher;
	struct symbolizer_pair *pair = symbolizer_pair(symbolizer, key);
	int debug = -1;
	int r = 0;

	if (!pair || pair->debug < 0) {
		r = symbolizer_open_debug(&symbolizer->config, module, hint, &debug);
		if (r < 0 && !pair && fetcher && module->build_id_length > 0)
			r = fetcher->fetch(fetcher, module, &debug);
		if (!pair)
			pair = &symbolizer->pairs[symbolizer->next_pair++ % SYMBOLIZER_PAIRS];
		if (pair->debug >= 0)
			(void)close(pair->debug); /* the slot's last; open for reading only */
		*pair = (struct symbolizer_pair){
			.module = key->file,
			.user = key->user,
			.debug = r < 0 ? -1 : debug,
		};
	}
	*ret_fd = pair->debug;
	return r;
}

static bool symbolizer_is_bad(const struct symbolizer *symbolizer, const struct symbolizer_key *key)
{
	uint32_t most =
		symbolizer->config.bad_user ? symbolizer->config.bad_user : SYMBOLIZER_BAD_USER;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t of_user = 0;

	for (size_t i = 0; i < SYMBOLIZER_BAD_MAX; i++) {
		const struct symbolizer_bad *bad = &symbolizer->bad[i];

		if (bad->until_ns <= now || bad->user != key->user)
			continue;
		if (symbolizer_is_same(&bad->module, &key->file) || ++of_user >= most)
			return true;
	}
	return false;
}

static void symbolizer_mark_bad(struct symbolizer *symbolizer, const struct symbolizer_key *key)
{
	symbolizer->bad[symbolizer->next_bad++ % SYMBOLIZER_BAD_MAX] = (struct symbolizer_bad){
		.module = key->file,
		.user = key->user,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + SYMBOLIZER_BAD_S * NS_PER_S,
	};
}

static int symbolizer_ask(struct symbolizer *symbolizer, const struct symbolizer_key *key, int fd,
			  int debug, struct symbolizer_wire_answer *ret_answer)
{
	const int files[SYMBOLIZER_WIRE_FILES] = {fd, debug};
	int r = symbolizer_pool_ask(&symbolizer->pool, key, files, ret_answer);

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

/* Asks with the file alone; if it has no debug information, again with its debug file. */
static int symbolizer_ask_both(struct symbolizer *symbolizer,
			       const struct symbolizer_module *module,
			       const struct symbolizer_key *key, int fd,
			       struct symbolizer_wire_answer *ret_answer)
{
	const struct symbolizer_pair *pair = symbolizer_pair(symbolizer, key);
	int debug = pair ? pair->debug : -1;
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
	    symbolizer_debug(symbolizer, module, key, &hint, &debug) < 0)
		return 0;
	return symbolizer_ask(symbolizer, key, fd, debug, ret_answer);
}

/* Looks up an open file, in the cache or by request. */
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

/* The file that was held for us. Return: as symbolizer_find(); 1: there is none of use. */
static int symbolizer_find_held(struct symbolizer *symbolizer,
				const struct symbolizer_module *module,
				const struct symbolizer_key *key,
				struct symbolizer_answer *ret_answer)
{
	struct symbolizer_holder *holder = symbolizer->config.holder;
	CLEANUP_CLOSE int seen = -1;
	CLEANUP_CLOSE int fd = -1;
	struct symbolizer_key held = *key;
	int r;

	if (!holder || !module->book || holder->find(holder, module, &seen) < 0 ||
	    symbolizer_open_held(&symbolizer->config, module, seen, &fd, &held.file) < 0)
		return 1;
	r = symbolizer_look(symbolizer, module, &held, fd, ret_answer);
	return r == -ESTALE ? 1 : r;
}

static int symbolizer_open(struct symbolizer *symbolizer, enum symbolizer_opened_kind kind,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity)
{
	return symbolizer_opened_find(&symbolizer->opened, &symbolizer->config, kind, module,
				      ret_fd, ret_identity);
}

/*
 * Tries the file that the path refers to; if that is gone or was rebuilt, the one that the process
 * still has loaded; and if the process and its root are gone, the path below our root. Return: as
 * symbolizer_find(); -ESTALE if all of them are other builds.
 */
static int symbolizer_find_file(struct symbolizer *symbolizer,
				const struct symbolizer_module *module, struct symbolizer_key *key,
				struct symbolizer_answer *ret_answer)
{
	struct symbolizer_module ours = *module;
	CLEANUP_CLOSE int below = -1;
	int file; /* borrowed */
	int r = symbolizer_open(symbolizer, SYMBOLIZER_OPENED_NAMED, module, &file, &key->file);
	bool is_named = file >= 0;

	if (r == 0)
		r = symbolizer_look(symbolizer, module, key, file, ret_answer);
	/* Only a build id can prove that another file is the right one. */
	if ((is_named && r != -ESTALE) || module->build_id_length == 0 || module->process.pid == 0)
		return r;
	if (symbolizer_open(symbolizer, SYMBOLIZER_OPENED_LOADED, module, &file, &key->file) == 0)
		return symbolizer_look(symbolizer, module, key, file, ret_answer);
	ours.process.pid = 0;
	if (!is_named &&
	    symbolizer_open_module(&symbolizer->config, &ours, &below, &key->file) == 0)
		return symbolizer_look(symbolizer, module, key, below, ret_answer);
	return r;
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
	int debug, r;

	if (module->build_id_length > RESOLVE_BUILD_ID_MAX)
		return -EINVAL;
	if (hint.build_id_length > 0)
		key.build = hash_bytes(hint.build_id, hint.build_id_length);
	/* It is the right one even if others have its name by now and it has no build id. */
	r = symbolizer_find_held(symbolizer, module, &key, ret_answer);
	if (r <= 0 || module->only_held)
		return r <= 0 ? r : -ENOENT;
	r = symbolizer_find_file(symbolizer, module, &key, ret_answer);
	if (hint.build_id_length == 0 || (r != -ESTALE && key.file.inode))
		return r;
	/* The file is gone. Its debug information may still exist. */
	key.file = (struct symbolizer_identity){.inode = key.build};
	if (symbolizer_debug(symbolizer, module, &key, &hint, &debug) < 0)
		return r;
	key.file.size = 1; /* the debug file itself, as a key distinct from the module's */
	return symbolizer_look(symbolizer, module, &key, debug, ret_answer);
}

int symbolizer_demangle(struct symbolizer *symbolizer, const char *name, char *ret_text)
{
	static const int none[SYMBOLIZER_WIRE_FILES] = {-1, -1};
	struct symbolizer_wire_request request = {.kind = SYMBOLIZER_WIRE_DEMANGLE};
	struct symbolizer_wire_answer answer;
	size_t size = strlen(name) + 1;
	int r;

	if (size > sizeof(request.name))
		return -ENAMETOOLONG;
	memcpy(request.name, name, size);
	r = symbolizer_worker_ask(&symbolizer->pool.workers[0], geteuid(), &request, none, &answer);
	if (r == 0)
		memcpy(ret_text, answer.text, strlen(answer.text) + 1);
	return r;
}

void symbolizer_counts(const struct symbolizer *symbolizer, struct symbolizer_counts *ret_counts)
{
	struct symbolizer_counts counts = {
		.cached = __atomic_load_n(&symbolizer->cached, __ATOMIC_RELAXED),
	};

	symbolizer_pool_count(&symbolizer->pool, &counts);
	*ret_counts = counts;
}
