/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which requests are answered, and who may see details.
 *
 * With DNS rebinding, a foreign web page can make a browser on this machine send us requests under
 * a name that now resolves to 127.0.0.1; the Host header carries that name. So only names that
 * cannot belong to somebody else are accepted: the machine's own, numeric addresses, and those that
 * the operator lists. Details need the token, which is in a file that only the daemon's user can
 * read.
 */

#include <stdbool.h>
#include <stddef.h>

#define AUTH_TOKEN_BYTES 32u /* random ones, written as hexadecimal */
#define AUTH_TOKEN_MIN 16u   /* for one chosen by a person */
#define AUTH_TOKEN_MAX 256u
#define AUTH_HOST_MAX 256u

struct address;

struct auth {
	char own[64];                   /* the address it listens on, without the port */
	bool any;                       /* listens on all addresses: any numeric one is accepted */
	char machine[AUTH_HOST_MAX];    /* its name, if others can reach it; "" = unknown */
	const char *names;              /* further ones, separated by commas; borrowed, or NULL */
	bool details;                   /* open to everybody */
	bool has_token;                 /* atomic, set once; false: no details */
	char token[AUTH_TOKEN_MAX + 1]; /* valid, and never changed, if there is one */
};

/* @text: the address with its port. */
void auth_init(struct auth *auth, const struct address *address, const char *text, bool details);

/*
 * Reads the token, or creates the file, unless there is a token already: may be tried again while
 * others use @auth. 0 or a negative errno; for -EPERM and -EINVAL @ret_problem is a static text.
 */
int auth_load_token(struct auth *auth, const char *path, const char **ret_problem);

/* Whether a Host header names us. */
bool auth_is_host(const struct auth *auth, const char *host);

/*
 * Whether a browser sends the request for one of our own pages, or because its user has typed the
 * address. Cookies also come along with requests of pages on other ports of this machine. Each may be
 * NULL: other programs send neither "Origin" nor "Sec-Fetch-Site".
 */
bool auth_is_same_origin(const char *host, const char *origin, const char *fetch_site);

/* Whether an Authorization header or a token is right; both may be NULL. */
bool auth_has_token(const struct auth *auth, const char *authorization, const char *token);

/* Whether the client may see details: always, if they are open to everybody. */
bool auth_may_see(const struct auth *auth, const char *authorization, const char *token);

/* Who gets details: "open" (everybody), "token" (whoever has it), "none" (there is no token). */
const char *auth_details(const struct auth *auth);
