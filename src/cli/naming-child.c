/* SPDX-License-Identifier: Apache-2.0 */

/* Opening the file, and the child's life. */

#include "cli/naming-child.h"

#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "symbol/demangle.h"
#include "symbol/jail.h"
#include "symbol/mapped-file.h"

#define NAMING_CHILD_MS 2000 /* for one question; the first one reads the whole file */
#define NAMING_CHILD_DEBUG "/usr/lib/debug/.build-id"

/* Where the child finds what it needs. */
enum {
	CHILD_SOCKET = 3,
	CHILD_FILE = 4,
	CHILD_DEBUG = 5,
};

/* Only regular files are opened: opening anything else may do something, or never return. */
static int child_open_seen(int seen, int *ret_fd)
{
	struct stat file;
	char text[64];

	if (fstat(seen, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode))
		return -EINVAL;
	(void)snprintf(text, sizeof(text), "/proc/self/fd/%d", seen); /* fits */
	*ret_fd = open(text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static int child_open(uint32_t pid, const char *path, int *ret_fd)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int root = -1;
	CLEANUP_CLOSE int seen = -1;
	char text[64];

	if (path[0] != '/')
		return -EINVAL;
	if (pid) {
		(void)snprintf(text, sizeof(text), "/proc/%u/root", pid); /* fits */
		root = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -errno;
		how.resolve |= RESOLVE_IN_ROOT;
	}
	seen = (int)syscall(SYS_openat2, pid ? root : AT_FDCWD, path, &how, sizeof(how));
	return seen < 0 ? -errno : child_open_seen(seen, ret_fd);
}

static bool child_is_same(int a, int b)
{
	struct stat first, second;

	return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* What the process has loaded, if its name leads elsewhere by now. @named: what it leads to, -1 = nothing. */
static int child_open_loaded(const struct namer_place *place, int named, int *ret_fd)
{
	CLEANUP_CLOSE int seen = -1;
	int r;

	/* Without a build id nobody would see that the pid means another process by now. */
	if (!place->pid || !place->build_id_length)
		return -ENOENT;
	r = mapped_file_look(place->pid, place->path, place->base, &seen);
	if (r == 0 && named >= 0 && child_is_same(seen, named))
		r = -ENOENT;
	return r < 0 ? r : child_open_seen(seen, ret_fd);
}

/* Separate debug information, where packages put it. */
static int child_open_debug(const struct namer_place *place, int *ret_fd)
{
	char path[sizeof(NAMING_CHILD_DEBUG) + 2 * RESOLVE_BUILD_ID_MAX + 16];
	size_t at = sizeof(NAMING_CHILD_DEBUG);

	if (place->build_id_length < 2 || place->build_id_length > RESOLVE_BUILD_ID_MAX)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "%s/%02x/", NAMING_CHILD_DEBUG, place->build_id[0]);
	at += 3;
	for (uint32_t i = 1; i < place->build_id_length; i++, at += 2)
		(void)snprintf(path + at, sizeof(path) - at, "%02x", place->build_id[i]);
	(void)snprintf(path + at, sizeof(path) - at, ".debug"); /* all of them fit */
	return child_open(0, path, ret_fd);
}

/* Whether the file is the one that was loaded, as far as that can be told. */
static bool child_is_right(const struct resolve *resolve, const struct namer_place *place)
{
	struct resolve_facts facts;

	resolve_facts(resolve, &facts);
	return place->build_id_length == 0 ||
	       (facts.build_id_length == place->build_id_length &&
		memcmp(facts.build_id, place->build_id, place->build_id_length) == 0);
}

static bool child_answer(struct resolve *resolve, bool has_debug)
{
	static struct naming_answer answer;
	uint64_t address;
	struct iovec piece = {.iov_base = &address, .iov_len = sizeof(address)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

	if (recvmsg(CHILD_SOCKET, &message, 0) != sizeof(address))
		return false;
	memset(&answer, 0, sizeof(answer));
	answer.has_debug = has_debug;
	if (resolve)
		answer.count =
			(uint32_t)resolve_find(resolve, address, answer.frames, RESOLVE_FRAMES_MAX);
	piece = (struct iovec){
		.iov_base = &answer,
		.iov_len = offsetof(struct naming_answer, frames) +
			   answer.count * sizeof(answer.frames[0]),
	};
	return sendmsg(CHILD_SOCKET, &message, MSG_NOSIGNAL) >= 0;
}

/*
 * The file with what belongs to it. One that is not there any more, or is another by now, may still have its
 * debug information somewhere. NULL: there is nothing to look into; goes with the process.
 */
static struct resolve *child_look(bool has_debug, const struct namer_place *place,
				  bool *ret_has_debug)
{
	struct resolve *resolve = NULL;
	struct resolve_facts facts;

	*ret_has_debug = has_debug;
	if (resolve_new(&resolve, CHILD_FILE, has_debug ? CHILD_DEBUG : -1) == 0 &&
	    child_is_right(resolve, place)) {
		resolve_facts(resolve, &facts);
		*ret_has_debug = has_debug || facts.has_debug;
		return resolve;
	}
	if (has_debug && resolve_new(&resolve, CHILD_DEBUG, -1) == 0 &&
	    child_is_right(resolve, place))
		return resolve;
	return NULL;
}

/* Never returns. Has nothing of the command's but the three descriptors. */
static _Noreturn void child_run(int socket, int file, int debug, const struct namer_place *place)
{
	struct resolve *resolve;
	bool has_debug;
	char text[16];

	/* By way of high numbers, because one may be where another is to go. */
	socket = fcntl(socket, F_DUPFD, CHILD_DEBUG + 1);
	file = fcntl(file, F_DUPFD, CHILD_DEBUG + 1);
	if (debug >= 0)
		debug = fcntl(debug, F_DUPFD, CHILD_DEBUG + 1);
	if (dup2(socket, CHILD_SOCKET) < 0 || dup2(file, CHILD_FILE) < 0 ||
	    (debug >= 0 && dup2(debug, CHILD_DEBUG) < 0) ||
	    close_range(debug >= 0 ? CHILD_DEBUG + 1 : CHILD_DEBUG, ~0u, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	/* What the libraries do only once, and would not be allowed later. */
	(void)elf_version(EV_CURRENT);
	(void)sysconf(_SC_PHYS_PAGES);
	demangle_name("_Z1fv", text, sizeof(text));
	if (jail_enter() < 0)
		_exit(1);
	resolve = child_look(debug >= 0, place, &has_debug);
	while (child_answer(resolve, has_debug))
		;
	_exit(0);
}

/* The file itself, and if it is gone, the one with its debug information in its place. */
static int child_open_file(const struct namer_place *place, int debug, int *ret_fd)
{
	CLEANUP_CLOSE int named = -1;
	int r = child_open(place->pid, place->path, &named);

	if (child_open_loaded(place, named, ret_fd) == 0)
		return 0;
	if (r == 0)
		*ret_fd = cleanup_steal_fd(&named);
	/* It may have ended meanwhile; what is below our root is another file only if its id is. */
	if (r < 0 && place->pid && place->build_id_length)
		r = child_open(0, place->path, ret_fd);
	if (r < 0 && debug >= 0) {
		*ret_fd = fcntl(debug, F_DUPFD_CLOEXEC, 0);
		r = *ret_fd < 0 ? -errno : 0;
	}
	return r;
}

int naming_child_start(struct naming_child *ret_child, const struct namer_place *place, int debug)
{
	CLEANUP_CLOSE int file = -1;
	CLEANUP_CLOSE int found = -1;
	int sockets[2];
	pid_t pid;
	int r;

	if (debug < 0 && child_open_debug(place, &found) == 0) /* most files have none */
		debug = found;
	r = child_open_file(place, debug, &file);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		child_run(sockets[1], file, debug, place);
	r = pid < 0 ? -errno : 0;
	(void)close(sockets[1]); /* the child's */
	if (r < 0) {
		(void)close(sockets[0]); /* nobody is on the other side */
		return r;
	}
	*ret_child = (struct naming_child){.pid = pid, .socket = sockets[0]};
	return 0;
}

void naming_child_end(struct naming_child *child)
{
	if (child->pid == 0)
		return;
	(void)close(child->socket); /* nothing is on its way that anybody wants */
	(void)kill(child->pid, SIGKILL);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	child->pid = 0;
}

static bool child_is_text(const char *text)
{
	return memchr(text, 0, RESOLVE_TEXT_SIZE);
}

/* Length, bounds, texts that end. */
static int child_check(const struct naming_answer *answer, ssize_t length)
{
	if (length < (ssize_t)offsetof(struct naming_answer, frames) ||
	    answer->count > RESOLVE_FRAMES_MAX ||
	    (size_t)length != offsetof(struct naming_answer, frames) +
				      answer->count * sizeof(answer->frames[0]))
		return -EPROTO;
	for (uint32_t i = 0; i < answer->count; i++) {
		if (!child_is_text(answer->frames[i].function) ||
		    !child_is_text(answer->frames[i].file))
			return -EPROTO;
	}
	return 0;
}

int naming_child_ask(struct naming_child *child, uint64_t address, struct naming_answer *ret_answer)
{
	struct pollfd ready = {.fd = child->socket, .events = POLLIN};
	ssize_t n = send(child->socket, &address, sizeof(address), MSG_NOSIGNAL);
	int r = -EPIPE;

	if (n == sizeof(address)) {
		do
			r = poll(&ready, 1, NAMING_CHILD_MS);
		while (r < 0 && errno == EINTR);
		r = r > 0 ? 0 : -ETIMEDOUT;
	}
	if (r == 0) {
		n = recv(child->socket, ret_answer, sizeof(*ret_answer), MSG_DONTWAIT);
		r = child_check(ret_answer, n);
	}
	if (r < 0)
		naming_child_end(child);
	return r;
}
