/* SPDX-License-Identifier: Apache-2.0 */

/* Checks, words and cookies; sessions.c decides which codes and cookies are right. */

#include "web/server/sign-in.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "answers/document.h"
#include "answers/session.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/health.h"
#include "model/query.h"
#include "web/server/address.h"
#include "web/server/peer-user.h"
#include "web/server/routes.h"
#include "web/server/url.h"
#include "web/server/web-private.h"
#include "web/server/web.h"

/* HttpOnly: no script reads it. Strict: no other site can use it. Gone when the browser ends. */
#define SIGN_IN_COOKIE_RULES "; HttpOnly; SameSite=Strict; Path=/"

static int sign_in_refuse(struct routes_ask *ask, enum routes_outcome outcome, const char *problem)
{
	(void)snprintf(ask->url->problem, sizeof(ask->url->problem), "%s", problem); /* fits */
	return (int)outcome;
}

void sign_in_cookie_name(const char *host, char ret_name[SIGN_IN_NAME_SIZE])
{
	const char *colon = strrchr(host, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	bool has_port = digits > 0 && digits <= 5 && !colon[1 + digits];

	(void)snprintf(ret_name, SIGN_IN_NAME_SIZE, "ttmem-%s", has_port ? colon + 1 : "80");
}

const struct session_row *sign_in_session(const struct query_asker *asker,
					  struct session_row *ret_row)
{
	if (!asker)
		return NULL;
	*ret_row = (struct session_row){asker->user, asker->user_id, asker->sees_all};
	return ret_row;
}

static void sign_in_document(FILE *out, const struct query_asker *asker)
{
	struct session_row row;
	const struct session_answer answer = {sign_in_session(asker, &row)};
	const struct document_about about = {.time_ns = clock_ns(CLOCK_REALTIME)};
	struct emit json = EMIT_INIT(out);

	document_put_about(&json, &session_document, &about, &answer);
}

/* A page of this machine can name the address; the wildcard is none. */
static void sign_in_url(const char *http, char *ret_url, size_t size)
{
	const char *colon = strrchr(http, ':');
	struct address address;
	bool is_any = address_parse(http, &address) == 0 && address_is_any(&address);

	if (is_any)
		(void)snprintf(ret_url, size, "http://%s%s/", *http == '[' ? "[::1]" : "127.0.0.1",
			       colon); /* fits */
	else
		(void)snprintf(ret_url, size, "http://%s/", http); /* fits */
}

/* A link to a port that is another's would tell that other who is meant to come. */
static int sign_in_check_door(struct routes_ask *ask, const struct health *health)
{
	const struct health_door *door = &health->doors[HEALTH_DOOR_HTTP];

	if (!door->is_wanted)
		return sign_in_refuse(ask, ROUTES_UNAVAILABLE,
				      "the daemon serves no HTTP: it runs with --http none");
	if (door->is_open && health->http)
		return 0;
	(void)snprintf(ask->url->problem, sizeof(ask->url->problem),
		       "HTTP is not served on %.60s (%.90s): end what has it, or start ttmemd with "
		       "another --http ADDR:PORT",
		       door->where, *door->problem ? door->problem : "not known yet"); /* fits */
	return ROUTES_UNAVAILABLE;
}

static int sign_in_give(struct routes_ask *ask, char ret_code[SESSIONS_SECRET_SIZE],
			struct sessions_wish *ret_wish)
{
	const struct query_asker *asker = ask->asker;
	bool has_browser = (ask->query->given & QUERY_BROWSER) != 0;
	int r;

	if (asker->is_stranger)
		return sign_in_refuse(
			ask, ROUTES_FORBIDDEN,
			"your user has no number where the daemon runs: nothing is yours");
	if (has_browser && ask->query->browser != asker->user_id && asker->user_id != 0)
		return sign_in_refuse(ask, ROUTES_FORBIDDEN,
				      "only root may make a link for another user's browser");
	ret_wish->asker = asker;
	ret_wish->browser = has_browser ? ask->query->browser : asker->user_id;
	r = sessions_give(ask->provider->sessions, ret_wish, clock_ns(CLOCK_BOOTTIME), ret_code);
	return r == -ENOBUFS ? sign_in_refuse(ask, ROUTES_UNAVAILABLE,
					      "too many users want a link: try again in a minute")
			     : r;
}

int sign_in_link(struct routes_ask *ask, FILE *out)
{
	char code[SESSIONS_SECRET_SIZE], name[SESSIONS_NAME_SIZE], url[ADDRESS_TEXT_SIZE + 16];
	struct sessions_wish wish = {.name = name};
	struct emit json = EMIT_INIT(out);
	struct health health = {0};
	struct open_row row;
	int r;

	if (!ask->provider->sessions)
		return -ENOENT;
	ask->provider->health(ask->provider->context, &health);
	r = sign_in_check_door(ask, &health);
	if (r != 0)
		return r;
	ask->provider->user_name(ask->provider->context, ask->asker->user_id, name, sizeof(name));
	r = sign_in_give(ask, code, &wish);
	if (r != 0)
		return r;
	sign_in_url(health.http, url, sizeof(url));
	row = (struct open_row){
		.url = url,
		.code = code,
		.seconds = SESSIONS_CODE_NS / NS_PER_S,
		.session = {name, wish.asker->user_id, wish.asker->sees_all},
		.browser_id = wish.browser,
	};
	document_put_about(&json, &open_document,
			   &(struct document_about){.time_ns = clock_ns(CLOCK_REALTIME)}, &row);
	explicit_bzero(code, sizeof(code));
	return 0;
}

/* The code of the header "Authorization: Code ..."; NULL = there is none. */
static const char *sign_in_code(const char *authorization)
{
	static const char scheme[] = "Code ";

	if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
		return NULL;
	authorization += strlen(scheme);
	return authorization + strspn(authorization, " ");
}

static int sign_in_exchange(struct routes_ask *ask, char ret_secret[SESSIONS_SECRET_SIZE],
			    struct session **ret_session)
{
	const char *code = sign_in_code(ask->sign_in->authorization);
	int r;

	if (!ask->sign_in->is_same_origin)
		return sign_in_refuse(ask, ROUTES_FORBIDDEN,
				      "a page of another site may not ask for this");
	if (!code)
		return sign_in_refuse(
			ask, ROUTES_UNAUTHORIZED,
			"send the code of \"ttmem open\" as \"Authorization: Code CODE\"");
	if (ask->sign_in->user == PEER_USER_UNKNOWN)
		return sign_in_refuse(
			ask, ROUTES_FORBIDDEN,
			"only browsers on the daemon's machine can sign in; from elsewhere "
			"come through \"ssh -L\"");
	r = sessions_exchange(ask->provider->sessions, code, ask->sign_in->user,
			      clock_ns(CLOCK_BOOTTIME), ret_secret, ret_session);
	switch (r) {
	case SESSIONS_UNKNOWN:
		return sign_in_refuse(
			ask, ROUTES_UNAUTHORIZED,
			ask->web->is_private
				? "each link works once, within a minute: " SIGN_IN_PRIVATE
				: "this link does not work any more: each works once, within a "
				  "minute. Run \"ttmem open\" again");
	case SESSIONS_ELSEWHERE:
		return sign_in_refuse(
			ask, ROUTES_FORBIDDEN,
			"this link is for the browser of another user of this machine");
	case -ENOBUFS:
		return sign_in_refuse(ask, ROUTES_UNAVAILABLE, "too many browsers are signed in");
	default:
		return r;
	}
}

int sign_in_begin(struct routes_ask *ask, FILE *out)
{
	char name[SIGN_IN_NAME_SIZE], secret[SESSIONS_SECRET_SIZE];
	struct sign_in *sign_in = ask->sign_in;
	struct session *session = NULL;
	int r;

	if (!ask->provider->sessions)
		return -ENOENT;
	r = sign_in_exchange(ask, secret, &session);
	if (r != 0)
		return r;
	/* Who comes again with another link is somebody else from now on. */
	if (sign_in->session)
		sessions_end(ask->provider->sessions, sign_in->session);
	session_unref(sign_in->session);
	sign_in->session = session;
	sign_in_cookie_name(sign_in->host, name);
	(void)snprintf(sign_in->cookie, sizeof(sign_in->cookie), "%s=%s%s", name, secret,
		       SIGN_IN_COOKIE_RULES); /* fits */
	explicit_bzero(secret, sizeof(secret));
	sign_in_document(out, session_asker(session));
	return 0;
}

int sign_in_end(struct routes_ask *ask, FILE *out)
{
	char name[SIGN_IN_NAME_SIZE];
	struct sign_in *sign_in = ask->sign_in;

	if (!sign_in->is_same_origin)
		return sign_in_refuse(ask, ROUTES_FORBIDDEN,
				      "a page of another site may not ask for this");
	if (sign_in->session)
		sessions_end(ask->provider->sessions, sign_in->session);
	sign_in_cookie_name(sign_in->host, name);
	(void)snprintf(sign_in->cookie, sizeof(sign_in->cookie), "%s=; Max-Age=0%s", name,
		       SIGN_IN_COOKIE_RULES); /* fits */
	sign_in_document(out, NULL);
	return 0;
}
