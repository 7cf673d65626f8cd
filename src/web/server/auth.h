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

#define GUARD_TOKEN_BYTES 32u /* random ones, written in hexadecimal */
#define GUARD_TOKEN_MIN 16u   /* of one that a person chose */
#define GUARD_TOKEN_MAX 256u
#define GUARD_HOST_MAX 256u

struct address;

struct guard {
	char own[64]; /* the address it listens on, without port */
	bool any;     /* it listens on every address: then any number is the machine's */
	char machine[GUARD_HOST_MAX];    /* its name, if others can reach it; "" = not known */
	const char *names;               /* further ones, separated by commas; lent, or NULL */
	bool details;                    /* everybody may see them */
	char token[GUARD_TOKEN_MAX + 1]; /* "" = none: nobody may */
};

/* @text: the address with its port. */
void guard_init(struct guard *guard, const struct address *address, const char *text, bool details);

/*
 * Reads the token, or makes the file. 0 or a negative errno; -EPERM and -EINVAL are told in
 * @ret_problem, a static text.
 */
int guard_load_token(struct guard *guard, const char *path, const char **ret_problem);

/* Whether a Host header names us. */
bool guard_is_host(const struct guard *guard, const char *host);

/* Whether an Authorization header or a token is right; both may be NULL. */
bool guard_has_token(const struct guard *guard, const char *authorization, const char *token);

/* Whether who shows these may see details: where they are open to everybody, it needs nothing. */
bool guard_may_see(const struct guard *guard, const char *authorization, const char *token);

/* To whom details are given: "open" (everybody), "token" (who has it), "none" (there is none to have). */
const char *guard_details(const struct guard *guard);
