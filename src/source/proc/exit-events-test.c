/* SPDX-License-Identifier: Apache-2.0 */

/* Exits of real processes as the connector tells them, and messages of others, which do not count. */

#include "source/proc/exit-events.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

/* Opens the connector, or ends the case: only root in the initial namespaces hears anything. */
static int open_or_skip(void)
{
	char target[64] = "";
	int fd;

	if (readlink("/proc/self/ns/pid", target, sizeof(target) - 1) < 0 ||
	    strcmp(target, "pid:[4026531836]") != 0)
		unit_skip("the connector is for the initial pid namespace");
	fd = exit_events_open();
	if (fd < 0)
		unit_skip("the connector is not there, or needs CAP_NET_ADMIN");
	return fd;
}

/* Waits for the exit of the first thread of @pid. */
static struct exit_event next_of(int fd, pid_t pid)
{
	struct exit_event event;

	for (;;) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int r = exit_events_next(fd, &event);

		if (r == 0 && event.pid == (uint32_t)pid && event.is_leader)
			return event;
		assert(r >= 0 || r == -EAGAIN);
		if (r == -EAGAIN)
			assert(poll(&wait, 1, -1) == 1);
	}
}

UNIT(a_process_that_was_waited_for_is_told)
{
	static const int codes[] = {0, 3, 255};
	int fd = open_or_skip(), status;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(codes[i]);
		assert(waitpid(pid, &status, 0) == pid);
		assert(next_of(fd, pid).status == status);
	}
	(void)close(fd);
}

UNIT(a_signal_is_told)
{
	int fd = open_or_skip(), status;
	pid_t pid = fork();

	if (pid == 0)
		(void)raise(SIGKILL);
	assert(waitpid(pid, &status, 0) == pid);
	assert(next_of(fd, pid).status == status && WTERMSIG(status) == SIGKILL);
	(void)close(fd);
}

/* A message as the kernel would send it. */
struct forged {
	struct nlmsghdr head;
	struct cn_msg connector;
	uint8_t event[sizeof(struct proc_event)];
};

UNIT(what_others_send_does_not_count)
{
	struct forged forged = {
		.head = {.nlmsg_len = sizeof(forged), .nlmsg_type = NLMSG_DONE},
		.connector = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
			      .len = sizeof(struct proc_event)},
	};
	struct proc_event event = {.what = PROC_EVENT_EXIT};
	struct exit_event told = {.pid = 0};
	int ends[2];

	event.event_data.exit.process_pid = event.event_data.exit.process_tgid = 17;
	memcpy(forged.event, &event, sizeof(event));
	/* A socket of another family has no sender that is the kernel. */
	assert(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
	assert(send(ends[1], &forged, sizeof(forged), 0) == sizeof(forged));
	assert(exit_events_next(ends[0], &told) == EXIT_EVENTS_OTHER && told.pid == 0);
	assert(exit_events_next(ends[0], &told) == -EAGAIN);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

UNIT(what_another_process_multicasts_does_not_count)
{
	struct forged forged = {
		.head = {.nlmsg_len = sizeof(forged), .nlmsg_type = NLMSG_DONE},
		.connector = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
			      .len = sizeof(struct proc_event)},
	};
	const struct sockaddr_nl group = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	struct proc_event event = {.what = PROC_EVENT_EXIT};
	int fd = open_or_skip(), status;
	int other = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	struct exit_event told;
	pid_t pid;
	int r;

	/* A process that does not exist: its exit can only be forged. */
	event.event_data.exit.process_pid = event.event_data.exit.process_tgid = 0x3fffffff;
	memcpy(forged.event, &event, sizeof(event));
	if (sendto(other, &forged, sizeof(forged), 0, (const struct sockaddr *)&group,
		   sizeof(group)) != sizeof(forged))
		unit_skip("nobody may send to the group");
	pid = fork();
	if (pid == 0)
		_exit(3);
	assert(waitpid(pid, &status, 0) == pid);
	do { /* up to an exit that came later */
		r = exit_events_next(fd, &told);
		assert(r != 0 || told.pid != 0x3fffffff);
		if (r == -EAGAIN)
			break;
	} while (r != 0 || told.pid != (uint32_t)pid);
	assert(r == 0);
	(void)close(other);
	(void)close(fd);
}

UNIT(what_is_lost_is_told)
{
	const int room = 1;
	int fd = open_or_skip(), r;
	struct exit_event event;

	/* As small as the kernel lets it be: a few messages. */
	assert(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) == 0);
	for (unsigned int i = 0; i < 64; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		assert(waitpid(pid, NULL, 0) == pid);
	}
	do
		r = exit_events_next(fd, &event);
	while (r >= 0);
	assert(r == -ENOBUFS);
	(void)close(fd);
}
