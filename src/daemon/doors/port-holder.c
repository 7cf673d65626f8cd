/* SPDX-License-Identifier: Apache-2.0 */

/* The list of sockets has user and inode; the process is the one that has that inode open. */

#include "daemon/doors/port-holder.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/small-file.h"
#include "source/proc/proc.h"
#include "web/server/address.h"

#define PORT_HOLDER_LISTEN 0x0Au
#define PORT_HOLDER_CHECK 64u /* descriptors between two looks at the clock */

/* A row of the list. An IPv4 address is written like one of IPv6 that is mapped. */
struct port_holder_row {
	struct in6_addr address;
	uint16_t port;
	uint32_t uid;
	uint64_t inode;
};

static struct in6_addr port_holder_mapped(uint32_t four)
{
	struct in6_addr six = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(&six.s6_addr[12], &four, sizeof(four));
	return six;
}

/* The kernel prints words of the address as numbers. False: not a listening socket. */
static bool port_holder_parse(const char *line, struct port_holder_row *ret_row)
{
	uint32_t words[4] = {0};
	unsigned int port, state;
	struct port_holder_row row;
	char address[33];

	if (sscanf(line,
		   "%*u: %32[0-9A-F]:%x %*[0-9A-F:] %x %*x:%*x %*x:%*x %*x %" SCNu32
		   " %*u %" SCNu64,
		   address, &port, &state, &row.uid, &row.inode) != 5 ||
	    state != PORT_HOLDER_LISTEN)
		return false;
	row.port = (uint16_t)port;
	if (strlen(address) == 8 && sscanf(address, "%8" SCNx32, &words[0]) == 1)
		row.address = port_holder_mapped(words[0]);
	else if (sscanf(address, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32, &words[0],
			&words[1], &words[2], &words[3]) == 4)
		memcpy(&row.address, words, sizeof(words));
	else
		return false;
	*ret_row = row;
	return true;
}

static bool port_holder_is_any(const struct in6_addr *address)
{
	const struct in6_addr four = port_holder_mapped(0);

	return IN6_IS_ADDR_UNSPECIFIED(address) || memcmp(address, &four, sizeof(four)) == 0;
}

static bool port_holder_is_in_the_way(const struct port_holder_row *row,
				      const struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->storage;
	bool is_four = address->storage.ss_family == AF_INET;
	struct in6_addr ours = is_four ? port_holder_mapped(four->sin_addr.s_addr) : six->sin6_addr;

	return row->port == ntohs(is_four ? four->sin_port : six->sin6_port) &&
	       (port_holder_is_any(&row->address) || port_holder_is_any(&ours) ||
		memcmp(&row->address, &ours, sizeof(ours)) == 0);
}

static bool port_holder_search(const struct proc *proc, const char *list,
			       const struct address *address, struct port_holder_row *ret_row)
{
	CLEANUP_FCLOSE FILE *file = small_file_stream(proc->root, list);
	char line[512];

	/* Listening sockets come first: connections, of which there may be many, end the search. */
	if (!file || !fgets(line, sizeof(line), file))
		return false;
	while (fgets(line, sizeof(line), file) && port_holder_parse(line, ret_row)) {
		if (port_holder_is_in_the_way(ret_row, address))
			return true;
	}
	return false;
}

/* Whether a process has the socket open. */
static bool port_holder_has(const struct proc *proc, uint32_t pid, const char *socket,
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
		if (++count % PORT_HOLDER_CHECK == 0 && clock_ns(CLOCK_MONOTONIC) > deadline)
			return false;
	}
	return false;
}

int port_holder_find(const struct proc *proc, const struct address *address, uint64_t deadline,
		     struct port_holder *ret_holder)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	struct port_holder_row row;
	char socket[48];
	uint32_t pid;

	if (!port_holder_search(proc, "net/tcp", address, &row) &&
	    !port_holder_search(proc, "net/tcp6", address, &row))
		return -ENOENT;
	*ret_holder = (struct port_holder){.uid = row.uid};
	(void)snprintf(socket, sizeof(socket), "socket:[%" PRIu64 "]", row.inode);
	listing = proc_list(proc, ".");
	while (listing && (pid = proc_next(listing)) && clock_ns(CLOCK_MONOTONIC) < deadline) {
		if (port_holder_has(proc, pid, socket, deadline)) {
			ret_holder->pid = pid;
			break;
		}
	}
	return 0;
}
