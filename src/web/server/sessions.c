/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two small tables under one lock. Secrets are compared with every entry and in constant time, so
 * that the time of an answer reveals nothing about them.
 */

#include "web/server/sessions.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/quota.h"

struct session {
	uint32_t references; /* atomic */
	bool ended;          /* atomic */
	uint64_t used_ns;    /* atomic */
	uint64_t begun_ns;
	uint32_t browser;
	struct query_asker asker; /* its peer is ours: @peer */
	void *peer;
	char name[SESSIONS_NAME_SIZE];
};

/* In both tables: what a secret stands for. Of a code, the session that it would begin. */
struct sessions_entry {
	char secret[SESSIONS_SECRET_SIZE];
	struct session *session; /* NULL = free */
	uint64_t since_ns;       /* of a code: when it was given */
};

struct sessions {
	pthread_mutex_t lock;
	struct sessions_entry codes[SESSIONS_CODES_MAX];
	struct sessions_entry open[SESSIONS_MAX];
};

struct sessions *sessions_new(void)
{
	struct sessions *sessions = calloc(1, sizeof(*sessions));

	if (sessions)
		(void)pthread_mutex_init(&sessions->lock, NULL); /* cannot fail on Linux */
	return sessions;
}

struct session *session_ref(struct session *session)
{
	__atomic_add_fetch(&session->references, 1, __ATOMIC_RELAXED);
	return session;
}

struct session *session_unref(struct session *session)
{
	/* Whoever frees it sees what all others did with it before. */
	if (!session || __atomic_sub_fetch(&session->references, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	free(session->peer);
	free(session);
	return NULL;
}

/* Ends what the entry stands for, unless it was handed on. */
static void sessions_clear(struct sessions_entry *entry)
{
	if (entry->session)
		__atomic_store_n(&entry->session->ended, true, __ATOMIC_RELAXED);
	entry->session = session_unref(entry->session);
	explicit_bzero(entry->secret, sizeof(entry->secret));
}

struct sessions *sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return NULL;
	for (size_t i = 0; i < SESSIONS_CODES_MAX; i++)
		sessions_clear(&sessions->codes[i]);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		sessions_clear(&sessions->open[i]);
	pthread_mutex_destroy(&sessions->lock);
	free(sessions);
	return NULL;
}

static void session_cleanup(struct session **session)
{
	session_unref(*session);
}

static struct session *session_new(const struct sessions_wish *wish)
{
	CLEANUP(session_cleanup) struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->references = 1;
	session->browser = wish->browser;
	session->peer = malloc(wish->asker->peer_size);
	if (!session->peer)
		return NULL;
	memcpy(session->peer, wish->asker->peer, wish->asker->peer_size);
	(void)snprintf(session->name, sizeof(session->name), "%s", wish->name); /* may be cut */
	session->asker = *wish->asker;
	session->asker.peer = session->peer;
	session->asker.user = session->name;
	session->asker.is_tcp = true;
	return cleanup_steal(session);
}

const struct query_asker *session_asker(const struct session *session)
{
	return &session->asker;
}

static bool sessions_is_older(uint64_t now_ns, uint64_t since_ns, uint64_t age_ns)
{
	return now_ns > since_ns && now_ns - since_ns >= age_ns;
}

bool session_is_valid(const struct session *session, uint64_t now_ns)
{
	return !__atomic_load_n(&session->ended, __ATOMIC_RELAXED) &&
	       !sessions_is_older(now_ns, session->begun_ns, SESSIONS_AGE_NS) &&
	       !sessions_is_older(now_ns, __atomic_load_n(&session->used_ns, __ATOMIC_RELAXED),
				  SESSIONS_IDLE_NS);
}

void session_use(struct session *session, uint64_t now_ns)
{
	if (session_is_valid(session, now_ns))
		__atomic_store_n(&session->used_ns, now_ns, __ATOMIC_RELAXED);
}

static int sessions_random(char ret_secret[SESSIONS_SECRET_SIZE])
{
	unsigned char random[SESSIONS_SECRET_BYTES];

	/* All or nothing, for so few bytes. */
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(ret_secret + 2 * i, 3, "%02x", random[i]); /* fits */
	explicit_bzero(random, sizeof(random));
	return 0;
}

static bool sessions_is_equal(const char *one, const char *other)
{
	unsigned int different = 0;

	for (size_t i = 0; i < SESSIONS_SECRET_SIZE; i++)
		different |= (unsigned int)(one[i] ^ other[i]);
	return different == 0;
}

/* With the lock held. NULL: none. */
static struct sessions_entry *sessions_search(struct sessions_entry *table, size_t count,
					      const char *secret)
{
	struct sessions_entry *found = NULL;

	/* Its length is no secret. */
	if (strnlen(secret, SESSIONS_SECRET_SIZE) != SESSIONS_SECRET_SIZE - 1 ||
	    secret[SESSIONS_SECRET_SIZE - 1])
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (sessions_is_equal(table[i].secret, secret) && table[i].session)
			found = &table[i];
	}
	return found;
}

