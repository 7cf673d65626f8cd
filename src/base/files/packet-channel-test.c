/* SPDX-License-Identifier: Apache-2.0 */

/* Two channels over a pair of sockets; one may read slowly, or not at all. */

#include "base/files/packet-channel.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"

struct end {
	struct loop *loop;
	struct packet_channel *channel;
	uint32_t count; /* of packets, which must come in order */
	ino_t inode;    /* of the last descriptor */
	bool is_over;
	bool frees_itself;
	uint32_t more; /* packets that it sends as the socket takes them */
	uint32_t sent;
};

static void received(void *context, const void *bytes, size_t length, struct fd_pass *fds)
{
	struct end *end = context;
	struct stat file;
	uint32_t number;

	assert(length == sizeof(number));
	memcpy(&number, bytes, sizeof(number));
	assert(number == end->count);
	end->count++;
	if (fds->fds[0] >= 0) {
		assert(fstat(fds->fds[0], &file) == 0);
		end->inode = file.st_ino;
	}
	if (end->frees_itself)
		end->channel = packet_channel_free(end->channel);
}

static void ended(void *context)
{
	struct end *end = context;

	end->is_over = true;
}

static void drained(void *context)
{
	struct end *end = context;

	while (end->sent < end->more && !packet_channel_waits(end->channel)) {
		packet_channel_send(end->channel, &end->sent, sizeof(end->sent), NULL, 0);
		end->sent++;
	}
}

static void end_open(struct end *end, struct loop *loop, int fd)
{
	const struct packet_channel_config config = {.loop = loop,
						     .context = end,
						     .received = received,
						     .ended = ended,
						     .drained = drained};

	*end = (struct end){.loop = loop};
	assert(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	assert(packet_channel_new_consume(&end->channel, fd, &config) == 0);
}

static void pair_open(struct end ends[2], struct loop **ret_loop)
{
	int fds[2];

	assert(loop_new(ret_loop) == 0);
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	end_open(&ends[0], *ret_loop, fds[0]);
	end_open(&ends[1], *ret_loop, fds[1]);
}

static void pair_close(struct end ends[2], struct loop *loop)
{
	packet_channel_free(ends[0].channel);
	packet_channel_free(ends[1].channel);
	loop_free(loop);
}

static void send_number(struct end *end, uint32_t number, int fd)
{
	packet_channel_send(end->channel, &number, sizeof(number), &fd, fd >= 0 ? 1 : 0);
}

UNIT(packets_and_descriptors_arrive_both_ways)
{
	CLEANUP_CLOSE int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct end ends[2];
	struct loop *loop;
	struct stat root;

	pair_open(ends, &loop);
	assert(folder >= 0 && fstat(folder, &root) == 0);
	send_number(&ends[0], 0, folder);
	send_number(&ends[1], 0, -1);
	while (ends[0].count < 1 || ends[1].count < 1)
		assert(loop_turn(loop, -1) == 0);
	assert(ends[1].inode == root.st_ino && ends[0].inode == 0);
	pair_close(ends, loop);
}

UNIT(what_the_socket_does_not_take_is_sent_later_in_order)
{
	CLEANUP_CLOSE int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct end ends[2];
	struct loop *loop;

	pair_open(ends, &loop);
	for (uint32_t i = 0; i < PACKET_CHANNEL_WAITING; i++)
		send_number(&ends[0], i, i == PACKET_CHANNEL_WAITING - 1 ? folder : -1);
	while (ends[1].count < PACKET_CHANNEL_WAITING)
		assert(loop_turn(loop, -1) == 0);
	assert(ends[1].inode != 0 && !ends[0].is_over && !ends[1].is_over);
	pair_close(ends, loop);
}

UNIT(whoever_sends_as_the_socket_takes_it_has_no_limit)
{
	struct end ends[2];
	struct loop *loop;

	pair_open(ends, &loop);
	ends[0].more = 4 * PACKET_CHANNEL_WAITING;
	drained(&ends[0]);
	assert(ends[0].sent < ends[0].more && packet_channel_waits(ends[0].channel));
	while (ends[1].count < ends[0].more)
		assert(loop_turn(loop, -1) == 0);
	assert(!ends[0].is_over && !packet_channel_waits(ends[0].channel));
	pair_close(ends, loop);
}

UNIT(a_peer_that_does_not_read_loses_the_connection)
{
	struct end ends[2];
	struct loop *loop;

	pair_open(ends, &loop);
	for (uint32_t i = 0; i < 2 * PACKET_CHANNEL_WAITING; i++)
		send_number(&ends[0], i, -1);
	assert(!ends[0].is_over); /* not while the owner sends */
	while (!ends[0].is_over || !ends[1].is_over)
		assert(loop_turn(loop, -1) == 0);
	send_number(&ends[0], 0, -1); /* dropped */
	pair_close(ends, loop);
}

UNIT(what_was_sent_before_a_hang_up_arrives)
{
	struct end ends[2];
	struct loop *loop;

	pair_open(ends, &loop);
	for (uint32_t i = 0; i < 3; i++)
		send_number(&ends[0], i, -1);
	ends[0].channel = packet_channel_free(ends[0].channel);
	while (!ends[1].is_over)
		assert(loop_turn(loop, -1) == 0);
	assert(ends[1].count == 3);
	pair_close(ends, loop);
}

UNIT(both_ends_hear_of_a_hang_up)
{
	struct end ends[2];
	struct loop *loop;

	pair_open(ends, &loop);
	packet_channel_hang_up(ends[0].channel);
	assert(!ends[0].is_over);
	send_number(&ends[0], 0, -1); /* dropped */
	while (!ends[0].is_over || !ends[1].is_over)
		assert(loop_turn(loop, -1) == 0);
	assert(ends[1].count == 0);
	pair_close(ends, loop);
}

UNIT(a_channel_can_be_freed_by_what_it_receives)
{
	struct end ends[2];
	struct loop *loop;

	pair_open(ends, &loop);
	ends[1].frees_itself = true;
	send_number(&ends[0], 0, -1);
	send_number(&ends[0], 1, -1);
	while (ends[1].channel || !ends[0].is_over)
		assert(loop_turn(loop, -1) == 0);
	assert(ends[1].count == 1);
	pair_close(ends, loop);
}
