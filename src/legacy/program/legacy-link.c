/* SPDX-License-Identifier: Apache-2.0 */

/* Connects, sends, and takes what ttmemd sends apart. */

#include "legacy/program/legacy-link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/packet-channel.h"
#include "base/quota.h"
#include "base/threads/loop.h"
#include "daemon/registry/registry-open.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "legacy/server/legacy-server.h"
#include "source/books/scan.h"
#include "source/proc/proc.h"
#include "wire/link.h"

#define LINK_AGAIN_NS UINT64_C(50000000) /* doubled up to the next */
#define LINK_AGAIN_MAX_NS NS_PER_S
#define LINK_ENDED_MAX 4096u /* books of ended processes that no ttmemd has taken yet */
#define LINK_ENDED_PER_USER 1024u
#define LINK_REPORT_PIECE 32768u        /* bytes of text in a packet */
#define LINK_PATIENCE_NS (2 * NS_PER_S) /* for an answer to LINK_SYNC */

/* A book of a process that has ended. It is ours to keep until a ttmemd has it. */
struct link_ended {
	struct link_offer offer;
	struct book_id id;
	int fd;
	uint64_t sync; /* once this is answered, it has been taken */
};

struct legacy_link {
	struct legacy_link_config config;
	struct legacy_server *server; /* NULL = not yet */
	struct packet_channel *channel;
	struct loop_timer again;
	uint64_t again_ns;
	struct loop_timer patience;
	uint64_t asked; /* number of the last LINK_SYNC */
	bool is_asked;  /* somebody waits for the last one */
	bool is_settled;
	struct link_ended *ended;
	size_t ended_count, ended_capacity;
	struct quota ended_users;
	struct link_state state; /* the last one */
	uint64_t report;         /* the number of the report that ttmemd waits for */
	bool is_reporting;
};

/* Whoever waits for what ttmemd knows waits no longer. */
static void link_synced(struct legacy_link *link)
{
	loop_cancel(link->config.loop, &link->patience);
	link->is_settled = true;
	if (!link->is_asked)
		return;
	link->is_asked = false;
	legacy_server_synced(link->server);
}

static void link_impatient(struct loop_timer *timer)
{
	link_synced(container_of(timer, struct legacy_link, patience));
}

static void link_try_again(struct legacy_link *link)
{
	struct loop *loop = link->config.loop;

	link->again_ns = bits_min(bits_max(2 * link->again_ns, LINK_AGAIN_NS), LINK_AGAIN_MAX_NS);
	/* Without memory for a timer ttmemd has to find us by itself: it does not, and says what it misses. */
	(void)loop_set(loop, &link->again, loop_now(loop) + link->again_ns);
}

static void link_ended(void *context)
{
	struct legacy_link *link = context;

	link->channel = packet_channel_free(link->channel);
	if (link->server)
		link_synced(link);
	link_try_again(link);
}

static void link_send(struct legacy_link *link, const void *packet, size_t size, const int *fds,
		      size_t fd_count)
{
	if (link->channel)
		packet_channel_send(link->channel, packet, size, fds, fd_count);
}

static void link_ask(struct legacy_link *link)
{
	struct loop *loop = link->config.loop;
	struct link_sync sync = {.number = ++link->asked};

	link_head_init(&sync.head, LINK_SYNC, sizeof(sync));
	link_send(link, &sync, sizeof(sync), NULL, 0);
	/* Without memory for a timer the end of the connection ends the wait. */
	(void)loop_set(loop, &link->patience, loop_now(loop) + LINK_PATIENCE_NS);
}

bool legacy_link_sync(void *context)
{
	struct legacy_link *link = context;

	if (!link->channel)
		return false;
	link->is_asked = true;
	link_ask(link);
	return true;
}

static struct link_offer link_offer_of(const struct tracked *tracked, struct book_id old)
{
	struct link_offer offer = {
		.old_device = old.device,
		.old_inode = old.inode,
		.start_ticks = tracked->process.start_ticks,
		.pid = tracked->process.pid,
		.user = tracked->maker,
	};

	link_head_init(&offer.head, LINK_OFFER, sizeof(offer));
	return offer;
}

void legacy_link_kept(void *context, const struct tracked *tracked, struct book_id old)
{
	struct legacy_link *link = context;
	struct link_offer offer = link_offer_of(tracked, old);
	CLEANUP_CLOSE int pid_fd = -1;
	int fds[LINK_FDS_MAX] = {tracked->book->file.fd, -1};

	if (!link->channel)
		return;
	/* A process that could not be identified before it was gone has no start time. */
	if (tracked->process.start_ticks)
		pid_fd = proc_pid_fd(registry_proc(link->config.registry), tracked->process);
	fds[1] = pid_fd;
	link_send(link, &offer, sizeof(offer), fds, pid_fd < 0 ? 1 : 2);
}

