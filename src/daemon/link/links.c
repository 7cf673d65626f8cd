/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A list of links, the latest first. What a link is to be told waits in its queue until the socket takes it;
 * only then is a book opened for it.
 */

#include "daemon/link/links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/fd-pass.h"
#include "base/files/packet-channel.h"
#include "base/quota.h"
#include "daemon/link/link-offer.h"
#include "daemon/link/link-queue.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "source/books/accept.h"
#include "wire/link.h"

#define LINK_TEXT_ROOM (LINK_PACKET_MAX - sizeof(struct link_book))

_Static_assert(LINK_PACKET_MAX <= PACKET_CHANNEL_SIZE, "packets fit");

struct link {
	struct links *links;
	struct link *next;
	struct packet_channel *channel;
	struct access_peer who;
	struct link_sender sender;
	uint32_t want;
	struct link_queue queue;
	bool has_state;
	struct link_state state;
};

struct links {
	struct links_config config;
	struct link *first;
	struct quota users;
};

static struct link_book link_book_packet(enum link_kind kind, struct book_id book, size_t more)
{
	struct link_book packet = {.device = book.device, .inode = book.inode};

	link_head_init(&packet.head, kind, sizeof(packet) + more);
	return packet;
}

static void link_process_packet(const struct registry *registry, const struct tracked *tracked,
				struct link_process *ret_packet)
{
	const struct proc_facts *owner = &tracked->book->owner;
	struct link_process packet = {
		.device = tracked->id.device,
		.inode = tracked->id.inode,
		.start_ticks = tracked->process.start_ticks,
		.pid_namespace = owner->pid_namespace,
		.pid = tracked->process.pid,
		.ns_pid = owner->ns_pid,
		.user = tracked->user,
		.maker = tracked->maker,
		.source = tracked->source,
		.flags = registry_is_left(registry, tracked) ? LINK_IS_LEFT : 0,
	};

	_Static_assert(sizeof(packet.comm) >= TRACKED_COMM_SIZE, "comm");
	_Static_assert(sizeof(packet.container) >= PROC_CONTAINER_SIZE, "container");
	link_head_init(&packet.head, LINK_BOOK, sizeof(packet));
	memcpy(packet.comm, tracked->comm, strnlen(tracked->comm, sizeof(tracked->comm)));
	memcpy(packet.container, tracked->book->container,
	       strnlen(tracked->book->container, sizeof(tracked->book->container)));
	*ret_packet = packet;
}

/* A descriptor of its own, so that nothing is shared with us. */
static void link_send_process(struct link *link, const struct tracked *tracked)
{
	const struct registry *registry = link->links->config.registry;
	int fds[LINK_FDS_MAX] = {-1, registry_pid_fd(registry, tracked)};
	struct link_process packet;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", tracked->book->file.fd);
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	if (fds[0] < 0) {
		packet_channel_hang_up(link->channel); /* it asks again, when there may be room */
		return;
	}
	link_process_packet(registry, tracked, &packet);
	packet_channel_send(link->channel, &packet, sizeof(packet), fds, fds[1] >= 0 ? 2 : 1);
	(void)close(fds[0]); /* nothing was written to it */
}

static void link_send_lines(struct link *link, const struct link_item *item)
{
	uint8_t bytes[LINK_PACKET_MAX];
	struct link_book packet = link_book_packet(LINK_LINES, item->book, item->length);

	memcpy(bytes, &packet, sizeof(packet));
	memcpy(bytes + sizeof(packet), item->text, item->length);
	packet_channel_send(link->channel, bytes, packet.head.size, NULL, 0);
}

static void link_send_item(struct link *link, const struct link_item *item)
{
	const struct tracked *tracked;
	struct link_book book;
	struct link_sync sync;

	if (item->kind == LINK_BOOK) {
		tracked = registry_get(link->links->config.registry, item->book);
		/* It may have ended since, or be this link's by now. */
		if (tracked && tracked->link != link)
			link_send_process(link, tracked);
	} else if (item->kind == LINK_LINES) {
		link_send_lines(link, item);
	} else if (item->kind == LINK_SYNCED) {
		sync = (struct link_sync){.number = item->number};
		link_head_init(&sync.head, LINK_SYNCED, sizeof(sync));
		packet_channel_send(link->channel, &sync, sizeof(sync), NULL, 0);
	} else {
		book = link_book_packet(item->kind, item->book, 0);
		packet_channel_send(link->channel, &book, sizeof(book), NULL, 0);
	}
}

/* As much as the socket takes. */
static void link_send(void *context)
{
	struct link *link = context;
	struct link_item item;

	while (!packet_channel_waits(link->channel) && link_queue_take(&link->queue, &item) == 0) {
		link_send_item(link, &item);
		free(item.text);
	}
}

