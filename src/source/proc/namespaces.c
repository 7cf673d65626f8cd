/* SPDX-License-Identifier: Apache-2.0 */

/* Follows namespaces up to ours with the ioctls of nsfs. */

#include "source/proc/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"

#define NAMESPACES_DEPTH_MAX 32 /* as in the kernel */
#define NAMESPACES_FILE 8192u   /* of /proc/PID/status and uid_map */
#define NAMESPACES_PATH 64

/* From Linux 6.11; the headers of Debian 12 are older. */
#define NAMESPACES_PID_FROM _IOR(0xb7, 0x6, int)
#define NAMESPACES_PID_IN _IOR(0xb7, 0x8, int)
#define NAMESPACES_PIDFD_PID _IO(0xff, 5)
#define NAMESPACES_PIDFD_USER _IO(0xff, 9)

struct namespaces_chain {
	uint64_t inodes[NAMESPACES_DEPTH_MAX]; /* innermost first; without ours */
	uint64_t births[NAMESPACES_DEPTH_MAX]; /* 0 = not needed */
	size_t count;
	bool is_outside; /* it does not lead to ours */
};

static int namespaces_file(const struct namespaces *namespaces, const char *path, char *ret_text,
			   size_t size)
{
	ssize_t n = small_file_read(namespaces->proc.root, path, ret_text, size);

	return n < 0 ? (int)n : 0;
}

static int namespaces_file_of(const struct namespaces *namespaces, uint32_t pid, const char *name,
			      char *ret_text, size_t size)
{
	char path[NAMESPACES_PATH];

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/%s", pid, name); /* fits */
	return namespaces_file(namespaces, path, ret_text, size);
}

static int namespaces_inode(const struct namespaces *namespaces, const char *path,
			    uint64_t *ret_inode)
{
	struct stat st;

	if (fstatat(namespaces->proc.root, path, &st, 0) < 0)
		return -errno;
	*ret_inode = st.st_ino;
	return 0;
}

/* The first line of a full map, which has room for every user: "0 0 4294967295". */
static bool namespaces_maps_all(const char *map)
{
	uint32_t inside, outside, count;

	return sscanf(map, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) == 3 &&
	       inside == 0 && count == UINT32_MAX;
}

int namespaces_init(struct namespaces *namespaces)
{
	struct namespaces made = {.proc = {.is_real = true}};
	char text[NAMESPACES_FILE];
	uint64_t overflow = 65534;
	int r;

	made.proc.root = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (made.proc.root < 0)
		return -errno;
	r = namespaces_inode(&made, "self/ns/user", &made.user);
	if (r == 0)
		r = namespaces_inode(&made, "self/ns/pid", &made.pid);
	if (r == 0)
		r = namespaces_file(&made, "sys/kernel/random/boot_id", text, sizeof(text));
	if (r == 0)
		(void)snprintf(made.boot, sizeof(made.boot), "%.8s", text);
	if (r == 0)
		r = namespaces_file(&made, "self/uid_map", text, sizeof(text));
	if (r < 0) {
		(void)close(made.proc.root); /* nothing was written to it */
		return r;
	}
	made.has_overflow = !namespaces_maps_all(text);
	if (namespaces_file(&made, "sys/kernel/overflowuid", text, sizeof(text)) == 0) {
		text[strcspn(text, "\n")] = '\0';
		(void)text_parse_u64(text, &overflow); /* else the kernel's default */
	}
	made.overflow = (uint32_t)overflow;
	*namespaces = made;
	return 0;
}

uint64_t namespaces_our_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

void namespaces_deinit(struct namespaces *namespaces)
{
	proc_close(&namespaces->proc);
}

/*
 * Finds the first process of a pid namespace the long way, for kernels before 6.11. Its processes
 * may have parents outside, so that following those need not lead to it.
 */
static uint32_t namespaces_search_init(const struct namespaces *namespaces, uint64_t inode)
{
	DIR *listing = proc_list(&namespaces->proc, ".");
	char path[NAMESPACES_PATH], target[NAMESPACES_PATH], wanted[NAMESPACES_PATH];
	uint32_t pid, found = 0;

	if (!listing)
		return 0;
	(void)snprintf(wanted, sizeof(wanted), "pid:[%" PRIu64 "]", inode);
	while (!found && (pid = proc_next(listing))) {
		struct proc_facts facts;
		ssize_t n;

		(void)snprintf(path, sizeof(path), "%" PRIu32 "/ns/pid", pid);
		n = readlinkat(namespaces->proc.root, path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, wanted) == 0 && proc_read(&namespaces->proc, pid, &facts) == 0 &&
		    facts.ns_pid == 1)
			found = pid;
	}
	(void)closedir(listing); /* nothing was written to it */
	return found;
}

