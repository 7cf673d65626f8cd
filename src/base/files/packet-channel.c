/* SPDX-License-Identifier: Apache-2.0 */

/* Sends at once what can be sent; a list of what waits, with descriptors of its own. */

#include "base/files/packet-channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/threads/loop.h"

#define CHANNEL_TURN \
	16u /* packets received in a turn of the loop: a book in one takes up to 100 us */

struct channel_packet {
	struct channel_packet *next;
	struct fd_pass fds;
	size_t fd_count;
	size_t length;
	uint8_t bytes[];
};

struct packet_channel {
	struct packet_channel_config config;
	struct loop_source source;
	struct loop_timer failed; /* fires in the next turn */
	struct channel_packet *first, **last;
	size_t count;
	bool is_broken;
	bool *is_freed; /* while a callback runs */
	uint8_t bytes[PACKET_CHANNEL_SIZE];
};

static void channel_packet_free(struct channel_packet *packet)
{
	fd_pass_close(&packet->fds);
	free(packet);
}

static void channel_drop_all(struct packet_channel *channel)
{
	while (channel->first) {
		struct channel_packet *packet = channel->first;

		channel->first = packet->next;
		channel_packet_free(packet);
	}
	channel->last = &channel->first;
	channel->count = 0;
}

/* ended() is called by the loop, never while the owner sends. */
void packet_channel_hang_up(struct packet_channel *channel)
{
	struct loop *loop = channel->config.loop;

	if (channel->is_broken)
		return;
	channel->is_broken = true;
	channel_drop_all(channel);
	(void)shutdown(channel->source.fd, SHUT_RDWR); /* fails if the peer is gone */
	/* Without memory for the timer the hang-up is noticed by the loop. */
	(void)loop_set(loop, &channel->failed, loop_now(loop));
}

static void channel_end(struct packet_channel *channel)
{
	channel->is_broken = true;
	channel_drop_all(channel);
	loop_cancel(channel->config.loop, &channel->failed);
	loop_remove(channel->config.loop, &channel->source);
	channel->config.ended(channel->config.context);
}

static void channel_failed(struct loop_timer *timer)
{
	channel_end(container_of(timer, struct packet_channel, failed));
}

static bool channel_is_full(int r)
{
	return r == -EAGAIN || r == -ENOBUFS || r == -EINTR || r == -ETOOMANYREFS;
}

static void channel_send_waiting(struct packet_channel *channel)
{
	while (channel->first) {
		struct channel_packet *packet = channel->first;
		int r = fd_pass_send(channel->source.fd, packet->bytes, packet->length,
				     packet->fds.fds, packet->fd_count, MSG_DONTWAIT);

		if (channel_is_full(r))
			return;
		if (r < 0) {
			packet_channel_hang_up(channel);
			return;
		}
		channel->first = packet->next;
		if (!channel->first)
			channel->last = &channel->first;
		channel->count--;
		channel_packet_free(packet);
	}
	(void)loop_change(channel->config.loop, &channel->source, EPOLLIN); /* it is there */
	if (channel->config.drained)
		channel->config.drained(channel->config.context);
}

static struct channel_packet *channel_packet_new(const void *bytes, size_t length, const int *fds,
						 size_t fd_count)
{
	struct channel_packet *packet = malloc(sizeof(*packet) + length);

	if (!packet)
		return NULL;
	*packet = (struct channel_packet){
		.fds = FD_PASS_WANT(0), .fd_count = fd_count, .length = length};
	packet->fds.wanted = fd_count;
	memcpy(packet->bytes, bytes, length);
	for (size_t i = 0; i < fd_count; i++) {
		packet->fds.fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (packet->fds.fds[i] < 0) {
			channel_packet_free(packet);
			return NULL;
		}
	}
	return packet;
}