/* Tells it, when it is its turn. A peer that reads too slowly, or for whom there is no memory, has to come again. */
static void link_tell(struct link *link, const struct link_item *item)
{
	if (link_queue_put(&link->queue, item) < 0) {
		quota_count(QUOTA_LINKS, 1);
		packet_channel_hang_up(link->channel);
		return;
	}
	link_send(link);
}

/* Whether it is told of a book. */
static bool link_hears_of(const struct link *link, const struct tracked *tracked)
{
	return link->want & LINK_WANT_BOOKS && tracked->link != link &&
	       access_may_see(&link->who, tracked->maker, tracked->namespaces);
}

static void link_tell_of(struct link *link, enum link_kind kind, const struct tracked *tracked)
{
	const struct link_item item = {.kind = kind, .book = tracked->id};

	if (link_hears_of(link, tracked))
		link_tell(link, &item);
}

static void link_tell_all(struct link *link)
{
	struct book_list *book_list = registry_books(link->links->config.registry);

	for (size_t i = 0; i < book_list->count; i++)
		link_tell_of(link, LINK_BOOK, book_list->list[i]);
	book_list_unref(book_list);
}

static void link_wants(struct link *link, uint32_t want)
{
	uint32_t more = want & ~link->want;

	if (!link->sender.is_trusted)
		more &= ~LINK_WANT_LINES;
	link->want |= more;
	if (more & LINK_WANT_BOOKS)
		link_tell_all(link);
}

static void link_take_offer(struct link *link, const struct link_offer *packet, struct fd_pass *fds)
{
	struct registry *registry = link->links->config.registry;
	const int taken[2] = {cleanup_steal_fd(&fds->fds[0]), cleanup_steal_fd(&fds->fds[1])};
	struct registry_offer offer;

	if (link_offer_open_consume(registry, &link->sender, packet, taken, &offer) < 0) {
		registry_count_refused(registry);
		return;
	}
	offer.link = link;
	(void)registry_keep_consume(registry, &offer); /* refusals are counted there */
}

static void link_take_state(struct link *link, const struct link_state *state)
{
	struct links *links = link->links;

	if (!link->sender.is_trusted)
		return;
	link->state = *state;
	link->state.path[sizeof(link->state.path) - 1] = '\0';
	link->has_state = true;
	links->config.state(links->config.context);
}

static void link_received(void *context, const void *bytes, size_t length, struct fd_pass *fds)
{
	struct link *link = context;
	struct link_item item = {.kind = LINK_SYNCED};
	union {
		struct link_hello hello;
		struct link_offer offer;
		struct link_book book;
		struct link_sync sync;
		struct link_state state;
	} packet;
	int kind = link_check(bytes, length);

	memcpy(&packet, bytes, bits_min(length, sizeof(packet)));
	switch (kind) {
	case LINK_HELLO:
		link_wants(link, packet.hello.want);
		break;
	case LINK_OFFER:
		link_take_offer(link, &packet.offer, fds);
		break;
	case LINK_CLOSED:
		registry_closed(link->links->config.registry, link,
				(struct book_id){packet.book.device, packet.book.inode});
		break;
	case LINK_SYNC:
		item.number = packet.sync.number;
		link_tell(link, &item);
		break;
	case LINK_REPORT:
		if (link->sender.is_trusted)
			link->links->config.report(link->links->config.context, packet.sync.number,
						   (const char *)bytes + sizeof(packet.sync),
						   length - sizeof(packet.sync));
		break;
	case LINK_STATE:
		link_take_state(link, &packet.state);
		break;
	default:
		/* A later program may say more than we know. */
		if (kind < 0)
			packet_channel_hang_up(link->channel);
		break;
	}
}

static void link_free(struct link *link)
{
	struct links *links = link->links;
	struct link **place = &links->first;

	while (*place != link)
		place = &(*place)->next;
	*place = link->next;
	packet_channel_free(link->channel);
	link_queue_deinit(&link->queue);
	quota_give(&links->users, link->sender.uid, 1);
	free(link);
}

/* The program has gone: nothing more is written to its books. */
static void link_ended(void *context)
{
	struct link *link = context;
	const struct links_config *config = &link->links->config;
	bool had_state = link->has_state;
	struct link_item item;

	link->want = 0;
	registry_unlink(config->registry, link);
	while (link_queue_take(&link->queue, &item) == 0) {
		if (item.kind == LINK_LINES)
			config->unprinted(config->context, item.text, item.length);
		free(item.text);
	}
	link_free(link);
	if (had_state)
		config->state(config->context);
}

/* Whether it may link at all. */
static int links_admit(struct links *links, int fd, struct access_peer *ret_who)
{
	int r = access_peer_init(links->config.access, fd, ret_who);

	if (r < 0)
		return r;
	return namespaces_has_our_users(ret_who->namespaces) &&
			       namespaces_has_our_pids(ret_who->namespaces) && !ret_who->is_stranger
		       ? 0
		       : -EPERM;
}

/*
 * A program that is restarted begins anew when its earlier link has ended, which the loop may not have told us yet:
 * what that kept has to be offered to it.
 */
