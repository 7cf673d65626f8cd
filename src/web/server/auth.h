/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may ask, and who may see details.
 *
 * A web page from elsewhere can make a browser on this machine talk to us under a name that suddenly
 * means 127.0.0.1; its requests carry that name in their Host header. So only names that cannot be
 * somebody else's are answered: the machine's own, numbers, and those that the operator lists. Details need the token, which is in a file that only the daemon's user
 * can read.
 */

#include <stdbool.h>
#include <stddef.h>

#define AUTH_TOKEN_BYTES 32u /* random ones, written in hexadecimal */
#define AUTH_TOKEN_MIN 16u   /* of one that a person chose */
#define AUTH_TOKEN_MAX 256u
#define AUTH_HOST_MAX 256u

struct address;

struct auth {
	char own[64]; /* the address it listens on, without port */
	bool any;     /* it listens on every address: then any number is the machine's */
	char machine[AUTH_HOST_MAX];    /* its name, if others can reach it; "" = not known */
	const char *names;              /* further ones, separated by commas; lent, or NULL */
	bool details;                   /* everybody may see them */
	char token[AUTH_TOKEN_MAX + 1]; /* "" = none: nobody may */
};

/* @text: the address with its port. */
void auth_init(struct auth *auth, const struct address *address, const char *text, bool details);

/*
 * Reads the token, or makes the file. 0 or a negative errno; -EPERM and -EINVAL are told in
 * @ret_problem, a static text.
 */
int auth_load_token(struct auth *auth, const char *path, const char **ret_problem);

/* Whether a Host header names us. */
bool auth_is_host(const struct auth *auth, const char *host);

/* Whether an Authorization header or a token is right; both may be NULL. */
bool auth_has_token(const struct auth *auth, const char *authorization, const char *token);

/* Whether who shows these may see details: where they are open to everybody, it needs nothing. */
bool auth_may_see(const struct auth *auth, const char *authorization, const char *token);

/* To whom details are given: "open" (everybody), "token" (who has it), "none" (there is none to have). */
const char *auth_details(const struct auth *auth);