void packet_channel_send(struct packet_channel *channel, const void *bytes, size_t length,
			 const int *fds, size_t fd_count)
{
	struct channel_packet *packet;
	int r;

	if (channel->is_broken)
		return;
	r = channel->first
		    ? -EAGAIN
		    : fd_pass_send(channel->source.fd, bytes, length, fds, fd_count, MSG_DONTWAIT);
	if (r == 0)
		return;
	packet = channel_is_full(r) && channel->count < PACKET_CHANNEL_WAITING
			 ? channel_packet_new(bytes, length, fds, fd_count)
			 : NULL;
	if (!packet ||
	    loop_change(channel->config.loop, &channel->source, EPOLLIN | EPOLLOUT) < 0) {
		if (packet)
			channel_packet_free(packet);
		packet_channel_hang_up(channel);
		return;
	}
	*channel->last = packet;
	channel->last = &packet->next;
	channel->count++;
}

bool packet_channel_waits(const struct packet_channel *channel)
{
	return channel->is_broken || channel->first;
}

/* Receives one packet. 0, or a negative errno: -EPIPE at the end, -ECANCELED if the owner freed the channel. */
static int channel_receive(struct packet_channel *channel)
{
	CLEANUP_FD_PASS struct fd_pass fds = FD_PASS_WANT(FD_PASS_MAX);
	ssize_t n = fd_pass_receive(channel->source.fd, channel->bytes, sizeof(channel->bytes),
				    &fds, MSG_DONTWAIT);
	bool is_freed = false;

	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EPIPE;
	if ((size_t)n > sizeof(channel->bytes) || fds.is_cut)
		return -EBADMSG;
	channel->is_freed = &is_freed;
	channel->config.received(channel->config.context, channel->bytes, (size_t)n, &fds);
	if (is_freed)
		return -ECANCELED;
	channel->is_freed = NULL;
	return 0;
}

static void channel_ready(struct loop_source *source, uint32_t events)
{
	struct packet_channel *channel = container_of(source, struct packet_channel, source);
	int r = 0;

	if (events & EPOLLOUT)
		channel_send_waiting(channel);
	for (unsigned int i = 0; r == 0 && i < CHANNEL_TURN && !channel->is_broken; i++)
		r = channel_receive(channel);
	if (r == -ECANCELED)
		return;
	/* A peer that dies with packets unread resets the connection; what it sent is still there. */
	if (r == -ECONNRESET)
		return;
	if (channel->is_broken || (r < 0 && r != -EAGAIN && r != -EINTR))
		channel_end(channel);
}

void packet_channel_look(struct packet_channel *channel)
{
	struct pollfd wait = {.fd = channel->source.fd};
	int r = 0;

	if (poll(&wait, 1, 0) <= 0 || !(wait.revents & POLLHUP))
		return;
	/* What it sent before is less than a socket holds. */
	while ((r == 0 || r == -ECONNRESET) && !channel->is_broken)
		r = channel_receive(channel);
	if (r != -ECANCELED)
		channel_end(channel);
}

int packet_channel_new_consume(struct packet_channel **ret_channel, int fd,
			       const struct packet_channel_config *config)
{
	CLEANUP_CLOSE int owned = fd;
	CLEANUP_FREE struct packet_channel *channel = calloc(1, sizeof(*channel));
	int r;

	if (!channel)
		return -ENOMEM;
	channel->config = *config;
	channel->failed.fire = channel_failed;
	channel->last = &channel->first;
	channel->source = (struct loop_source){.fd = owned, .ready = channel_ready};
	r = loop_add(config->loop, &channel->source, EPOLLIN);
	if (r < 0)
		return r;
	(void)cleanup_steal_fd(&owned);
	*ret_channel = cleanup_steal(channel);
	return 0;
}

struct packet_channel *packet_channel_free(struct packet_channel *channel)
{
	if (!channel)
		return NULL;
	if (channel->is_freed)
		*channel->is_freed = true;
	loop_cancel(channel->config.loop, &channel->failed);
	loop_remove(channel->config.loop, &channel->source);
	(void)close(channel->source.fd); /* what it took is on its way */
	channel_drop_all(channel);
	free(channel);
	return NULL;
}
