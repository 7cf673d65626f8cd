/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections that outlive the daemon. Each one is in the ledger and in the box from the moment it is
 * accepted; somebody else holds both. So there is nothing to do at the end, and a daemon that is killed
 * loses no more than one that stops. The next one begins with what they say.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "legacy/server/legacy-private.h"

#define HANDOVER_MESSAGES 128u /* single connections in a box, until it is packed again */

struct handover {
	struct legacy_server *server;
	struct legacy_box box;
	uint32_t numbers[LEGACY_BOX_BATCH];
	int fds[LEGACY_BOX_BATCH];
	uint32_t count;
};

static uint32_t handover_number(const struct legacy_connection *connection)
{
	return (uint32_t)(connection->slot - connection->server->ledger->slots);
}

static int handover_flush(struct handover *handover)
{
	int r = 0;

	if (handover->count > 0)
		r = legacy_box_put(&handover->box, handover->numbers, handover->fds,
				   handover->count);
	handover->count = 0;
	return r;
}

static int handover_pack(struct handover *handover)
{
	int r = legacy_box_init(&handover->box);

	for (struct legacy_connection *at = handover->server->connections; at && r == 0;
	     at = at->after) {
		handover->numbers[handover->count] = handover_number(at);
		handover->fds[handover->count++] = at->source.fd;
		if (handover->count == LEGACY_BOX_BATCH)
			r = handover_flush(handover);
	}
	return r < 0 ? r : handover_flush(handover);
}

/* Not before there is something in it: most machines have no old clients. */
static void handover_hold_ledger(struct legacy_server *server)
{
	const struct legacy_custody *custody = &server->config.custody;

	if (!server->is_held)
		custody->hold(custody->context, LEGACY_HELD_LEDGER, server->ledger_fd);
	server->is_held = true;
}

/* Packs another box, without the connections that have ended. */
static void handover_renew(struct legacy_server *server)
{
	const struct legacy_custody *custody = &server->config.custody;
	struct handover handover = {.server = server};

	if (handover_pack(&handover) < 0) {
		/* No descriptors: what is in the old box stays held, and the next one tries again. */
		legacy_box_deinit(&handover.box);
		return;
	}
	handover.box.messages = 0;
	handover_hold_ledger(server);
	custody->hold(custody->context, LEGACY_HELD_BOX, handover.box.out);
	if (server->box.out >= 0)
		custody->release(custody->context, LEGACY_HELD_BOX, server->box.out);
	legacy_box_deinit(&server->box);
	server->box = handover.box;
}

struct legacy_slot *legacy_handover_slot(struct legacy_server *server, int fd)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return NULL;
	for (uint32_t i = 0; i < LEGACY_CONNECTIONS_MAX; i++) {
		struct legacy_slot *slot = &server->ledger->slots[server->next_slot];

		server->next_slot = (server->next_slot + 1) % LEGACY_CONNECTIONS_MAX;
		if (slot->inode)
			continue;
		*slot = (struct legacy_slot){.spill_room = slot->spill_room};
		LEGACY_LEDGER_ORDER();
		slot->inode = file.st_ino;
		return slot;
	}
	return NULL; /* not while there are fewer connections than slots */
}

void legacy_handover_add(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;
	uint32_t number = handover_number(connection);

	if (!server->config.custody.hold)
		return;
	if (server->box.out < 0 || server->box.messages >= HANDOVER_MESSAGES ||
	    legacy_box_put(&server->box, &number, &connection->source.fd, 1) < 0)
		handover_renew(server);
}

void legacy_handover_remove(struct legacy_connection *connection)
{
	struct legacy_server *server = connection->server;

	if (server->is_stopped && server->config.custody.hold)
		return;
	/* It is still in the box: closing it is not enough. */
	(void)shutdown(connection->source.fd, SHUT_RDWR); /* fails if the client is gone */
	legacy_ledger_unspill(server->ledger, server->ledger_fd, connection->slot, true);
	LEGACY_LEDGER_ORDER();
	connection->slot->inode = 0;
}

void legacy_handover_hold_listener(struct legacy_server *server)
{
	const struct legacy_custody *custody = &server->config.custody;

	if (!custody->hold || server->socket_lock.fd < 0)
		return;
	server->ledger->listener_device = server->socket_lock.device;
	server->ledger->listener_inode = server->socket_lock.inode;
	handover_hold_ledger(server);
	custody->hold(custody->context, LEGACY_HELD_LISTENER, server->socket_lock.fd);
}

void legacy_handover_forget_listener(struct legacy_server *server)
{
	const struct legacy_custody *custody = &server->config.custody;

	if (custody->release && server->socket_lock.fd >= 0)
		custody->release(custody->context, LEGACY_HELD_LISTENER, server->socket_lock.fd);
}

static void handover_hold_all(struct legacy_server *server)
{
	const struct legacy_custody *custody = &server->config.custody;

	if (!custody->hold)
		return;
	legacy_handover_hold_listener(server);
	if (server->box.out < 0)
		return;
	handover_hold_ledger(server);
	custody->hold(custody->context, LEGACY_HELD_BOX, server->box.out);
}

