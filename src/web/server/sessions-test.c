/* SPDX-License-Identifier: Apache-2.0 */

/* Codes and sessions by a clock of the test's: once, not too late, not too many, for one user only. */

#include "web/server/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"

#define NOW (100 * NS_PER_S)

/* The web knows only its size. */
struct access_peer {
	char rights[16];
};

static int give(struct sessions *sessions, uint32_t user, uint64_t now, char *ret_code)
{
	const struct access_peer peer = {"what it may see"};
	const struct query_asker asker = {
		.peer = &peer, .peer_size = sizeof(peer), .user_id = user, .came_ns = 7};
	const struct sessions_wish wish = {.asker = &asker, .name = "somebody", .browser = user};

	return sessions_give(sessions, &wish, now, ret_code);
}

/* A session of a user, at that time. */
static struct session *begin(struct sessions *sessions, uint32_t user, uint64_t now,
			     char *ret_secret)
{
	char code[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;

	assert(give(sessions, user, now, code) == 0);
	assert(sessions_exchange(sessions, code, user, now, ret_secret, &session) == 0);
	return session;
}

static bool has(struct sessions *sessions, const char *secret, uint32_t user, uint64_t now)
{
	struct session *session = sessions_find(sessions, secret, user, now);
	bool is_there = session != NULL;

	session_unref(session);
	return is_there;
}

UNIT(a_code_works_once)
{
	struct sessions *sessions = sessions_new();
	char code[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE], again[SESSIONS_SECRET_SIZE];
	struct session *session = NULL, *none = NULL;

	assert(give(sessions, 1000, NOW, code) == 0);
	assert(strlen(code) == 64 && strspn(code, "0123456789abcdef") == 64);
	assert(sessions_exchange(sessions, code, 1000, NOW, secret, &session) == 0);
	assert(strcmp(code, secret) != 0);
	assert(sessions_exchange(sessions, code, 1000, NOW, again, &none) == SESSIONS_UNKNOWN);
	assert(!none && has(sessions, secret, 1000, NOW));
	assert(!has(sessions, code, 1000, NOW)); /* a code is no cookie */
	assert(sessions_exchange(sessions, secret, 1000, NOW, again, &none) == SESSIONS_UNKNOWN);
	session_unref(session);
	sessions_free(sessions);
}

UNIT(a_session_has_the_rights_of_who_asked)
{
	struct sessions *sessions = sessions_new();
	char secret[SESSIONS_SECRET_SIZE];
	struct session *session = begin(sessions, 1000, NOW, secret);
	const struct query_asker *asker;

	/* They outlive the session, for what is still being answered. */
	sessions_free(sessions);
	asker = session_asker(session);
	assert(asker->user_id == 1000 && !asker->sees_all && asker->is_tcp);
	assert(strcmp(asker->user, "somebody") == 0);
	assert(strcmp(asker->peer->rights, "what it may see") == 0);
	assert(!session_is_valid(session, NOW));
	session_unref(session);
}

UNIT(only_the_browser_of_that_user_can_use_it)
{
	struct sessions *sessions = sessions_new();
	char code[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;

	assert(give(sessions, 1000, NOW, code) == 0);
	/* Others can read it in a command line: that must not end it either. */
	assert(sessions_exchange(sessions, code, 1001, NOW, secret, &session) ==
	       SESSIONS_ELSEWHERE);
	assert(sessions_exchange(sessions, code, 0, NOW, secret, &session) == SESSIONS_ELSEWHERE);
	assert(sessions_exchange(sessions, code, 1000, NOW, secret, &session) == 0);
	assert(!has(sessions, secret, 1001, NOW) && !has(sessions, secret, 0, NOW));
	assert(has(sessions, secret, 1000, NOW));
	session_unref(session);
	sessions_free(sessions);
}

UNIT(root_can_name_the_user_of_the_browser)
{
	struct sessions *sessions = sessions_new();
	const struct access_peer peer = {"all"};
	const struct query_asker root = {
		.peer = &peer, .peer_size = sizeof(peer), .user_id = 0, .sees_all = true};
	const struct sessions_wish wish = {.asker = &root, .name = "root", .browser = 1000};
	char code[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;

	assert(sessions_give(sessions, &wish, NOW, code) == 0);
	assert(sessions_exchange(sessions, code, 0, NOW, secret, &session) == SESSIONS_ELSEWHERE);
	assert(sessions_exchange(sessions, code, 1000, NOW, secret, &session) == 0);
	assert(session_asker(session)->sees_all && session_asker(session)->user_id == 0);
	session_unref(session);
	sessions_free(sessions);
}

UNIT(a_code_expires)
{
	struct sessions *sessions = sessions_new();
	char code[SESSIONS_SECRET_SIZE], late[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;

	assert(give(sessions, 1000, NOW, code) == 0 && give(sessions, 1000, NOW, late) == 0);
	assert(sessions_exchange(sessions, code, 1000, NOW + SESSIONS_CODE_NS - 1, secret,
				 &session) == 0);
	session = session_unref(session);
	assert(sessions_exchange(sessions, late, 1000, NOW + SESSIONS_CODE_NS, secret, &session) ==
	       SESSIONS_UNKNOWN);
	sessions_free(sessions);
}

UNIT(a_session_expires_when_it_is_idle)
{
	struct sessions *sessions = sessions_new();
	char secret[SESSIONS_SECRET_SIZE];
	struct session *session = begin(sessions, 1000, NOW, secret);
	uint64_t now = NOW + SESSIONS_IDLE_NS - 1;

	assert(has(sessions, secret, 1000, now));
	now += SESSIONS_IDLE_NS - 1;
	session_use(session, now); /* a stream */
	assert(session_is_valid(session, now + SESSIONS_IDLE_NS - 1));
	assert(!session_is_valid(session, now + SESSIONS_IDLE_NS));
	session_use(session, now + SESSIONS_IDLE_NS); /* too late */
	assert(!has(sessions, secret, 1000, now + SESSIONS_IDLE_NS));
	session_unref(session);
	sessions_free(sessions);
}

UNIT(a_session_that_is_used_ends_all_the_same)
{
	struct sessions *sessions = sessions_new();
	char secret[SESSIONS_SECRET_SIZE];
	struct session *session = begin(sessions, 1000, NOW, secret);
	uint64_t now = NOW;

	for (; now < NOW + SESSIONS_AGE_NS; now += SESSIONS_IDLE_NS / 2)
		assert(has(sessions, secret, 1000, now));
	assert(!has(sessions, secret, 1000, NOW + SESSIONS_AGE_NS));
	assert(!session_is_valid(session, NOW + SESSIONS_AGE_NS));
	session_unref(session);
	sessions_free(sessions);
}

UNIT(signing_out_ends_one_session)
{
	struct sessions *sessions = sessions_new();
	char one[SESSIONS_SECRET_SIZE], other[SESSIONS_SECRET_SIZE];
	struct session *first = begin(sessions, 1000, NOW, one);
	struct session *second = begin(sessions, 1000, NOW, other);

	sessions_end(sessions, first);
	assert(!has(sessions, one, 1000, NOW) && has(sessions, other, 1000, NOW));
	assert(!session_is_valid(first, NOW) && session_is_valid(second, NOW));
	sessions_end(sessions, first);
	session_unref(first);
	session_unref(second);
	sessions_free(sessions);
}

UNIT(a_user_has_a_few_codes_and_the_oldest_goes)
{
	struct sessions *sessions = sessions_new();
	char codes[SESSIONS_CODES_PER_USER + 1][SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;

	for (uint32_t i = 0; i <= SESSIONS_CODES_PER_USER; i++)
		assert(give(sessions, 1000, NOW + i, codes[i]) == 0);
	assert(sessions_exchange(sessions, codes[0], 1000, NOW, secret, &session) ==
	       SESSIONS_UNKNOWN);
	for (uint32_t i = 1; i <= SESSIONS_CODES_PER_USER; i++) {
		assert(sessions_exchange(sessions, codes[i], 1000, NOW, secret, &session) == 0);
		session = session_unref(session);
	}
	sessions_free(sessions);
}

UNIT(a_user_has_a_few_sessions_and_the_oldest_goes)
{
	struct sessions *sessions = sessions_new();
	struct session *all[SESSIONS_PER_USER + 1];
	char secrets[SESSIONS_PER_USER + 1][SESSIONS_SECRET_SIZE];

	for (uint32_t i = 0; i <= SESSIONS_PER_USER; i++)
		all[i] = begin(sessions, 1000, NOW + i, secrets[i]);
	for (uint32_t i = 0; i <= SESSIONS_PER_USER; i++) {
		assert(has(sessions, secrets[i], 1000, NOW) == (i > 0));
		assert(session_is_valid(all[i], NOW) == (i > 0));
		session_unref(all[i]);
	}
	sessions_free(sessions);
}

UNIT(who_takes_all_leaves_something_for_others)
{
	struct sessions *sessions = sessions_new();
	char code[SESSIONS_SECRET_SIZE], victim[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;

	assert(give(sessions, 1000, NOW, victim) == 0);
	for (int i = 0; i < 10000; i++)
		assert(give(sessions, 1001, NOW, code) == 0);
	assert(sessions_exchange(sessions, victim, 1000, NOW, secret, &session) == 0);
	session_unref(session);
	assert(give(sessions, 1002, NOW, code) == 0);
	sessions_free(sessions);
}

UNIT(the_number_of_all_codes_is_bounded)
{
	struct sessions *sessions = sessions_new();
	char code[SESSIONS_SECRET_SIZE], mine[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct session *session = NULL;
	uint32_t given = 0;
	int r = 0;

	assert(give(sessions, 1, NOW, mine) == 0);
	for (uint32_t user = 2; r == 0; user++) {
		r = give(sessions, user, NOW, code);
		given += r == 0;
	}
	assert(r == -ENOBUFS && given < SESSIONS_CODES_MAX && given > SESSIONS_CODES_MAX / 2);
	/* Nobody loses a code by that, and a minute later there is room again. */
	assert(sessions_exchange(sessions, mine, 1, NOW, secret, &session) == 0);
	session_unref(session);
	assert(give(sessions, 100000, NOW + SESSIONS_CODE_NS, code) == 0);
	sessions_free(sessions);
}

UNIT(what_is_no_secret_finds_nothing)
{
	static const char *const wrong[] = {
		"", "0", "0000000000000000000000000000000000000000000000000000000000000000",
		"00000000000000000000000000000000000000000000000000000000000000000"};
	struct sessions *sessions = sessions_new();
	char code[SESSIONS_SECRET_SIZE], secret[SESSIONS_SECRET_SIZE],
		near[SESSIONS_SECRET_SIZE + 1];
	struct session *session = NULL;

	assert(give(sessions, 1000, NOW, code) == 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert(!sessions_find(sessions, wrong[i], 1000, NOW));
		assert(sessions_exchange(sessions, wrong[i], 1000, NOW, secret, &session) ==
		       SESSIONS_UNKNOWN);
	}
	for (size_t i = 0; i < SESSIONS_SECRET_SIZE - 1; i++) {
		memcpy(near, code, SESSIONS_SECRET_SIZE);
		near[i] = near[i] == '0' ? '1' : '0';
		assert(sessions_exchange(sessions, near, 1000, NOW, secret, &session) ==
		       SESSIONS_UNKNOWN);
	}
	(void)snprintf(near, sizeof(near), "%s0", code);
	assert(sessions_exchange(sessions, near, 1000, NOW, secret, &session) == SESSIONS_UNKNOWN);
	sessions_free(sessions);
}
