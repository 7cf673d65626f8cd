/* SPDX-License-Identifier: Apache-2.0 */

/* Host names, and a token in a file. */

#include "web/server/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answers/healthz.h"
#include "base/cleanup.h"
#include "base/files/heir.h"
#include "base/files/small-file.h"
#include "web/server/address.h"

void auth_init(struct auth *auth, const struct address *address, const char *text, bool details)
{
	const char *colon = strrchr(text, ':');

	*auth = (struct auth){
		.any = address_is_any(address),
		.details = details,
	};
	snprintf(auth->own, sizeof(auth->own), "%.*s", colon ? (int)(colon - text) : 0, text);
	/* A name that is too long counts as unknown. */
	if (auth->any && gethostname(auth->machine, sizeof(auth->machine) - 1) < 0)
		auth->machine[0] = '\0';
}

static bool auth_is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	while (list) {
		const char *comma = strchrnul(list, ',');

		if ((size_t)(comma - list) == length && strncasecmp(list, name, length) == 0)
			return true;
		list = *comma ? comma + 1 : NULL;
	}
	return false;
}

/* Cuts off the port. False: not a port. */
static bool auth_cut_port(char *host)
{
	char *colon = strrchr(host, ':');
	char *bracket = strrchr(host, ']');
	size_t digits;

	if (!colon || (bracket && colon < bracket))
		return true;
	digits = strspn(colon + 1, "0123456789");
	if (digits == 0 || digits > 5 || colon[1 + digits])
		return false;
	*colon = '\0';
	return true;
}

/* A numeric address cannot be a name that an attacker's DNS resolves. */
static bool auth_is_number(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char inner[AUTH_HOST_MAX];
	size_t length = strlen(host);

	if (*host != '[')
		return inet_pton(AF_INET, host, bytes) == 1;
	if (length < 3 || host[length - 1] != ']')
		return false;
	snprintf(inner, sizeof(inner), "%.*s", (int)(length - 2), host + 1);
	return inet_pton(AF_INET6, inner, bytes) == 1;
}

bool auth_is_host(const struct auth *auth, const char *host)
{
	char name[AUTH_HOST_MAX];
	size_t length = strlen(host);

	if (length == 0 || length >= sizeof(name))
		return false;
	memcpy(name, host, length + 1);
	if (!auth_cut_port(name))
		return false;
	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
	    strcmp(name, "[::1]") == 0 || strcasecmp(name, auth->own) == 0)
		return true;
	if (auth->any &&
	    (auth_is_number(name) || (*auth->machine && strcasecmp(name, auth->machine) == 0)))
		return true;
	return *name && auth_is_listed(auth->names, name);
}

bool auth_is_same_origin(const char *host, const char *origin, const char *fetch_site)
{
	static const char *const schemes[] = {"http://", "https://"}; /* a proxy may add TLS */

	if (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0)
		return false;
	for (size_t i = 0; origin && i < sizeof(schemes) / sizeof(*schemes); i++) {
		size_t length = strlen(schemes[i]);

		if (strncasecmp(origin, schemes[i], length) == 0)
			return strcasecmp(origin + length, host) == 0;
	}
	return !origin;
}

/* In constant time, so that timing reveals nothing about the token. */
static bool auth_is_token(const struct auth *auth, const char *token, size_t length)
{
	size_t known;
	unsigned int different;

	/* Acquire: see auth_read_token(). */
	if (!__atomic_load_n(&auth->has_token, __ATOMIC_ACQUIRE))
		return false;
	known = strlen(auth->token);
	different = length != known;
	for (size_t i = 0; i < length && i < AUTH_TOKEN_MAX; i++)
		different |= (unsigned int)(token[i] ^ auth->token[i % known]);
	return different == 0;
}

bool auth_has_token(const struct auth *auth, const char *authorization, const char *token)
{
	static const char scheme[] = "Bearer ";

	if (authorization && strncasecmp(authorization, scheme, strlen(scheme)) == 0) {
		authorization += strlen(scheme);
		authorization += strspn(authorization, " ");
		return auth_is_token(auth, authorization, strlen(authorization));
	}
	return token && auth_is_token(auth, token, strlen(token));
}

bool auth_may_see(const struct auth *auth, const char *authorization, const char *token)
{
	return auth->details || auth_has_token(auth, authorization, token);
}

static int auth_read_token(struct auth *auth, const char *path, int fd, const char **ret_problem)
{
	char text[AUTH_TOKEN_MAX + 2];
	struct stat st;
	ssize_t got;
	size_t length;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IRWXG | S_IRWXO)) ||
	    (st.st_uid != geteuid() && st.st_uid != 0 && !heir_is(path, st.st_uid))) {
		*ret_problem = "the token file must be an ordinary file of this user or root, and "
			       "nobody else's to read (chmod 600)";
		return -EPERM;
	}
	got = small_file_read_fd(fd, text, sizeof(text));
	if (got < 0)
		return (int)got;
	length = strcspn(text, "\r\n");
	for (size_t i = 0; i < length; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			length = 0;
	}
	if (length < AUTH_TOKEN_MIN || length > AUTH_TOKEN_MAX) {
		*ret_problem = "the token file must hold one line of 16 to 256 visible characters";
		return -EINVAL;
	}
	text[length] = '\0';
	memcpy(auth->token, text, length + 1);
	/* Release: whoever sees that there is one sees all of it. */
	__atomic_store_n(&auth->has_token, true, __ATOMIC_RELEASE);
	return 0;
}

/* Created with its final mode: otherwise others could open it before a chmod. */
static int auth_make_token(const char *path)
{
	CLEANUP_CLOSE int fd = -1;
	unsigned char random[AUTH_TOKEN_BYTES];
	char text[2 * AUTH_TOKEN_BYTES + 2];
	int r;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	text[sizeof(text) - 2] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	r = small_file_write_fd(fd, text, sizeof(text) - 1);
	if (r < 0)
		(void)unlink(path); /* part of a token is useless, and the next start would fail */
	return r;
}

int auth_load_token(struct auth *auth, const char *path, const char **ret_problem)
{
	CLEANUP_CLOSE int fd = -1;
	int r;

	if (auth->has_token)
		return 0;
	r = auth_make_token(path);
	if (r < 0 && r != -EEXIST)
		return r;
	/* O_NONBLOCK: the path might be a pipe, placed there to block us. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	/* Also one that an earlier daemon of root left. On failure its user says so. */
	(void)heir_give_path(path);
	return auth_read_token(auth, path, fd, ret_problem);
}

const char *auth_details(const struct auth *auth)
{
	if (auth->details)
		return healthz_details(0);
	return healthz_details(__atomic_load_n(&auth->has_token, __ATOMIC_RELAXED) ? 1 : 2);
}
