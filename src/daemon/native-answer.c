/* SPDX-License-Identifier: Apache-2.0 */

/* Building the packets of an answer; the header tells the idea. */

#include "daemon/native-answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "daemon/tracked.h"

void native_answer_init(struct native_answer *answer, uint32_t kind, uint64_t *held_by_user,
			uint64_t *held_by_all)
{
	*answer = (struct native_answer){
		.kind = kind,
		.held_by_user = held_by_user,
		.held_by_all = held_by_all,
	};
	answer->end = &answer->first;
}

struct native_packet *native_packet_free(struct native_packet *packet)
{
	if (!packet)
		return NULL;
	tracked_unref(packet->book);
	free(packet);
	return NULL;
}

static uint64_t native_answer_weight(size_t length)
{
	return sizeof(struct native_packet) + length;
}

static bool native_answer_charge(struct native_answer *answer, uint64_t weight)
{
	uint64_t mine = __atomic_add_fetch(answer->held_by_user, weight, __ATOMIC_RELAXED);
	uint64_t all = __atomic_add_fetch(answer->held_by_all, weight, __ATOMIC_RELAXED);

	answer->bytes += weight;
	return mine <= NATIVE_ANSWER_MAX && all <= NATIVE_ANSWERS_MAX;
}

static void native_answer_discharge(struct native_answer *answer, uint64_t weight)
{
	__atomic_sub_fetch(answer->held_by_user, weight, __ATOMIC_RELAXED);
	__atomic_sub_fetch(answer->held_by_all, weight, __ATOMIC_RELAXED);
	answer->bytes -= weight;
}

struct native_packet *native_answer_take(struct native_answer *answer)
{
	struct native_packet *packet = answer->first;

	if (!packet)
		return NULL;
	answer->first = packet->next;
	if (!answer->first)
		answer->end = &answer->first;
	native_answer_discharge(answer, native_answer_weight(packet->length));
	return packet;
}

static void native_answer_drop(struct native_answer *answer)
{
	struct native_packet *packet;

	while ((packet = native_answer_take(answer)))
		native_packet_free(packet);
}

void native_answer_deinit(struct native_answer *answer)
{
	if (answer->end)
		native_answer_drop(answer);
}

/* Adds a packet without asking whether there is room: it has been charged. */
static int native_answer_append(struct native_answer *answer, const struct native_reply *head,
				const void *payload, struct tracked *book)
{
	size_t length = sizeof(*head) + head->length;
	struct native_packet *packet = malloc(sizeof(*packet) + length);

	if (!packet)
		return -ENOMEM;
	packet->next = NULL;
	packet->book = book ? tracked_ref(book) : NULL;
	packet->length = length;
	memcpy(packet->bytes, head, sizeof(*head));
	if (head->length)
		memcpy(packet->bytes + sizeof(*head), payload, head->length);
	*answer->end = packet;
	answer->end = &packet->next;
	return 0;
}

int native_answer_put(struct native_answer *answer, const void *payload, size_t length,
		      struct tracked *book)
{
	struct native_reply head;
	uint64_t weight = native_answer_weight(sizeof(head) + length);
	int r = answer->error;

	if (r < 0)
		return r;
	native_reply_init(&head, answer->kind);
	head.length = (uint32_t)length;
	r = native_answer_charge(answer, weight) ? 0 : -ENOBUFS;
	if (r == 0)
		r = native_answer_append(answer, &head, payload, book);
	if (r < 0) {
		native_answer_discharge(answer, weight);
		answer->error = r;
	}
	return r;
}

static ssize_t native_answer_write(void *cookie, const char *text, size_t length)
{
	struct native_answer *answer = cookie;

	for (size_t done = 0; done < length;) {
		size_t part = bits_min(length - done, NATIVE_PAYLOAD_MAX);

		if (native_answer_put(answer, text + done, part, NULL) < 0)
			return 0; /* that is how a failure is told here */
		done += part;
	}
	return (ssize_t)length;
}

FILE *native_answer_open(struct native_answer *answer)
{
	static const cookie_io_functions_t functions = {.write = native_answer_write};
	FILE *stream = fopencookie(answer, "w", functions);

	/* Whole packets; else they are smaller. */
	if (stream)
		(void)setvbuf(stream, NULL, _IOFBF, NATIVE_PAYLOAD_MAX);
	return stream;
}

static const char *native_answer_reason(int status)
{
	switch (status) {
	case -ENOBUFS:
		return "the answer is too large; ask for less at a time";
	case -ENOMEM:
		return "the daemon has no memory left";
	case -EAGAIN:
		return "the past cannot be asked at present";
	case -EINVAL:
		return "the question makes no sense";
	case -EOPNOTSUPP:
		return "this daemon does not answer that";
	case -EPROTONOSUPPORT:
		return "the daemon is of another version";
	default:
		return "the daemon could not answer";
	}
}

void native_answer_end(struct native_answer *answer, int status, const char *text)
{
	struct native_reply head;

	if (status == 0)
		status = answer->error;
	if (status < 0) {
		native_answer_drop(answer);
		if (!text)
			text = native_answer_reason(status);
	}
	native_reply_init(&head, answer->kind);
	head.flags = NATIVE_END;
	head.status = status;
	head.length = status < 0 ? (uint32_t)bits_min(strlen(text), 1024u) : 0;
	/* Small, and the only way to say it: not refused for lack of room. */
	(void)native_answer_charge(answer, native_answer_weight(sizeof(head) + head.length));
	if (native_answer_append(answer, &head, text, NULL) < 0)
		native_answer_discharge(answer, native_answer_weight(sizeof(head) + head.length));
}

int native_packet_send(int fd, struct native_packet *packet)
{
	CLEANUP_CLOSE int book = -1;
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.space = {0}};
	struct iovec vector = {.iov_base = packet->bytes, .iov_len = packet->length};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	struct native_process process;
	char path[64];
	ssize_t n;

	if (packet->book) {
		/* The number never changes while the book is there, so no lock is needed. */
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", packet->book->book->file.fd);
		book = open(path, O_RDONLY | O_CLOEXEC);
		if (book >= 0 && (fcntl(book, F_GETFL) & O_ACCMODE) == O_RDONLY) {
			message.msg_control = control.space;
			message.msg_controllen = sizeof(control.space);
			control.align.cmsg_level = SOL_SOCKET;
			control.align.cmsg_type = SCM_RIGHTS;
			control.align.cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(&control.align), &book, sizeof(int));
		}
	}
	if (!packet->book || message.msg_control) {
		n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0)
			return 0;
		if (!packet->book || errno != ETOOMANYREFS)
			return -errno;
	}
	memcpy(&process, packet->bytes + sizeof(struct native_reply), sizeof(process));
	process.flags &= ~NATIVE_HAS_BOOK;
	if (process.parts == 0)
		process.flags &= ~NATIVE_EXACT; /* nothing was said about its memory */
	memcpy(packet->bytes + sizeof(struct native_reply), &process, sizeof(process));
	packet->book = tracked_unref(packet->book);
	return native_packet_send(fd, packet);
}