static void link_send_closed(struct legacy_link *link, struct book_id id)
{
	struct link_book book = {.device = id.device, .inode = id.inode};

	link_head_init(&book.head, LINK_CLOSED, sizeof(book));
	link_send(link, &book, sizeof(book), NULL, 0);
}

/* Keeps the book. Without room for it, it is lost if no ttmemd has it. */
static void link_keep_ended(struct legacy_link *link, const struct tracked *tracked,
			    struct book_id old)
{
	struct link_ended *list = array_grow(link->ended, &link->ended_capacity,
					     link->ended_count + 1, sizeof(*list));
	int fd;

	if (!list)
		return;
	link->ended = list;
	if (!quota_take(&link->ended_users, tracked->maker, 1))
		return;
	fd = fcntl(tracked->book->file.fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0) {
		quota_give(&link->ended_users, tracked->maker, 1);
		return;
	}
	list[link->ended_count++] = (struct link_ended){
		.offer = link_offer_of(tracked, old),
		.id = tracked->id,
		.fd = fd,
		.sync = link->asked + 1,
	};
}

/* What was sent before that question has arrived. */
static void link_let_ended_go(struct legacy_link *link, uint64_t number)
{
	size_t n = 0;

	for (size_t i = 0; i < link->ended_count; i++) {
		struct link_ended *ended = &link->ended[i];

		if (ended->sync > number) {
			link->ended[n++] = *ended;
			continue;
		}
		quota_give(&link->ended_users, ended->offer.user, 1);
		(void)close(ended->fd); /* nothing was written to it */
	}
	link->ended_count = n;
}

/* To a ttmemd that may have heard nothing of them; one that has them already takes nothing twice. */
static void link_offer_ended(struct legacy_link *link)
{
	for (size_t i = 0; i < link->ended_count; i++) {
		struct link_ended *ended = &link->ended[i];

		ended->sync = link->asked + 1;
		link_send(link, &ended->offer, sizeof(ended->offer), &ended->fd, 1);
		link_send_closed(link, ended->id);
	}
}

void legacy_link_closed(void *context, const struct tracked *tracked, struct book_id old)
{
	struct legacy_link *link = context;

	link_keep_ended(link, tracked, old);
	if (!link->channel)
		return;
	link_send_closed(link, tracked->id);
	link_ask(link);
}

static void link_send_state(struct legacy_link *link)
{
	if (link->state.head.size)
		link_send(link, &link->state, sizeof(link->state), NULL, 0);
}

void legacy_link_state(struct legacy_link *link, const struct link_state *state)
{
	struct link_state now = *state;

	link_head_init(&now.head, LINK_STATE, sizeof(now));
	if (memcmp(&now, &link->state, sizeof(now)) == 0)
		return;
	link->state = now;
	link_send_state(link);
}

/* The owner is ttmemd's to tell: it may have ended. */
static void link_identify(const struct link_process *process, struct scan_book *book)
{
	book->uid = process->maker;
	if (book->alive)
		return;
	book->owner = (struct proc_facts){
		.id = {process->pid, process->start_ticks},
		.ns_pid = process->ns_pid,
		.pid_namespace = process->pid_namespace,
		.real_uid = process->user,
		.saved_uid = process->user,
	};
	memcpy(book->owner.comm, process->comm,
	       strnlen(process->comm, sizeof(book->owner.comm) - 1));
}

static void link_take_book(struct legacy_link *link, const struct link_process *process,
			   struct fd_pass *fds)
{
	const struct proc *proc = registry_proc(link->config.registry);
	CLEANUP_CLOSE int pid_fd = cleanup_steal_fd(&fds->fds[1]);
	struct process_id id = {process->pid, process->start_ticks};
	struct scan_book *book;

	if (fds->fds[0] < 0 ||
	    registry_open_consume(proc, cleanup_steal_fd(&fds->fds[0]), id, &book) < 0)
		return;
	link_identify(process, book);
	if (process->flags & LINK_IS_LEFT && !link->server)
		link->config.left(link->config.context, book, cleanup_steal_fd(&pid_fd));
	else
		/* It may be here already: ttmemd was started again. Without room it is not counted. */
		(void)registry_add_consume(link->config.registry, book, cleanup_steal_fd(&pid_fd),
					   NULL, NULL);
}

static void link_take_lines(const struct legacy_link *link, const char *text, size_t length)
{
	char *copy = link->server ? malloc(length) : NULL;

	if (!copy)
		return;
	memcpy(copy, text, length);
	legacy_server_lines_consume(link->server, copy, length);
}

static void link_send_report(struct legacy_link *link, const char *text, size_t length)
{
	uint8_t packet[LINK_PACKET_MAX];
	struct link_sync head = {.number = link->report};

	link_head_init(&head.head, LINK_REPORT, sizeof(head) + length);
	memcpy(packet, &head, sizeof(head));
	memcpy(packet + sizeof(head), text, length);
	link_send(link, packet, sizeof(head) + length, NULL, 0);
}