/* When the first process of a pid namespace started; 0 = it has ended. */
static uint64_t namespaces_birth(const struct namespaces *namespaces, int fd, uint64_t inode)
{
	int pid = ioctl(fd, NAMESPACES_PID_FROM, 1);

	if (pid < 0 && errno == ENOTTY)
		pid = (int)namespaces_search_init(namespaces, inode);
	return pid > 0 ? proc_start_ticks(&namespaces->proc, (uint32_t)pid) : 0;
}

/* Follows a namespace up to ours. Consumes the descriptor. 0 or a negative errno. */
static int namespaces_follow_consume(const struct namespaces *namespaces, int fd, bool is_pid,
				     struct namespaces_chain *ret_chain)
{
	CLEANUP_CLOSE int owned = fd;
	uint64_t ours = is_pid ? namespaces->pid : namespaces->user;
	struct namespaces_chain chain = {.count = 0};

	for (;;) {
		struct stat st;
		int above;

		if (fstat(owned, &st) < 0)
			return -errno;
		if (st.st_ino == ours)
			break;
		if (chain.count == NAMESPACES_DEPTH_MAX)
			return -EOVERFLOW;
		chain.inodes[chain.count++] = st.st_ino;
		above = ioctl(owned, NS_GET_PARENT);
		/* The kernel does not show what is above or beside ours. */
		chain.is_outside = above < 0;
		if (above < 0)
			break;
		if (is_pid) {
			chain.births[chain.count - 1] =
				namespaces_birth(namespaces, owned, st.st_ino);
			if (!chain.births[chain.count - 1]) {
				(void)close(above); /* nothing was written to it */
				return -ESRCH;
			}
		}
		(void)close(owned); /* likewise */
		owned = above;
	}
	*ret_chain = chain;
	return 0;
}

/* Appends one half of the text. False: no room. */
static bool namespaces_put(const struct namespaces *namespaces,
			   const struct namespaces_chain *chain, char *text, size_t *length)
{
	size_t used = *length;

	if (chain->count > 0)
		used += (size_t)snprintf(text + used, NAMESPACES_SIZE - used, "%s",
					 namespaces->boot);
	for (size_t i = chain->is_outside ? 1 : chain->count; i > 0; i--) {
		if (used >= NAMESPACES_SIZE)
			return false;
		used += (size_t)snprintf(text + used, NAMESPACES_SIZE - used, "%c%" PRIu64,
					 chain->is_outside ? '^' : '/', chain->inodes[i - 1]);
		if (chain->births[i - 1] && !chain->is_outside && used < NAMESPACES_SIZE)
			used += (size_t)snprintf(text + used, NAMESPACES_SIZE - used, ".%" PRIu64,
						 chain->births[i - 1]);
	}
	*length = used;
	return used < NAMESPACES_SIZE;
}

/* Writes the text of two namespaces. Consumes the descriptors. False: not known. */
static bool namespaces_write_consume(const struct namespaces *namespaces, int user_fd, int pid_fd,
				     char ret_text[NAMESPACES_SIZE])
{
	struct namespaces_chain users = {.count = 0}, pids = {.count = 0};
	char text[NAMESPACES_SIZE];
	size_t length = 0;
	int r = namespaces_follow_consume(namespaces, user_fd, false, &users);
	int s = namespaces_follow_consume(namespaces, pid_fd, true, &pids);

	if (r < 0 || s < 0)
		return false;
	text[0] = '\0';
	if (users.count > 0 || pids.count > 0) {
		if (!namespaces_put(namespaces, &users, text, &length) ||
		    length + 1 >= sizeof(text))
			return false;
		text[length++] = '|';
		text[length] = '\0';
		if (!namespaces_put(namespaces, &pids, text, &length))
			return false;
	}
	memcpy(ret_text, text, sizeof(text));
	return true;
}

/* How many pids the line "NSpid:" of /proc/PID/status has: one for each namespace from ours on. */
static size_t namespaces_levels(const char *status)
{
	const char *at = strstr(status, "\nNSpid:");
	size_t levels = 0;

	if (!at)
		return 0;
	at += strlen("\nNSpid:");
	while (*at == '\t') {
		levels++;
		at++;
		at += strspn(at, "0123456789");
	}
	return levels;
}

/*
 * Whether a process is in our namespaces, for a daemon that may not look at it. A user namespace
 * with the same map of users is not told from ours; only who is root in ours can make one that
 * maps everybody.
 */
