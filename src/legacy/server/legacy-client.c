/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The processes behind the connections. The kernel says who a process is (the pid of the socket's peer,
 * its start time, a pidfd), never a message. So a process has one book, however many connections it
 * opens.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answers/seed-lines.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "legacy/server/legacy-log.h"
#include "legacy/server/legacy-private.h"
#include "model/types.h"

#include "book/write/writer.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static struct legacy_client **client_chain(struct legacy_server *server, uint32_t pid)
{
	return &server->clients[hash_u64(pid) % LEGACY_CHAINS];
}

/*
 * A process that was gone before we could look is known by its pid alone: the pid cannot belong to
 * another process before the exit of the earlier one has been handled.
 */
static struct legacy_client *client_find(struct legacy_server *server,
					 const struct proc_facts *facts)
{
	struct legacy_client *client = *client_chain(server, facts->id.pid);

	while (client && (client->facts.id.pid != facts->id.pid ||
			  (client->facts.id.start_ticks != facts->id.start_ticks &&
			   facts->id.start_ticks != 0)))
		client = client->next;
	return client;
}

static bool client_has_ended(int pid_fd)
{
	struct pollfd wait = {.fd = pid_fd, .events = POLLIN};

	return poll(&wait, 1, 0) > 0;
}

int legacy_client_ended_fd(void)
{
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/*
 * A descriptor that becomes readable when the process ends. The socket's own pidfd is best, because the
 * pid may have been reused. Where the kernel has none, /proc is read again after the pidfd was opened.
 * A process that /proc hides from us is alive if its pidfd says so.
 */
static int client_open_pid(const struct proc *proc, struct proc_facts *facts, int peer_fd)
{
	CLEANUP_CLOSE int fd = -1;
	socklen_t length = sizeof(fd);
	struct proc_facts again = {0};
	bool is_exact, has_ended;

	is_exact = peer_fd >= 0 && getsockopt(peer_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0;
	if (!is_exact)
		fd = (int)syscall(SYS_pidfd_open, (pid_t)facts->id.pid, 0);
	if (fd < 0)
		/* It has ended, or the kernel has no pidfds; other errors may pass. */
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM
			       ? -errno
			       : legacy_client_ended_fd();
	has_ended = client_has_ended(fd);
	if (proc_read(proc, facts->id.pid, &again) < 0)
		return is_exact || !has_ended ? cleanup_steal_fd(&fd) : legacy_client_ended_fd();
	/* If it has ended, /proc shows another process by now, or this one until it is reaped. */
	if (has_ended ? again.state == 'Z' || again.state == 'X'
		      : is_exact || facts->id.start_ticks == again.id.start_ticks) {
		if (facts->id.start_ticks == 0)
			*facts = again;
		return cleanup_steal_fd(&fd);
	}
	return legacy_client_ended_fd();
}

static bool client_drain(struct registry_keeper *keeper)
{
	struct legacy_client *client = container_of(keeper, struct legacy_client, keeper);
	struct legacy_connection *connection, *after;

	/* Its last connection may not have been accepted yet. */
	bool is_done = legacy_server_let_in(client->server);

	for (connection = client->server->connections; connection; connection = after) {
		after = connection->after;
		if (!legacy_connection_drain(connection, client))
			is_done = false;
	}
	legacy_log_flush(client->server->log);
	return is_done;
}

/* Prints what it left, as the old server did. */
static void client_tell_end(const struct legacy_client *client)
{
	struct seed_lines_dead dead = {.pid = client->facts.id.pid};

	for (uint32_t device = 0; device < BOOK_DEVICES; device++) {
		const struct shard *shard = client->writer->shards[device];

		for (uint32_t type = 0; shard && type < BOOK_TYPES; type++) {
			const struct book_hot *hot = &shard->hot[type];

			if (type == TYPES_CB) {
				dead.cbs += hot->buffers;
				dead.cb_bytes += hot->bytes;
			} else if (type == TYPES_KERNEL) {
				dead.kernels += hot->buffers;
				dead.kernel_bytes += hot->bytes;
			} else {
				dead.buffers += hot->buffers;
				dead.bytes += hot->bytes;
			}
			legacy_log_subtract(client->server->log, device, type, hot->bytes);
		}
	}
	legacy_server_dead(client->server, &dead);
}

static void client_forget(struct registry_keeper *keeper)
{
	struct legacy_client *client = container_of(keeper, struct legacy_client, keeper);
	struct legacy_server *server = client->server;

	/* When the server itself stops, the process has not exited. */
	if (server->log && !server->is_stopped)
		client_tell_end(client);
	if (server->config.keeping.closed && !server->is_stopped)
		server->config.keeping.closed(server->config.keeping.context, client->tracked,
					      client->old);
	for (struct legacy_connection *connection = server->connections; connection;
	     connection = connection->after)
		legacy_connection_forget(connection, client);
	legacy_client_free(client);
}

void legacy_client_free(struct legacy_client *client)
{
	struct legacy_server *server = client->server;
	struct legacy_client **link = client_chain(server, client->facts.id.pid);

	while (*link && *link != client)
		link = &(*link)->next;
	if (*link) {
		*link = client->next;
		server->counts.clients--;
		quota_give(&server->user_clients, client->facts.real_uid, 1);
	}
	legacy_book_free(client->keep);
	free(client);
}

int legacy_client_add_consume(struct legacy_client *client, struct scan_book *book, int pid_fd)
{
	struct legacy_server *server = client->server;
	const struct legacy_keeping *keeping = &server->config.keeping;
	struct legacy_client **chain = client_chain(server, client->facts.id.pid);
	struct tracked *tracked = NULL;
	int r = quota_add(&server->user_clients, client->facts.real_uid, 1);

	if (r < 0) {
		scan_book_free(book);
		(void)close(pid_fd); /* nothing was written to it */
		legacy_client_free(client);
		return r;
	}
	legacy_book_adopted(client->keep);
	client->next = *chain;
	*chain = client;
	server->counts.clients++;
	r = registry_add_consume(server->config.registry, book, pid_fd, &client->keeper, &tracked);
	if (r < 0) {
		legacy_client_free(client);
		return r;
	}
	client->tracked = tracked;
	if (keeping->kept)
		keeping->kept(keeping->context, tracked, client->old);
	return 0;
}

int legacy_client_make(struct legacy_server *server, const struct proc_facts *facts,
		       const struct book_header *old, struct legacy_client **ret_client,
		       struct scan_book **ret_book)
{
	struct legacy_client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	*client = (struct legacy_client){
		.keeper = {.drain = client_drain, .forget = client_forget},
		.server = server,
		.facts = *facts,
	};
	r = legacy_book_new(&client->keep, &server->memory, registry_proc(server->config.registry),
			    facts, old, ret_book);
	if (r < 0) {
		legacy_client_free(client);
		return r;
	}
	client->writer = legacy_book_writer(client->keep);
	*ret_client = client;
	return 0;
}

int legacy_client_get(struct legacy_server *server, const struct proc_facts *facts, int peer_fd,
		      struct legacy_client **ret_client)
{
	struct legacy_client *client = client_find(server, facts);
	struct proc_facts found = *facts;
	struct scan_book *book;
	int pid_fd, r;

	if (client) {
		*ret_client = client;
		return 0;
	}
	if (quota_room(&server->user_clients, facts->real_uid) == 0)
		return -ENOSPC;
	pid_fd = client_open_pid(registry_proc(server->config.registry), &found, peer_fd);
	if (pid_fd < 0)
		return pid_fd;
	r = legacy_client_make(server, &found, NULL, &client, &book);
	if (r < 0) {
		(void)close(pid_fd); /* nothing was written to it */
		return r;
	}
	r = legacy_client_add_consume(client, book, pid_fd);
	if (r == 0)
		*ret_client = client;
	return r;
}