void legacy_link_report(void *context, const char *text, size_t length)
{
	struct legacy_link *link = context;

	link->is_reporting = false;
	for (size_t at = 0; text && at < length; at += LINK_REPORT_PIECE)
		link_send_report(link, text + at, bits_min(length - at, LINK_REPORT_PIECE));
	link_send_report(link, "", 0);
}

/* One at a time: whoever asks again gets the answer, too. */
static void link_take_question(struct legacy_link *link, uint64_t number)
{
	link->report = number;
	if (!link->server) {
		link_send_report(link, "", 0);
	} else if (!link->is_reporting) {
		link->is_reporting = true;
		legacy_server_ask(link->server);
	}
}

static void link_received(void *context, const void *bytes, size_t length, struct fd_pass *fds)
{
	struct legacy_link *link = context;
	struct link_process process;
	struct link_book book;
	struct link_sync sync;

	switch (link_check(bytes, length)) {
	case LINK_BOOK:
		memcpy(&process, bytes, sizeof(process));
		link_take_book(link, &process, fds);
		break;
	case LINK_ENDED:
		memcpy(&book, bytes, sizeof(book));
		registry_end_book(link->config.registry, (struct book_id){book.device, book.inode});
		break;
	case LINK_LINES:
		link_take_lines(link, (const char *)bytes + sizeof(book), length - sizeof(book));
		break;
	case LINK_ASK:
		memcpy(&sync, bytes, sizeof(sync));
		link_take_question(link, sync.number);
		break;
	case LINK_STOP:
		link->config.stop(link->config.context);
		break;
	case LINK_SYNCED:
		memcpy(&sync, bytes, sizeof(sync));
		link_let_ended_go(link, sync.number);
		if (sync.number == link->asked)
			link_synced(link);
		break;
	default:
		break; /* of a later version, or meant for ttmemd */
	}
}

/*
 * Books are offered to nobody but root, our own user, and the user whose folder it is: the path may be in a
 * folder that others can write.
 */
static bool link_trusts(int fd, const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct stat st;
	char *slash;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	(void)snprintf(folder, sizeof(folder), "%s", path); /* it fits: we are connected */
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == peer.uid &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A connected socket, or -1. */
static int link_open(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_CLOSE int fd = -1;
	size_t length = strlen(path);

	if (length >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    !link_trusts(fd, path))
		return -1;
	return cleanup_steal_fd(&fd);
}

static void link_connect(struct legacy_link *link)
{
	const struct packet_channel_config config = {
		.loop = link->config.loop,
		.context = link,
		.received = link_received,
		.ended = link_ended,
	};
	struct link_hello hello = {.want = LINK_WANT_BOOKS};
	int fd = link_open(link->config.path);

	if (fd < 0 || packet_channel_new_consume(&link->channel, fd, &config) < 0) {
		link_try_again(link);
		return;
	}
	link->again_ns = 0;
	if (link->config.wants_lines)
		hello.want |= LINK_WANT_LINES;
	link_head_init(&hello.head, LINK_HELLO, sizeof(hello));
	link_send(link, &hello, sizeof(hello), NULL, 0);
	link_send_state(link);
	if (link->server)
		legacy_server_each(link->server, legacy_link_kept, link);
	link_offer_ended(link);
	link_ask(link);
}

static void link_again(struct loop_timer *timer)
{
	link_connect(container_of(timer, struct legacy_link, again));
}

void legacy_link_serve(struct legacy_link *link, struct legacy_server *server)
{
	link->server = server;
}

bool legacy_link_is_connected(const struct legacy_link *link)
{
	return link->channel;
}

bool legacy_link_is_settled(const struct legacy_link *link)
{
	return link->is_settled;
}

int legacy_link_new(struct legacy_link **ret_link, const struct legacy_link_config *config)
{
	struct legacy_link *link = calloc(1, sizeof(*link));

	if (!link)
		return -ENOMEM;
	link->config = *config;
	link->again.fire = link_again;
	link->patience.fire = link_impatient;
	link->ended_users = (struct quota){.total = LINK_ENDED_MAX, .each = LINK_ENDED_PER_USER};
	link_connect(link);
	*ret_link = link;
	return 0;
}

struct legacy_link *legacy_link_free(struct legacy_link *link)
{
	if (!link)
		return NULL;
	loop_cancel(link->config.loop, &link->again);
	loop_cancel(link->config.loop, &link->patience);
	packet_channel_free(link->channel);
	link_let_ended_go(link, UINT64_MAX);
	free(link->ended);
	quota_deinit(&link->ended_users);
	free(link);
	return NULL;
}
