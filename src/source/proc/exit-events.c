/* SPDX-License-Identifier: Apache-2.0 */

/* The process connector. A filter in the kernel drops all messages but those about exits. */

#include "source/proc/exit-events.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"

#define EXIT_EVENTS_ROOM (1 << 20) /* bytes that may wait: some hundred exits at least */

/* The kernel's struct cn_msg without its data, which a struct can only have at its end. */
struct exit_events_connector {
	struct cb_id id;
	uint32_t seq;
	uint32_t ack;
	uint16_t len;
	uint16_t flags;
};

_Static_assert(sizeof(struct exit_events_connector) == sizeof(struct cn_msg), "as on the wire");

/* A message, without the alignment that the kernel's struct proc_event asks for. */
struct exit_events_message {
	struct nlmsghdr head;
	struct exit_events_connector connector;
	uint8_t event[sizeof(struct proc_event)];
};

_Static_assert(offsetof(struct exit_events_message, event) == 36, "as on the wire");

/* What a user of the connector sends. */
struct exit_events_request {
	struct nlmsghdr head;
	struct exit_events_connector connector;
	uint32_t operation;
};

/* Keeps messages whose `what` is PROC_EVENT_EXIT; the filter's loads are big-endian. */
static int exit_events_filter(int fd)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct exit_events_message, event)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXIT), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = ARRAY_SIZE(steps), .filter = steps};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int exit_events_listen(int fd)
{
	const struct exit_events_request request = {
		.head = {.nlmsg_len = sizeof(request), .nlmsg_type = NLMSG_DONE},
		.connector = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
			      .len = sizeof(request.operation)},
		.operation = PROC_CN_MCAST_LISTEN,
	};

	return send(fd, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request) ? 0 : -errno;
}

int exit_events_open(void)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	const int room = EXIT_EVENTS_ROOM;
	CLEANUP_CLOSE int fd =
		socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	int r;

	if (fd < 0)
		return -errno;
	/* Otherwise less fits, and more is lost. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	r = exit_events_filter(fd);
	if (r < 0)
		return r;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	r = exit_events_listen(fd);
	return r < 0 ? r : cleanup_steal_fd(&fd);
}

static bool exit_events_is_exit(const struct exit_events_message *message, size_t length,
				struct proc_event *ret_event)
{
	if (length < sizeof(*message) || message->connector.id.idx != CN_IDX_PROC ||
	    message->connector.id.val != CN_VAL_PROC ||
	    message->connector.len < sizeof(struct proc_event))
		return false;
	memcpy(ret_event, message->event, sizeof(*ret_event));
	return ret_event->what == PROC_EVENT_EXIT;
}

int exit_events_next(int fd, struct exit_event *ret_event)
{
	struct exit_events_message message;
	struct sockaddr_nl sender = {.nl_pid = UINT32_MAX};
	socklen_t size = sizeof(sender);
	struct proc_event event;
	ssize_t n = recvfrom(fd, &message, sizeof(message), MSG_DONTWAIT,
			     (struct sockaddr *)&sender, &size);

	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	/* Others may send to the group, too; only the kernel has no number. */
	if (size != sizeof(sender) || sender.nl_pid != 0 ||
	    !exit_events_is_exit(&message, (size_t)n, &event))
		return EXIT_EVENTS_OTHER;
	*ret_event = (struct exit_event){
		.pid = (uint32_t)event.event_data.exit.process_tgid,
		.is_leader =
			event.event_data.exit.process_pid == event.event_data.exit.process_tgid,
		.status = (int)(event.event_data.exit.exit_code & 0xffff),
	};
	return 0;
}