/* With the lock held. */
static void sessions_expire(struct sessions *sessions, uint64_t now_ns)
{
	for (size_t i = 0; i < SESSIONS_CODES_MAX; i++) {
		struct sessions_entry *code = &sessions->codes[i];

		if (code->session && sessions_is_older(now_ns, code->since_ns, SESSIONS_CODE_NS))
			sessions_clear(code);
	}
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct sessions_entry *open = &sessions->open[i];

		if (open->session && !session_is_valid(open->session, now_ns))
			sessions_clear(open);
	}
}

/*
 * With the lock held, a place for one more of @user: the user's oldest, if that one has @own_max, or
 * may not have more for the sake of others. NULL: there is none at all.
 */
static struct sessions_entry *sessions_place(struct sessions_entry *table, size_t count,
					     uint64_t own_max, uint32_t user)
{
	struct sessions_entry *empty = NULL, *oldest = NULL;
	uint64_t used = 0, own = 0;

	for (size_t i = 0; i < count; i++) {
		struct sessions_entry *entry = &table[i];

		if (!entry->session) {
			empty = entry;
			continue;
		}
		used++;
		if (entry->session->asker.user_id != user)
			continue;
		own++;
		if (!oldest || entry->since_ns < oldest->since_ns)
			oldest = entry;
	}
	if (own < own_max && quota_rest(count, used, own) > 0)
		return empty;
	if (oldest)
		sessions_clear(oldest);
	return oldest;
}

int sessions_give(struct sessions *sessions, const struct sessions_wish *wish, uint64_t now_ns,
		  char ret_code[SESSIONS_SECRET_SIZE])
{
	CLEANUP(session_cleanup) struct session *session = session_new(wish);
	char secret[SESSIONS_SECRET_SIZE];
	struct sessions_entry *place;
	int r = session ? sessions_random(secret) : -ENOMEM;

	if (r < 0)
		return r;
	pthread_mutex_lock(&sessions->lock);
	sessions_expire(sessions, now_ns);
	place = sessions_place(sessions->codes, SESSIONS_CODES_MAX, SESSIONS_CODES_PER_USER,
			       wish->asker->user_id);
	if (place) {
		place->session = cleanup_steal(session);
		place->since_ns = now_ns;
		memcpy(place->secret, secret, sizeof(secret));
		memcpy(ret_code, secret, sizeof(secret));
	}
	pthread_mutex_unlock(&sessions->lock);
	return place ? 0 : -ENOBUFS;
}

/* With the lock held. */
static int sessions_exchange_locked(struct sessions *sessions, const char *code, uint32_t user,
				    uint64_t now_ns, char ret_secret[SESSIONS_SECRET_SIZE],
				    struct session **ret_session)
{
	struct sessions_entry *given, *place;
	char secret[SESSIONS_SECRET_SIZE];
	int r;

	sessions_expire(sessions, now_ns);
	given = sessions_search(sessions->codes, SESSIONS_CODES_MAX, code);
	if (!given)
		return SESSIONS_UNKNOWN;
	if (given->session->browser != user)
		return SESSIONS_ELSEWHERE;
	r = sessions_random(secret);
	if (r < 0)
		return r;
	place = sessions_place(sessions->open, SESSIONS_MAX, SESSIONS_PER_USER,
			       given->session->asker.user_id);
	if (!place)
		return -ENOBUFS;
	place->session = cleanup_steal(given->session);
	sessions_clear(given);
	place->session->begun_ns = place->session->used_ns = place->since_ns = now_ns;
	memcpy(place->secret, secret, sizeof(secret));
	memcpy(ret_secret, secret, sizeof(secret));
	*ret_session = session_ref(place->session);
	return 0;
}

int sessions_exchange(struct sessions *sessions, const char *code, uint32_t user, uint64_t now_ns,
		      char ret_secret[SESSIONS_SECRET_SIZE], struct session **ret_session)
{
	int r;

	pthread_mutex_lock(&sessions->lock);
	r = sessions_exchange_locked(sessions, code, user, now_ns, ret_secret, ret_session);
	pthread_mutex_unlock(&sessions->lock);
	return r;
}

struct session *sessions_find(struct sessions *sessions, const char *secret, uint32_t user,
			      uint64_t now_ns)
{
	struct session *found = NULL;
	struct sessions_entry *entry;

	pthread_mutex_lock(&sessions->lock);
	sessions_expire(sessions, now_ns);
	entry = sessions_search(sessions->open, SESSIONS_MAX, secret);
	if (entry && entry->session->browser == user) {
		found = session_ref(entry->session);
		session_use(found, now_ns);
	}
	pthread_mutex_unlock(&sessions->lock);
	return found;
}

void sessions_end(struct sessions *sessions, struct session *session)
{
	pthread_mutex_lock(&sessions->lock);
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		if (sessions->open[i].session == session)
			sessions_clear(&sessions->open[i]);
	}
	pthread_mutex_unlock(&sessions->lock);
}
