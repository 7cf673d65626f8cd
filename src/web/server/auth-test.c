/* SPDX-License-Identifier: Apache-2.0 */

/* Host names, right and wrong tokens, and token files that cannot be trusted. */

#include "web/server/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "web/server/address.h"
#include "web/server/sign-in.h"

static struct auth auth_for(const char *text)
{
	struct address address;
	struct auth auth;

	assert(address_parse(text, &address) == 0);
	auth_init(&auth, &address, text, false);
	return auth;
}

UNIT(own_host_names_are_accepted)
{
	static const char *const ours[] = {
		"localhost", "localhost:1", "LOCALHOST:5392", "127.0.0.1",     "127.0.0.1:5392",
		"[::1]",     "[::1]:80",    "192.168.1.5",    "192.168.1.5:1",
	};
	static const char *const others[] = {
		"",
		"evil.example",
		"evil.example:5392",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"127.0.0.2",
		"localhost:",
		"localhost:x",
		"localhost:123456",
		"localhost:80:80",
		"[::2]",
		"::1",
		"[::1",
		"localhost ",
		"192.168.1.6",
		"user@localhost",
	};
	struct auth auth = auth_for("192.168.1.5:5392");

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		assert(auth_is_host(&auth, ours[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert(!auth_is_host(&auth, others[i]));
}

UNIT(a_machine_with_any_address)
{
	struct auth four = auth_for("0.0.0.0:1"), six = auth_for("[::]:1");

	assert(auth_is_host(&four, "10.1.2.3:1") && auth_is_host(&six, "[fe80::1]"));
	assert(!auth_is_host(&four, "evil.example") && !auth_is_host(&six, "[x]"));
}

UNIT(a_machine_that_others_reach_has_a_name)
{
	struct auth any = auth_for("0.0.0.0:1"), one = auth_for("127.0.0.1:1");
	char name[256] = "";

	assert(gethostname(name, sizeof(name) - 8) == 0 && *name);
	assert(auth_is_host(&any, name));
	memcpy(name + strlen(name), ":5392", sizeof(":5392"));
	assert(auth_is_host(&any, name));
	/* Unreachable from outside, so there is no reason to use the machine's name. */
	assert(strncmp(name, "localhost:", 10) == 0 || !auth_is_host(&one, name));
}

UNIT(names_that_the_operator_lists)
{
	struct auth auth = auth_for("127.0.0.1:1");

	auth.names = "a.example,B.example";
	assert(auth_is_host(&auth, "a.example") && auth_is_host(&auth, "b.EXAMPLE:80"));
	assert(!auth_is_host(&auth, "c.example") && !auth_is_host(&auth, "a.example,B.example"));
	assert(!auth_is_host(&auth, "a.exampl") && !auth_is_host(&auth, "xa.example"));
	auth.names = "";
	assert(!auth_is_host(&auth, ":80") && !auth_is_host(&auth, "x"));
}

UNIT(a_token_is_compared_whole)
{
	struct auth auth = auth_for("127.0.0.1:1");

	assert(!auth_may_see(&auth, NULL, NULL));
	assert(!auth_may_see(&auth, "Bearer ", ""));
	strcpy(auth.token, "0123456789abcdef");
	assert(!auth_may_see(&auth, "Bearer 0123456789abcdef", NULL)); /* not complete yet */
	auth.has_token = true;
	assert(auth_may_see(&auth, "Bearer 0123456789abcdef", NULL));
	assert(auth_may_see(&auth, "bearer  0123456789abcdef", NULL));
	assert(auth_may_see(&auth, NULL, "0123456789abcdef"));
	assert(!auth_may_see(&auth, "Bearer 0123456789abcdeg", NULL));
	assert(!auth_may_see(&auth, "Bearer 0123456789abcde", NULL));
	assert(!auth_may_see(&auth, "Bearer 0123456789abcdef0", NULL));
	assert(!auth_may_see(&auth, "Bearer 0123456789abcdef0123456789abcdef", NULL));
	assert(!auth_may_see(&auth, "Basic 0123456789abcdef", NULL));
	assert(!auth_may_see(&auth, "0123456789abcdef", NULL));
	assert(!auth_may_see(&auth, "Bearer x", "0123456789abcdef"));
	auth.details = true;
	assert(auth_may_see(&auth, NULL, NULL));
	/* Even if details are open to everybody, the token is still checked. */
	assert(!auth_has_token(&auth, NULL, NULL));
	assert(auth_has_token(&auth, "Bearer 0123456789abcdef", NULL));
}

static char path[512];

static int load(struct auth *auth, const char **ret_problem)
{
	*ret_problem = NULL;
	*auth = auth_for("127.0.0.1:1");
	snprintf(path, sizeof(path), "%s/token", unit_dir());
	return auth_load_token(auth, path, ret_problem);
}

static void put(const char *text, mode_t mode)
{
	int fd;

	snprintf(path, sizeof(path), "%s/token", unit_dir());
	(void)unlink(path); /* may not be there */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	assert(fchmod(fd, mode) == 0);
	close(fd);
}

UNIT(a_token_is_made_and_found_again)
{
	struct auth first, second;
	const char *problem;
	struct stat st;

	umask(0);
	assert(load(&first, &problem) == 0 && strlen(first.token) == 64);
	assert(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
	assert(load(&second, &problem) == 0 && strcmp(first.token, second.token) == 0);
	assert(unlink(path) == 0);
	assert(load(&second, &problem) == 0 && strcmp(first.token, second.token) != 0);
}

UNIT(a_token_that_cannot_be_written_yet_is_tried_again)
{
	struct auth auth = auth_for("127.0.0.1:1");
	char folder[512], file[600], token[AUTH_TOKEN_MAX + 1];
	const char *problem = NULL;

	snprintf(folder, sizeof(folder), "%s/later", unit_dir());
	snprintf(file, sizeof(file), "%s/token", folder);
	assert(auth_load_token(&auth, file, &problem) == -ENOENT && !auth.has_token);
	assert(mkdir(folder, 0700) == 0);
	assert(auth_load_token(&auth, file, &problem) == 0 && auth.has_token);
	memcpy(token, auth.token, sizeof(token));
	/* Requests may be using it: it never changes. */
	assert(unlink(file) == 0 && auth_load_token(&auth, file, &problem) == 0);
	assert(strcmp(token, auth.token) == 0);
}

/* A daemon that its own user ran before, and root by hand now. */
UNIT(root_takes_the_token_of_the_folders_owner)
{
	struct auth auth;
	char folder[512], file[600];
	const char *problem;
	struct stat st;

	if (geteuid() != 0)
		unit_skip("only root can give files away");
	snprintf(folder, sizeof(folder), "%s/state", unit_dir());
	snprintf(file, sizeof(file), "%s/token", folder);
	assert(mkdir(folder, 0700) == 0 && chown(folder, 4242, 4242) == 0);
	/* What root makes there is for that user. */
	auth = auth_for("127.0.0.1:1");
	assert(auth_load_token(&auth, file, &problem) == 0);
	assert(stat(file, &st) == 0 && st.st_uid == 4242 && (st.st_mode & 07777) == 0600);
	auth = auth_for("127.0.0.1:1");
	assert(auth_load_token(&auth, file, &problem) == 0 && strlen(auth.token) == 64);
	/* So is what an earlier version left; that of anybody else is not taken. */
	assert(chown(file, 0, 0) == 0);
	auth = auth_for("127.0.0.1:1");
	assert(auth_load_token(&auth, file, &problem) == 0);
	assert(stat(file, &st) == 0 && st.st_uid == 4242);
	assert(chown(folder, 0, 0) == 0);
	auth = auth_for("127.0.0.1:1");
	assert(auth_load_token(&auth, file, &problem) == -EPERM && problem);
}

UNIT(token_files_readable_by_others_are_refused)
{
	static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0666};
	struct auth auth;
	const char *problem;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		put("0123456789abcdef\n", modes[i]);
		assert(load(&auth, &problem) == -EPERM && problem && !*auth.token);
	}
	put("0123456789abcdef\n", 0400);
	assert(load(&auth, &problem) == 0 && strcmp(auth.token, "0123456789abcdef") == 0);
}

UNIT(token_files_without_a_token_are_refused)
{
	struct auth auth;
	const char *problem;
	char text[400];

	put("", 0600);
	assert(load(&auth, &problem) == -EINVAL && problem);
	put("0123456789abcde\n", 0600);
	assert(load(&auth, &problem) == -EINVAL);
	put("0123456789 abcdef\n", 0600);
	assert(load(&auth, &problem) == -EINVAL);
	put("0123456789\001abcdef", 0600);
	assert(load(&auth, &problem) == -EINVAL);
	memset(text, 'a', sizeof(text));
	text[257] = '\0';
	put(text, 0600);
	assert(load(&auth, &problem) == -EINVAL);
	text[256] = '\0';
	put(text, 0600);
	assert(load(&auth, &problem) == 0);
}

UNIT(links_and_pipes_are_not_followed)
{
	struct auth auth;
	const char *problem;

	put("0123456789abcdef\n", 0600);
	{
		char other[600];

		snprintf(other, sizeof(other), "%s.other", path);
		assert(rename(path, other) == 0 && symlink(other, path) == 0);
	}
	assert(load(&auth, &problem) == -ELOOP);
	assert(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	assert(load(&auth, &problem) == -EPERM);
}

UNIT(listen_addresses_are_parsed)
{
	static const char *const wrong[] = {
		"",       "127.0.0.1", ":80",        "localhost:80", "127.0.0.1:65536", "[::1]",
		"::1:80", "[::1:80",   "127.0.0.1:", "127.0.0.1:-1", "1.2.3:80",        "[]:80",
	};
	struct address address;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(address_parse(wrong[i], &address) == -EINVAL);
	assert(address_parse("127.0.0.1:0", &address) == 0 && address_is_loopback(&address));
	assert(address_parse("[::1]:5392", &address) == 0 && address_is_loopback(&address));
	assert(address_parse("0.0.0.0:1", &address) == 0 && address_is_any(&address));
	assert(!address_is_loopback(&address));
}

UNIT(requests_of_other_sites_are_recognized)
{
	static const char host[] = "127.0.0.1:5392";

	assert(auth_is_same_origin(host, NULL, NULL)); /* no browser */
	assert(auth_is_same_origin(host, NULL, "same-origin"));
	assert(auth_is_same_origin(host, NULL, "none"));
	assert(auth_is_same_origin(host, "http://127.0.0.1:5392", "same-origin"));
	assert(auth_is_same_origin("LocalHost", "http://localhost", NULL));
	assert(auth_is_same_origin(host, "https://127.0.0.1:5392", NULL));
	assert(!auth_is_same_origin(host, NULL, "same-site"));
	assert(!auth_is_same_origin(host, NULL, "cross-site"));
	assert(!auth_is_same_origin(host, NULL, ""));
	assert(!auth_is_same_origin(host, "http://127.0.0.1:5392", "cross-site"));
	assert(!auth_is_same_origin(host, "http://127.0.0.1:5393", "same-origin"));
	assert(!auth_is_same_origin(host, "http://127.0.0.1", NULL));
	assert(!auth_is_same_origin(host, "http://localhost:5392", NULL));
	assert(!auth_is_same_origin(host, "http://127.0.0.1:5392.evil.example", NULL));
	assert(!auth_is_same_origin(host, "127.0.0.1:5392", NULL));
	assert(!auth_is_same_origin(host, "null", NULL) && !auth_is_same_origin(host, "", NULL));
}

UNIT(a_cookie_is_named_by_the_port)
{
	static const char *const names[][2] = {
		{"127.0.0.1:5392", "ttmem-5392"}, {"localhost", "ttmem-80"}, {"[::1]", "ttmem-80"},
		{"[::1]:443", "ttmem-443"},       {"x:123456", "ttmem-80"},  {"x:", "ttmem-80"},
		{"x:1;a=b", "ttmem-80"},          {"", "ttmem-80"},
	};
	char name[SIGN_IN_NAME_SIZE];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		sign_in_cookie_name(names[i][0], name);
		assert(strcmp(name, names[i][1]) == 0);
	}
}

UNIT(the_access_to_details_is_described)
{
	struct auth auth = auth_for("127.0.0.1:5392");

	assert(strcmp(auth_details(&auth), "none") == 0);
	auth.has_token = true;
	assert(strcmp(auth_details(&auth), "token") == 0);
	auth.details = true;
	assert(strcmp(auth_details(&auth), "open") == 0);
}
