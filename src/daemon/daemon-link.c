/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Links with programs that keep books (ttmem-legacy), and what these say of themselves: health and the door
 * of old clients take it from there.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/seed-lines.h"
#include "base/files/socket-lock.h"
#include "daemon/daemon.h"
#include "daemon/link/links.h"
#include "daemon/notify/log-writer.h"
#include "daemon/notify/notice.h"
#include "wire/link.h"

/* Answers refer to it for as long as they like, so it stays; there are as many as old sockets. */
struct daemon_link_path {
	struct daemon_link_path *next;
	char text[];
};

static const char *link_path(struct daemon *daemon, const char *text)
{
	struct daemon_link_path *path = daemon->link_paths;

	while (path && strcmp(path->text, text) != 0)
		path = path->next;
	if (path)
		return path->text;
	path = malloc(sizeof(*path) + strlen(text) + 1);
	if (!path)
		return NULL;
	memcpy(path->text, text, strlen(text) + 1);
	path->next = daemon->link_paths;
	daemon->link_paths = path;
	return path->text;
}

static void link_stated(void *context)
{
	struct daemon *daemon = context;
	const struct link_state *state = links_state(daemon->links);
	struct socket_lock_holder holder = {.kind = SOCKET_LOCK_NOTHING};

	pthread_mutex_lock(&daemon->lock);
	daemon->link_state = state ? *state : (struct link_state){0};
	pthread_mutex_unlock(&daemon->lock);
	if (!state) {
		daemon_doors_legacy(daemon, NULL, 0, NULL);
		daemon_legacy_gone(daemon);
		daemon_report_drop(daemon);
		return;
	}
	if (state->holder_kind <= SOCKET_LOCK_FILE)
		holder = (struct socket_lock_holder){.kind = state->holder_kind,
						     .pid = state->holder,
						     .uid = state->holder_user};
	daemon_doors_legacy(daemon, link_path(daemon, state->path), state->status, &holder);
	daemon_legacy_told(daemon);
}

static void link_unprinted(void *context, const char *text, size_t length)
{
	struct daemon *daemon = context;

	if (!daemon->config->quiet)
		log_writer_put(daemon->log_writer, text, length);
}

int daemon_link_open(struct daemon *daemon)
{
	const struct links_config config = {
		.loop = daemon->loop,
		.registry = daemon->registry,
		.access = &daemon->access,
		.context = daemon,
		.state = link_stated,
		.unprinted = link_unprinted,
		.report = daemon_report_take,
	};

	return links_new(&daemon->links, &config);
}

void daemon_link_close(struct daemon *daemon)
{
	daemon_report_drop(daemon);
	links_free(daemon->links);
	while (daemon->link_paths) {
		struct daemon_link_path *path = daemon->link_paths;

		daemon->link_paths = path->next;
		free(path);
	}
}

void daemon_link_consume(void *context, struct accept_peer *peer, uint32_t want)
{
	struct daemon *daemon = context;

	(void)links_add_consume(daemon->links, peer, want); /* a refusal ends the connection */
}

void daemon_link_dead(struct daemon *daemon, const struct notice *notice)
{
	char text[SEED_LINES_SIZE];
	size_t length;

	/* Of an old client, whoever keeps its book knows that by itself. */
	if (notice->is_old_client || notice->is_totals_only || strcmp(notice->kind, "leak") != 0)
		return;
	length = seed_lines_dead(&notice->dead, text);
	(void)links_print(daemon->links, notice->book, text,
			  length); /* without the program: nobody wants it */
}

bool daemon_link_lines(struct daemon *daemon, const struct notice *notice)
{
	return strcmp(notice->kind, "leak") == 0 &&
	       links_print(daemon->links, notice->book, notice->text, notice->text_length);
}