static bool namespaces_seem_ours(const struct namespaces *namespaces, uint32_t pid)
{
	static const char *const maps[] = {"uid_map", "gid_map"};
	char ours[NAMESPACES_FILE], theirs[NAMESPACES_FILE], path[NAMESPACES_PATH];

	if (namespaces_file_of(namespaces, pid, "status", theirs, sizeof(theirs)) < 0 ||
	    namespaces_levels(theirs) != 1)
		return false;
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		(void)snprintf(path, sizeof(path), "self/%s", maps[i]);
		if (namespaces_file(namespaces, path, ours, sizeof(ours)) < 0 ||
		    namespaces_file_of(namespaces, pid, maps[i], theirs, sizeof(theirs)) < 0 ||
		    !*ours || strcmp(ours, theirs) != 0)
			return false;
	}
	return true;
}

static int namespaces_open(const struct namespaces *namespaces, uint32_t pid, const char *name)
{
	char path[NAMESPACES_PATH];

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/ns/%s", pid, name);
	return openat(namespaces->proc.root, path, O_RDONLY | O_CLOEXEC);
}

void namespaces_read(const struct namespaces *namespaces, uint32_t pid,
		     char ret_text[NAMESPACES_SIZE])
{
	CLEANUP_CLOSE int user_fd = namespaces_open(namespaces, pid, "user");
	CLEANUP_CLOSE int pid_fd = namespaces_open(namespaces, pid, "pid");
	bool is_known;

	if (user_fd >= 0 && pid_fd >= 0) {
		is_known = namespaces_write_consume(namespaces, cleanup_steal_fd(&user_fd),
						    cleanup_steal_fd(&pid_fd), ret_text);
	} else {
		is_known = namespaces_seem_ours(namespaces, pid);
		*ret_text = '\0';
	}
	if (!is_known)
		memcpy(ret_text, NAMESPACES_UNKNOWN, sizeof(NAMESPACES_UNKNOWN));
}

void namespaces_read_pidfd(const struct namespaces *namespaces, int pid_fd,
			   char ret_text[NAMESPACES_SIZE], bool *ret_is_above)
{
	CLEANUP_CLOSE int users = ioctl(pid_fd, NAMESPACES_PIDFD_USER, 0);
	CLEANUP_CLOSE int pids = ioctl(pid_fd, NAMESPACES_PIDFD_PID, 0);
	bool is_above;

	*ret_is_above = false;
	memcpy(ret_text, NAMESPACES_UNKNOWN, sizeof(NAMESPACES_UNKNOWN));
	if (users < 0 || pids < 0)
		return;
	/* Whoever has a number for us is in our pid namespace or above it. */
	is_above = ioctl(pids, NAMESPACES_PID_IN, getpid()) > 0;
	if (namespaces_write_consume(namespaces, cleanup_steal_fd(&users), cleanup_steal_fd(&pids),
				     ret_text))
		*ret_is_above = is_above;
}

bool namespaces_is_root(const struct namespaces *namespaces, uint32_t pid, uint32_t uid)
{
	char text[NAMESPACES_FILE], *rest = text;
	const char *line;

	if (namespaces_file_of(namespaces, pid, "uid_map", text, sizeof(text)) < 0)
		return false;
	while ((line = strsep(&rest, "\n"))) {
		uint32_t inside, outside, count;

		if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) ==
			    3 &&
		    inside == 0 && count > 0 && outside == uid)
			return true;
	}
	return false;
}

static bool namespaces_is_known(const char *text)
{
	return text && strcmp(text, NAMESPACES_UNKNOWN) != 0;
}

bool namespaces_has_our_users(const char *text)
{
	return namespaces_is_known(text) && (!*text || *text == '|');
}

bool namespaces_has_our_pids(const char *text)
{
	const char *bar = namespaces_is_known(text) ? strchr(text, '|') : NULL;

	return namespaces_is_known(text) && (!*text || (bar && !bar[1]));
}

bool namespaces_is_same(const char *one, const char *other)
{
	return namespaces_is_known(one) && namespaces_is_known(other) && strcmp(one, other) == 0;
}

/* Whether the path @inner, which ends at @inner_end, is @outer or below it. */
static bool namespaces_is_path_within(const char *outer, size_t outer_length, const char *inner,
				      size_t inner_length)
{
	if (outer_length == 0)
		return !memchr(inner, '^', inner_length);
	return inner_length >= outer_length && memcmp(outer, inner, outer_length) == 0 &&
	       (inner_length == outer_length || inner[outer_length] == '/');
}

bool namespaces_is_within(const char *outer, const char *inner)
{
	const char *outer_pids, *inner_pids;
	size_t outer_users, inner_users;

	if (!namespaces_is_known(outer) || !namespaces_is_known(inner))
		return false;
	outer_users = strcspn(outer, "|");
	inner_users = strcspn(inner, "|");
	outer_pids = outer + outer_users + (outer[outer_users] == '|');
	inner_pids = inner + inner_users + (inner[inner_users] == '|');
	return namespaces_is_path_within(outer, outer_users, inner, inner_users) &&
	       namespaces_is_path_within(outer_pids, strlen(outer_pids), inner_pids,
					 strlen(inner_pids));
}
