/* SPDX-License-Identifier: Apache-2.0 */

/* Who listens, in lists as the kernel prints them, and really. */

#include "daemon/doors/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "source/proc/proc.h"
#include "web/server/address.h"

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
#define TAIL " 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100 0 0 10 0\n"

static void put(const char *name, const char *text)
{
	char path[600];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	file = fopen(path, "we");
	assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A machine in which process 42 has socket 77. */
static struct proc make_proc(const char *four, const char *six)
{
	static const char *const folders[] = {"net", "42", "42/fd", "41", "41/fd"};
	struct proc proc = {.root = open(unit_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	char path[600];

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", unit_dir(), folders[i]);
		assert(mkdir(path, 0700) == 0 || errno == EEXIST);
	}
	(void)snprintf(path, sizeof(path), "%s/42/fd/3", unit_dir());
	assert(symlink("socket:[77]", path) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof(path), "%s/41/fd/3", unit_dir());
	assert(symlink("socket:[7]", path) == 0 || errno == EEXIST);
	put("net/tcp", four);
	put("net/tcp6", six);
	return proc;
}

static int find(const char *four, const char *six, const char *where, struct listener *ret_listener)
{
	struct proc proc = make_proc(four, six);
	struct address address;
	int r;

	assert(address_parse(where, &address) == 0);
	r = listener_find_tcp(&proc, &address, clock_ns(CLOCK_MONOTONIC) + 10 * NS_PER_S,
			      ret_listener);
	assert(close(proc.root) == 0);
	return r;
}

UNIT(the_process_at_a_port_is_found)
{
	static const char *const taken[] = {
		HEAD "   0: 0100007F:1510 00000000:0000 0A" TAIL,
		HEAD "   0: 0100007F:1511 00000000:0000 0A" TAIL
		     "   1: 00000000:1510 00000000:0000 0A" TAIL,
	};
	struct listener listener;

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		assert(find(taken[i], HEAD, "127.0.0.1:5392", &listener) == 0);
		assert(listener.pid == 42 && listener.uid == 1000);
		assert(find(taken[i], HEAD, "0.0.0.0:5392", &listener) == 0);
	}
	/* One for all addresses of the newer kind takes the older ones, too. */
	assert(find(HEAD,
		    HEAD "   0: 00000000000000000000000000000000:1510 "
			 "00000000000000000000000000000000:0000 0A" TAIL,
		    "127.0.0.1:5392", &listener) == 0);
	assert(listener.pid == 42);
}

UNIT(others_are_not_blamed)
{
	static const char *const innocent[] = {
		HEAD,
		"",
		HEAD "garbage\n",
		HEAD "   0: 0100007F:1511 00000000:0000 0A" TAIL, /* another port */
		HEAD "   0: 0200007F:1510 00000000:0000 0A" TAIL, /* another address */
		HEAD "   0: 0100007F:1510 0100007F:8888 01" TAIL, /* a connection */
	};
	struct listener listener;

	for (size_t i = 0; i < sizeof(innocent) / sizeof(*innocent); i++)
		assert(find(innocent[i], HEAD, "127.0.0.1:5392", &listener) == -ENOENT);
}

UNIT(the_process_at_a_path_is_found)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct listener listener;
	struct proc proc;

	assert(proc_open(&proc) == 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/s", unit_dir());
	assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listener_find_unix(&proc, address.sun_path, clock_ns(CLOCK_MONOTONIC) + NS_PER_S,
				  &listener) == -ENOENT);
	assert(listen(fd, 1) == 0);
	assert(listener_find_unix(&proc, address.sun_path,
				  clock_ns(CLOCK_MONOTONIC) + 10 * NS_PER_S, &listener) == 0);
	assert(listener.pid == (uint32_t)getpid());
	assert(close(fd) == 0);
	proc_close(&proc);
}

UNIT(a_search_ends_in_time)
{
	struct proc proc = make_proc(HEAD "   0: 0100007F:1510 00000000:0000 0A" TAIL, HEAD);
	struct listener listener;
	struct address address;

	assert(address_parse("127.0.0.1:5392", &address) == 0);
	assert(listener_find_tcp(&proc, &address, 1, &listener) == 0);
	assert(listener.pid == 0 && listener.uid == 1000);
	assert(close(proc.root) == 0);
}
