/* SPDX-License-Identifier: Apache-2.0 */

/* The lists of sockets have inodes; the process is the one that has that inode open. */

#include "daemon/doors/listener.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/small-file.h"
#include "source/proc/proc.h"
#include "web/server/address.h"

#define LISTENER_LISTEN 0x0Au
#define LISTENER_ACCEPTS 0x10000u /* a flag in the list of unix sockets */
#define LISTENER_CHECK 64u        /* descriptors between two looks at the clock */

/* A row of the list. An IPv4 address is written like one of IPv6 that is mapped. */
struct listener_row {
	struct in6_addr address;
	uint16_t port;
	uint32_t uid;
	uint64_t inode;
};

static struct in6_addr listener_mapped(uint32_t four)
{
	struct in6_addr six = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(&six.s6_addr[12], &four, sizeof(four));
	return six;
}

/* The kernel prints words of the address as numbers. False: not a listening socket. */
static bool listener_parse(const char *line, struct listener_row *ret_row)
{
	uint32_t words[4] = {0};
	unsigned int port, state;
	struct listener_row row;
	char address[33];

	if (sscanf(line,
		   "%*u: %32[0-9A-F]:%x %*[0-9A-F:] %x %*x:%*x %*x:%*x %*x %" SCNu32
		   " %*u %" SCNu64,
		   address, &port, &state, &row.uid, &row.inode) != 5 ||
	    state != LISTENER_LISTEN)
		return false;
	row.port = (uint16_t)port;
	if (strlen(address) == 8 && sscanf(address, "%8" SCNx32, &words[0]) == 1)
		row.address = listener_mapped(words[0]);
	else if (sscanf(address, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32, &words[0],
			&words[1], &words[2], &words[3]) == 4)
		memcpy(&row.address, words, sizeof(words));
	else
		return false;
	*ret_row = row;
	return true;
}

static bool listener_is_any(const struct in6_addr *address)
{
	const struct in6_addr four = listener_mapped(0);

	return IN6_IS_ADDR_UNSPECIFIED(address) || memcmp(address, &four, sizeof(four)) == 0;
}

static bool listener_is_in_the_way(const struct listener_row *row, const struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->storage;
	bool is_four = address->storage.ss_family == AF_INET;
	struct in6_addr ours = is_four ? listener_mapped(four->sin_addr.s_addr) : six->sin6_addr;

	return row->port == ntohs(is_four ? four->sin_port : six->sin6_port) &&
	       (listener_is_any(&row->address) || listener_is_any(&ours) ||
		memcmp(&row->address, &ours, sizeof(ours)) == 0);
}

static bool listener_search(const struct proc *proc, const char *list,
			    const struct address *address, struct listener_row *ret_row)
{
	CLEANUP_FCLOSE FILE *file = small_file_stream(proc->root, list);
	char line[512];

	/* Listening sockets come first: connections, of which there may be many, end the search. */
	if (!file || !fgets(line, sizeof(line), file))
		return false;
	while (fgets(line, sizeof(line), file) && listener_parse(line, ret_row)) {
		if (listener_is_in_the_way(ret_row, address))
			return true;
	}
	return false;
}

/* Whether a process has the socket open. */
static bool listener_has(const struct proc *proc, uint32_t pid, const char *socket,
			 uint64_t deadline)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *entry;
	char path[32], target[64];
	unsigned int count = 0;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/fd", pid);
	listing = proc_list(proc, path);
	while (listing && (entry = readdir(listing))) {
		ssize_t n = readlinkat(dirfd(listing), entry->d_name, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			if (strcmp(target, socket) == 0)
				return true;
		}
		if (++count % LISTENER_CHECK == 0 && clock_ns(CLOCK_MONOTONIC) > deadline)
			return false;
	}
	return false;
}

/* The first process that has the socket open; others inherited it. */
static uint32_t listener_process(const struct proc *proc, uint64_t inode, uint64_t deadline)
{
	CLEANUP_CLOSEDIR DIR *listing = proc_list(proc, ".");
	char socket[48];
	uint32_t pid;

	(void)snprintf(socket, sizeof(socket), "socket:[%" PRIu64 "]", inode);
	while (listing && (pid = proc_next(listing)) && clock_ns(CLOCK_MONOTONIC) < deadline) {
		if (listener_has(proc, pid, socket, deadline))
			return pid;
	}
	return 0;
}

int listener_find_tcp(const struct proc *proc, const struct address *address, uint64_t deadline,
		      struct listener *ret_listener)
{
	struct listener_row row;

	if (!listener_search(proc, "net/tcp", address, &row) &&
	    !listener_search(proc, "net/tcp6", address, &row))
		return -ENOENT;
	*ret_listener = (struct listener){
		.pid = listener_process(proc, row.inode, deadline),
		.uid = row.uid,
	};
	return 0;
}

/* The inode of the socket that listens at @path; 0 = none. Connections have the same path. */
static uint64_t listener_unix_inode(const struct proc *proc, const char *path, uint64_t deadline)
{
	CLEANUP_FCLOSE FILE *file = small_file_stream(proc->root, "net/unix");
	char line[512];

	while (file && fgets(line, sizeof(line), file) && clock_ns(CLOCK_MONOTONIC) < deadline) {
		unsigned int flags;
		uint64_t inode;
		int at = 0;

		if (sscanf(line, "%*x: %*x %*x %x %*x %*x %" SCNu64 " %n", &flags, &inode, &at) !=
			    2 ||
		    !(flags & LISTENER_ACCEPTS))
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (at > 0 && strcmp(line + at, path) == 0)
			return inode;
	}
	return 0;
}

int listener_find_unix(const struct proc *proc, const char *path, uint64_t deadline,
		       struct listener *ret_listener)
{
	uint64_t inode = listener_unix_inode(proc, path, deadline);

	if (inode == 0)
		return -ENOENT;
	*ret_listener = (struct listener){.pid = listener_process(proc, inode, deadline)};
	return 0;
}
