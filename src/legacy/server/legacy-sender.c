/* SPDX-License-Identifier: Apache-2.0 */

/* Finds the sender of a message. */

#include "legacy/server/legacy-sender.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "legacy/server/legacy-private.h"

#define SENDER_FAILURES 8u /* unknown pids until a connection's claims are ignored */

void legacy_sender_init(struct legacy_connection *connection)
{
	const struct proc *proc = registry_proc(connection->server->config.registry);

	struct legacy_slot *slot = connection->slot;
	struct proc_facts *facts = &connection->facts;
	bool is_known = connection->pid != 0 && proc_read(proc, connection->pid, facts) == 0;

	/* While no daemon ran, it may have ended, and another may have its pid. */
	if (slot->start_ticks != 0 && (!is_known || facts->id.start_ticks != slot->start_ticks)) {
		*facts = (struct proc_facts){.ns_pid = slot->ns_pid,
					     .id.start_ticks = slot->start_ticks};
	} else if (!is_known) {
		/* In a pid namespace above ours, or gone already: nothing more is known. */
		*facts = (struct proc_facts){.ns_pid = connection->pid};
	} else {
		slot->start_ticks = facts->id.start_ticks;
		slot->ns_pid = facts->ns_pid;
		return;
	}
	facts->id.pid = connection->pid;
	facts->real_uid = facts->saved_uid = connection->uid;
}

static struct legacy_member *sender_member(struct legacy_connection *connection, int32_t pid)
{
	for (uint32_t i = 0; i < connection->family_count; i++) {
		if (connection->family[i].pid == pid)
			return &connection->family[i];
	}
	return NULL;
}

/* Remembers the result. Client NULL: nobody was found, and the peer is meant. */
static void sender_remember(struct legacy_connection *connection, int32_t pid,
			    struct legacy_client *client)
{
	struct legacy_member *member = sender_member(connection, pid);
	struct legacy_member *family;

	if (!member) {
		family = reallocarray(connection->family, connection->family_count + 1,
				      sizeof(*family));
		if (!family)
			return; /* then it is looked up again */
		connection->family = family;
		member = &family[connection->family_count++];
	}
	*member = (struct legacy_member){pid, client};
}

/* A relative of the peer, or NULL. */
static int sender_relative(struct legacy_connection *connection, int32_t pid,
			   struct legacy_client **ret_client)
{
	struct legacy_server *server = connection->server;
	struct legacy_member *member = sender_member(connection, pid);
	struct proc_facts facts;
	int r;

	*ret_client = member ? member->client : NULL;
	if (member || pid <= 0 || connection->family_count >= LEGACY_FAMILY_MAX ||
	    connection->lookups >= SENDER_FAILURES)
		return 0;
	if (legacy_family_find(registry_proc(server->config.registry), &connection->facts,
			       (uint32_t)pid, &facts) < 0) {
		connection->lookups++;
		sender_remember(connection, pid, NULL);
		return 0;
	}
	r = legacy_client_get(server, &facts, -1, ret_client);
	if (r == 0)
		sender_remember(connection, pid, *ret_client);
	return r;
}

int legacy_sender_find(struct legacy_connection *connection, int32_t pid,
		       struct legacy_client **ret_client)
{
	bool is_peer = pid == (int32_t)connection->facts.ns_pid ||
		       pid == (int32_t)connection->pid || connection->facts.id.start_ticks == 0;
	struct legacy_client *client = NULL;
	int r = 0;

	if (connection->pid == 0)
		return -ESRCH; /* of a process that cannot be seen there is nothing to show */
	if (!is_peer) {
		r = sender_relative(connection, pid, &client);
		if (r == 0 && !client)
			connection->server->counts.stranger_pids++;
	}
	if (r == 0 && !client)
		r = legacy_client_get(connection->server, &connection->facts, connection->source.fd,
				      &client);
	if (r < 0)
		return r;
	connection->last = (struct legacy_member){pid, client};
	*ret_client = client;
	return 0;
}

bool legacy_sender_is_on(const struct legacy_connection *connection,
			 const struct legacy_client *client)
{
	/* Even if it has not used this one yet: a child may use any connection of its parent. */
	if (connection->pid == client->facts.id.pid || connection->last.client == client)
		return true;
	for (uint32_t i = 0; i < connection->family_count; i++) {
		if (connection->family[i].client == client)
			return true;
	}
	return false;
}

void legacy_sender_forget(struct legacy_connection *connection, const struct legacy_client *client)
{
	uint32_t n = 0;

	if (connection->last.client == client)
		connection->last.client = NULL;
	for (uint32_t i = 0; i < connection->family_count; i++) {
		if (connection->family[i].client != client)
			connection->family[n++] = connection->family[i];
	}
	connection->family_count = n;
}