static void links_look(struct links *links)
{
	struct link *link = links->first, *next;

	for (; link; link = next) {
		next = link->next;
		packet_channel_look(link->channel); /* perhaps frees it */
	}
}

int links_add_consume(struct links *links, struct accept_peer *peer, uint32_t want)
{
	CLEANUP(accept_peer_cleanup) struct accept_peer *owned = peer;
	CLEANUP_FREE struct link *link = calloc(1, sizeof(*link));
	struct packet_channel_config config = {
		.loop = links->config.loop,
		.context = link,
		.received = link_received,
		.ended = link_ended,
		.drained = link_send,
	};
	int r;

	if (!link)
		return -ENOMEM;
	r = links_admit(links, owned->fd, &link->who);
	if (r < 0)
		return r;
	link->links = links;
	link->sender = (struct link_sender){
		.uid = link->who.uid,
		.is_trusted = link_offer_trusts(link->who.uid),
	};
	links_look(links);
	if (!quota_take(&links->users, link->sender.uid, 1))
		return -EDQUOT;
	r = packet_channel_new_consume(&link->channel, cleanup_steal_fd(&owned->fd), &config);
	if (r < 0) {
		quota_give(&links->users, link->sender.uid, 1);
		return r;
	}
	link->next = links->first;
	links->first = link;
	link_wants(cleanup_steal(link), want);
	return 0;
}

void links_added(struct links *links, const struct tracked *tracked)
{
	for (struct link *link = links ? links->first : NULL; link; link = link->next)
		link_tell_of(link, LINK_BOOK, tracked);
}

void links_ended(struct links *links, const struct tracked *tracked)
{
	for (struct link *link = links ? links->first : NULL; link; link = link->next)
		link_tell_of(link, LINK_ENDED, tracked);
}

bool links_ask(struct links *links, uint64_t number)
{
	struct link_sync ask = {.number = number};
	struct link *link = links->first;

	while (link && !link->state.has_history)
		link = link->next;
	if (!link)
		return false;
	link_head_init(&ask.head, LINK_ASK, sizeof(ask));
	packet_channel_send(link->channel, &ask, sizeof(ask), NULL, 0);
	return true;
}

void links_stop(struct links *links)
{
	struct link_head stop;

	link_head_init(&stop, LINK_STOP, sizeof(stop));
	for (struct link *link = links->first; link; link = link->next)
		packet_channel_send(link->channel, &stop, sizeof(stop), NULL, 0);
}

/* As many whole lines as fit into a packet, or a part of one that is longer. */
static size_t links_cut(const char *text, size_t length)
{
	const char *end = length > LINK_TEXT_ROOM ? memrchr(text, '\n', LINK_TEXT_ROOM) : NULL;

	if (length <= LINK_TEXT_ROOM)
		return length;
	return end ? (size_t)(end - text) + 1 : LINK_TEXT_ROOM;
}

/* Whether all of a text can wait for it. A packet of it has at least one line, which is short. */
static bool link_has_room(const struct link *link, size_t length)
{
	return link->queue.text + length <= LINK_QUEUE_TEXT_MAX &&
	       link->queue.count + 2 * length / LINK_TEXT_ROOM + 1 < LINK_QUEUE_MAX;
}

bool links_print(struct links *links, struct book_id book, const char *text, size_t length)
{
	struct link *link = links->first;

	while (link && !(link->want & LINK_WANT_LINES))
		link = link->next;
	if (!link || !link_has_room(link, length))
		return false;
	while (length > 0) {
		struct link_item item = {.kind = LINK_LINES, .book = book};

		item.length = links_cut(text, length);
		item.text = malloc(item.length);
		if (!item.text) {
			/* Its beginning must not be printed twice. */
			links->config.unprinted(links->config.context, text, length);
			break;
		}
		memcpy(item.text, text, item.length);
		link_tell(link, &item);
		text += item.length;
		length -= item.length;
	}
	return true;
}

const struct link_state *links_state(const struct links *links)
{
	const struct link *found = NULL;

	/* One that serves, rather than one that waits for the socket. */
	for (const struct link *link = links->first; link; link = link->next) {
		if (link->has_state &&
		    (!found || (found->state.status < 0 && link->state.status == 0)))
			found = link;
	}
	return found ? &found->state : NULL;
}

int links_new(struct links **ret_links, const struct links_config *config)
{
	struct links *links = calloc(1, sizeof(*links));

	if (!links)
		return -ENOMEM;
	links->config = *config;
	links->users =
		(struct quota){.id = QUOTA_LINKS, .total = LINKS_MAX, .each = LINKS_PER_USER};
	*ret_links = links;
	return 0;
}

struct links *links_free(struct links *links)
{
	if (!links)
		return NULL;
	while (links->first)
		link_free(links->first);
	quota_deinit(&links->users);
	free(links);
	return NULL;
}
