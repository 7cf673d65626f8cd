/* SPDX-License-Identifier: Apache-2.0 */

/* One user's connections are served up to that user's share; the next when one has left. */

#include "web/server/accept-queue.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/quota.h"
#include "base/testing/unit.h"
#include "web/server/peer-user.h"

#define CLIENTS 7

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int served[CLIENTS]; /* descriptors, in the order in which they were served */
static int count;

static int serve(void *context, int fd, const struct sockaddr *peer, socklen_t length)
{
	assert(peer->sa_family == AF_INET && length == sizeof(struct sockaddr_in));
	pthread_mutex_lock(&lock);
	assert(count < CLIENTS);
	served[count++] = fd;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int count_now(void)
{
	int now;

	pthread_mutex_lock(&lock);
	now = count;
	pthread_mutex_unlock(&lock);
	return now;
}

static struct accept_queue *open_queue(uint32_t served_max, struct sockaddr_in *ret_address)
{
	struct accept_queue_config config = {.served_max = served_max, .serve_consume = serve};
	struct accept_queue *queue = NULL;
	socklen_t length = sizeof(*ret_address);

	*ret_address = (struct sockaddr_in){.sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	config.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(config.listening >= 0);
	assert(bind(config.listening, (struct sockaddr *)ret_address, length) == 0);
	assert(listen(config.listening, CLIENTS) == 0);
	assert(getsockname(config.listening, (struct sockaddr *)ret_address, &length) == 0);
	assert(accept_queue_new(&queue, &config) == 0 && accept_queue_start(queue) == 0);
	return queue;
}

static void leave(struct accept_queue *queue, int at)
{
	accept_queue_left(queue, served[at]);
	assert(close(served[at]) == 0);
}

UNIT(a_user_has_half_of_the_places_and_then_one_for_one)
{
	struct sockaddr_in address;
	struct accept_queue *queue = open_queue(4, &address);
	int clients[CLIENTS];

	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert(connect(clients[i], (struct sockaddr *)&address, sizeof(address)) == 0);
	}
	while (count_now() < 2)
		usleep(1000);
	assert(accept_queue_user(queue, served[0]) == geteuid());
	assert(accept_queue_user(queue, clients[0]) == PEER_USER_UNKNOWN);
	assert(accept_queue_user(queue, -1) == PEER_USER_UNKNOWN);
	for (int i = 0; i + 2 < CLIENTS; i++) {
		leave(queue, i);
		while (count_now() < i + 3)
			usleep(1000);
		/* Two are served at any time: this one is the third only because one has left. */
		assert(count_now() == i + 3);
	}
	accept_queue_stop(queue);
	leave(queue, CLIENTS - 2);
	leave(queue, CLIENTS - 1);
	assert(quota_counted(QUOTA_HTTP_CONNECTIONS) == 0);
	accept_queue_free(queue);
	for (int i = 0; i < CLIENTS; i++)
		assert(close(clients[i]) == 0);
}

/* A client that has left before it was accepted: whose it was is not known. */
static void connect_and_leave(const struct sockaddr_in *address)
{
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert(connect(client, (const struct sockaddr *)address, sizeof(*address)) == 0);
	assert(close(client) == 0);
}

UNIT(a_full_share_stays_full_when_another_user_connects)
{
	struct sockaddr_in address;
	struct accept_queue *queue = open_queue(8, &address);
	int clients[5];

	pthread_mutex_lock(&lock); /* none is served before all are there */
	for (int i = 0; i < 5; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (i == 4) /* after four the share is full */
			connect_and_leave(&address);
		assert(connect(clients[i], (struct sockaddr *)&address, sizeof(address)) == 0);
	}
	connect_and_leave(&address);
	pthread_mutex_unlock(&lock);
	while (count_now() < 6)
		usleep(1000);
	for (int i = 0; i < 6; i++)
		assert(accept_queue_user(queue, served[i]) ==
		       (i < 4 ? geteuid() : PEER_USER_UNKNOWN));
	accept_queue_stop(queue);
	for (int i = 0; i < 6; i++)
		leave(queue, i);
	accept_queue_free(queue);
	for (int i = 0; i < 5; i++)
		assert(close(clients[i]) == 0);
}

UNIT(what_waits_is_closed_at_the_end)
{
	struct sockaddr_in address;
	struct accept_queue *queue = open_queue(1, &address); /* half of one is none */
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;

	assert(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	accept_queue_free(queue);
	assert(count_now() == 0 && recv(client, &byte, 1, 0) <= 0);
	assert(close(client) == 0);
}

UNIT(a_queue_that_was_never_started_is_freed)
{
	struct accept_queue_config config = {.served_max = 4, .serve_consume = serve};
	struct accept_queue *queue = NULL;

	config.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(accept_queue_new(&queue, &config) == 0);
	assert(!accept_queue_free(queue) && !accept_queue_free(NULL));
}