void legacy_handover_hold(struct legacy_server *server)
{
	server->is_held = false;
	handover_hold_all(server);
}

/* What the earlier daemon was doing when it was killed. */
static void handover_settle_journal(struct legacy_server *server)
{
	struct legacy_ledger *ledger = server->ledger;
	struct legacy_slot *slot;
	uint32_t size;

	server->counts.in_doubt += ledger->applying;
	if (ledger->owner == 0) {
		ledger->applying = 0;
		return;
	}
	slot = &ledger->slots[ledger->owner - 1];
	size = slot->dialect < LEGACY_DIALECTS ? (uint32_t)legacy_size(slot->dialect) : 0;
	if (ledger->length == 0 && ledger->journal[0] != 0)
		ledger->length = ledger->wanted; /* killed right after recv() */
	/* The message may have had its effect: once is likelier than twice. */
	if (ledger->applying && ledger->wanted > 0)
		ledger->position += size;
	else if (ledger->applying)
		slot->spill_begin += size;
	ledger->applying = 0;
	/* A spill that is there already is the same. Without room the rest is lost, and counted. */
	if (ledger->position < ledger->length &&
	    legacy_ledger_spill(ledger, server->ledger_fd, slot, ledger->journal + ledger->position,
				ledger->length - ledger->position) < 0)
		server->counts.in_doubt += (ledger->length - ledger->position) / bits_max(size, 1u);
	LEGACY_LEDGER_ORDER();
	ledger->owner = 0;
}

static void handover_found(void *context, uint32_t number, int fd)
{
	struct legacy_server *server = context;
	CLEANUP_CLOSE int owned = fd;
	struct legacy_slot *slot;
	struct stat file;

	if (number >= LEGACY_CONNECTIONS_MAX || fstat(owned, &file) < 0)
		return;
	slot = &server->ledger->slots[number];
	if (slot->inode != file.st_ino || server->restored[number])
		return; /* it ended, or is in two boxes */
	server->restored[number] = true;
	if (slot->spill_begin >= slot->spill_end)
		legacy_ledger_unspill(server->ledger, server->ledger_fd, slot, false);
	server->counts.in_doubt += slot->answering != LEGACY_ANSWERING_NOT;
	/*
	 * Killed around a send(): that it was done is far likelier, because it wakes the client, which
	 * may then run in our place. Of a part, the rest is lost: the client must see an end.
	 */
	if (slot->answering == LEGACY_ANSWERING_PART) {
		(void)shutdown(owned, SHUT_RDWR); /* fails if the client is gone */
		slot->inode = 0;
		return;
	}
	slot->answering = LEGACY_ANSWERING_NOT;
	if (legacy_connection_new_consume(server, cleanup_steal_fd(&owned), slot) == 0)
		server->counts.taken_over++;
}

static void handover_restore(struct legacy_server *server, const struct legacy_held *held)
{
	struct legacy_ledger *ledger = server->ledger;

	handover_settle_journal(server);
	for (size_t i = 0; i < held->box_count; i++)
		/* On failure the rest of its connections end. */
		(void)legacy_box_list(held->boxes[i], handover_found, server);
	for (uint32_t i = 0; i < LEGACY_CONNECTIONS_MAX; i++) {
		if (ledger->slots[i].inode && !server->restored[i]) {
			legacy_ledger_unspill(ledger, server->ledger_fd, &ledger->slots[i], true);
			ledger->slots[i].inode = 0;
		}
	}
}

int legacy_handover_open(struct legacy_server *server)
{
	struct legacy_held *held = &server->held;

	if (held->ledger >= 0 && legacy_ledger_open(&server->ledger, held->ledger) == 0) {
		server->ledger_fd = cleanup_steal_fd(&held->ledger);
		server->is_continued = true;
		server->is_held = true;
		return 0;
	}
	return legacy_ledger_new(&server->ledger, &server->ledger_fd);
}

void legacy_handover_start(struct legacy_server *server)
{
	const struct legacy_custody *custody = &server->config.custody;
	struct legacy_held *held = &server->held;

	if (server->is_continued)
		handover_restore(server, held);
	/* Also those that came while nobody accepted: a book may wait for what they say. */
	while (server->accepting.fd >= 0 && !legacy_server_let_in(server))
		continue;
	if (custody->hold) {
		handover_hold_all(server);
		if (server->connections)
			handover_renew(server);
	}
	for (size_t i = 0; i < held->box_count && custody->release; i++)
		custody->release(custody->context, LEGACY_HELD_BOX, held->boxes[i]);
	if (held->ledger >= 0 && custody->release)
		custody->release(custody->context, LEGACY_HELD_LEDGER, held->ledger);
	if (held->listener >= 0 && custody->release)
		custody->release(custody->context, LEGACY_HELD_LISTENER, held->listener);
	legacy_held_deinit(held);
}

void legacy_held_deinit(struct legacy_held *held)
{
	for (size_t i = 0; i < held->box_count; i++)
		(void)close(held->boxes[i]); /* not needed */
	if (held->ledger >= 0)
		(void)close(held->ledger); /* not needed */
	if (held->listener >= 0)
		(void)close(held->listener); /* not needed */
	*held = LEGACY_HELD_NULL;
}
