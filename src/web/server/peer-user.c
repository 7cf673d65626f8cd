/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One question to the kernel for each connection: for the socket whose two ends are those of ours,
 * the other way round. It is found by its hash, however many there are.
 */

#include "web/server/peer-user.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

struct peer_user {
	int fd;
	uint32_t sequence;
};

struct peer_user_question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

struct peer_user *peer_user_new(void)
{
	CLEANUP_FREE struct peer_user *peer_user = calloc(1, sizeof(*peer_user));

	if (!peer_user)
		return NULL;
	peer_user->fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	if (peer_user->fd < 0)
		return NULL;
	return cleanup_steal(peer_user);
}

struct peer_user *peer_user_free(struct peer_user *peer_user)
{
	if (peer_user)
		(void)close(peer_user->fd); /* nothing waits in it */
	free(peer_user);
	return NULL;
}

/* An address and a port, both as they are on the wire. Return: the family, 0 = none of these. */
static uint8_t peer_user_end(const struct sockaddr_storage *from, uint32_t address[4],
			     uint16_t *ret_port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (from->ss_family == AF_INET) {
		memcpy(&four, from, sizeof(four));
		memcpy(address, &four.sin_addr, 4);
		*ret_port = four.sin_port;
		return AF_INET;
	}
	if (from->ss_family != AF_INET6)
		return 0;
	memcpy(&six, from, sizeof(six));
	*ret_port = six.sin6_port;
	/* A client of IPv4 has an ordinary socket at its end. */
	if (memcmp(&six.sin6_addr, mapped, sizeof(mapped)) == 0) {
		memcpy(address, six.sin6_addr.s6_addr + 12, 4);
		return AF_INET;
	}
	memcpy(address, &six.sin6_addr, 16);
	return AF_INET6;
}

static bool peer_user_prepare(int fd, struct peer_user_question *question)
{
	struct sockaddr_storage peer = {0}, self = {0};
	socklen_t peer_length = sizeof(peer), self_length = sizeof(self);
	struct inet_diag_sockid *id = &question->body.id;

	*question = (struct peer_user_question){
		.head = {.nlmsg_len = sizeof(*question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX,
			 .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) < 0 ||
	    getsockname(fd, (struct sockaddr *)&self, &self_length) < 0)
		return false;
	question->body.sdiag_family = peer_user_end(&peer, id->idiag_src, &id->idiag_sport);
	return question->body.sdiag_family != 0 &&
	       question->body.sdiag_family == peer_user_end(&self, id->idiag_dst, &id->idiag_dport);
}

/* The kernel answers before send() returns, so nothing is waited for. */
static uint32_t peer_user_receive(struct peer_user *peer_user)
{
	struct {
		struct nlmsghdr head;
		union {
			struct inet_diag_msg socket;
			char rest[1024]; /* attributes that were not asked for */
		};
	} answer;

	for (;;) {
		ssize_t n = recv(peer_user->fd, &answer, sizeof(answer), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)sizeof(answer.head))
			return PEER_USER_UNKNOWN;
		if (answer.head.nlmsg_seq != peer_user->sequence)
			continue; /* a late one */
		if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		    n < (ssize_t)(sizeof(answer.head) + sizeof(answer.socket)))
			return PEER_USER_UNKNOWN;
		/*
		 * A socket that no process holds any more has the number 0 for its user, which is
		 * root's; so has one that waits for its end. Without an established one the kernel
		 * answers for a socket that listens at the peer's port, whosever that is.
		 */
		if (answer.socket.idiag_state != TCP_ESTABLISHED || answer.socket.idiag_inode == 0)
			return PEER_USER_UNKNOWN;
		return answer.socket.idiag_uid;
	}
}

uint32_t peer_user_find(struct peer_user *peer_user, int fd)
{
	struct peer_user_question question;

	if (!peer_user || !peer_user_prepare(fd, &question))
		return PEER_USER_UNKNOWN;
	question.head.nlmsg_seq = ++peer_user->sequence;
	if (send(peer_user->fd, &question, sizeof(question), 0) < 0)
		return PEER_USER_UNKNOWN;
	return peer_user_receive(peer_user);
}
