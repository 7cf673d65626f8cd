/* SPDX-License-Identifier: Apache-2.0 */

/* Building the packets of an answer. */

#include "daemon/native/native-answer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/fd-pass.h"
#include "daemon/registry/tracked.h"
#include "web/server/local-request.h"

void native_answer_init(struct native_answer *answer, uint32_t kind, struct native_room *room,
			uint32_t user)
{
	*answer = (struct native_answer){
		.kind = kind,
		.room = room,
		.user = user,
	};
	answer->end = &answer->first;
}

struct native_packet *native_packet_free(struct native_packet *packet)
{
	if (!packet)
		return NULL;
	tracked_unref(packet->book);
	if (packet->file >= 0)
		(void)close(packet->file); /* only read */
	free(packet);
	return NULL;
}

static uint64_t native_answer_weight(size_t length)
{
	return sizeof(struct native_packet) + length;
}

/* @is_last: a small one, which is exempt from the limits. */
static bool native_answer_charge(struct native_answer *answer, uint64_t weight, bool is_last)
{
	struct native_room *room = answer->room;
	bool may;

	pthread_mutex_lock(&room->lock);
	may = is_last ? quota_add(&room->bytes, answer->user, weight) == 0
		      : quota_take(&room->bytes, answer->user, weight);
	pthread_mutex_unlock(&room->lock);
	return may;
}

static void native_answer_discharge(struct native_answer *answer, uint64_t weight)
{
	pthread_mutex_lock(&answer->room->lock);
	quota_give(&answer->room->bytes, answer->user, weight);
	pthread_mutex_unlock(&answer->room->lock);
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

static struct native_packet *native_packet_new(size_t length)
{
	struct native_packet *packet = malloc(sizeof(*packet) + length);

	if (!packet)
		return NULL;
	packet->next = NULL;
	packet->book = NULL;
	packet->file = -1;
	packet->length = length;
	return packet;
}

static void native_answer_append(struct native_answer *answer, struct native_packet *packet)
{
	*answer->end = packet;
	answer->end = &packet->next;
}

/*
 * Appends a packet of @length bytes. NULL if a limit or memory is exhausted; the error is kept in
 * the answer.
 */
static struct native_packet *native_answer_room(struct native_answer *answer, size_t length)
{
	uint64_t weight = native_answer_weight(length);
	struct native_packet *packet;

	if (answer->error < 0)
		return NULL;
	if (!native_answer_charge(answer, weight, false)) {
		answer->error = -ENOBUFS;
		return NULL;
	}
	packet = native_packet_new(length);
	if (packet) {
		native_answer_append(answer, packet);
	} else {
		answer->error = -ENOMEM;
		native_answer_discharge(answer, weight);
	}
	return packet;
}

int native_answer_put(struct native_answer *answer, const void *payload, size_t length,
		      struct tracked *book)
{
	struct native_reply head;
	struct native_packet *packet = native_answer_room(answer, sizeof(head) + length);

	if (!packet)
		return answer->error;
	native_reply_init(&head, answer->kind);
	head.length = (uint32_t)length;
	packet->book = book ? tracked_ref(book) : NULL;
	memcpy(packet->bytes, &head, sizeof(head));
	if (length)
		memcpy(packet->bytes + sizeof(head), payload, length);
	return 0;
}

int native_answer_put_file_consume(struct native_answer *answer, int file)
{
	int r = native_answer_put(answer, NULL, 0, NULL);

	if (r == 0)
		container_of(answer->end, struct native_packet, next)->file = file;
	else
		(void)close(file); /* only read */
	return r;
}

static ssize_t native_answer_write(void *cookie, const char *text, size_t length)
{
	struct native_answer *answer = cookie;

	for (size_t done = 0; done < length;) {
		size_t part = bits_min(length - done, NATIVE_PACKET_MAX);
		struct native_packet *packet = native_answer_room(answer, part);

		if (!packet)
			return 0; /* how fopencookie() expects a failure */
		memcpy(packet->bytes, text + done, part);
		answer->text += part;
		done += part;
	}
	return (ssize_t)length;
}

FILE *native_answer_open(struct native_answer *answer, char buffer[NATIVE_PACKET_MAX])
{
	static const cookie_io_functions_t functions = {.write = native_answer_write};
	FILE *stream = fopencookie(answer, "w", functions);

	/* Write whole packets. glibc ignores the size unless the buffer is ours. */
	if (stream)
		(void)setvbuf(stream, buffer, _IOFBF, NATIVE_PACKET_MAX);
	return stream;
}

static const char *native_answer_reason(int status)
{
	switch (status) {
	case -ENOBUFS:
		return "the answer is too large; ask for less at a time";
	case -ENOMEM:
		return "the daemon has no memory left";
	case -EOPNOTSUPP:
		return "this ttmemd is newer than the ttmem that asks: upgrade ttmem";
	case -EPROTONOSUPPORT:
		return "the daemon is of another version";
	case -ENOENT:
		return "there is no such recording of yours";
	default:
		return "the daemon could not answer";
	}
}

/* The packet that reports the outcome: small, so it is exempt from the limits. NULL: no memory. */
static struct native_packet *native_answer_last(struct native_answer *answer, size_t length)
{
	struct native_packet *packet = native_packet_new(length);

	if (packet)
		(void)native_answer_charge(answer, native_answer_weight(length),
					   true); /* without memory it does not count */
	return packet;
}

void native_answer_end(struct native_answer *answer, int status)
{
	const char *text = "";
	struct native_packet *packet;
	struct native_reply head;

	if (status == 0)
		status = answer->error;
	if (status < 0) {
		native_answer_drop(answer);
		text = native_answer_reason(status);
	}
	native_reply_init(&head, answer->kind);
	head.flags = NATIVE_END;
	head.status = status;
	head.length = (uint32_t)strlen(text);
	packet = native_answer_last(answer, sizeof(head) + head.length);
	if (!packet)
		return;
	memcpy(packet->bytes, &head, sizeof(head));
	memcpy(packet->bytes + sizeof(head), text, head.length);
	native_answer_append(answer, packet);
}

void native_answer_end_http(struct native_answer *answer, const struct local_request_answer *told)
{
	struct local_request_answer refusal = {503, "Service Unavailable", "text/plain", ""};
	char head[256 + LOCAL_REQUEST_PROBLEM_SIZE];
	struct native_packet *packet;
	bool is_good;
	int length;

	/* The writer of the body does not know that a packet found no room. */
	if (answer->error < 0) {
		(void)snprintf(refusal.problem, sizeof(refusal.problem), "%s",
			       native_answer_reason(answer->error)); /* fits */
		told = &refusal;
	}
	is_good = told->status == 200;
	if (!is_good)
		native_answer_drop(answer);
	length = snprintf(head, sizeof(head),
			  "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %" PRIu64
			  "\r\nCache-Control: no-store\r\n\r\n%s",
			  told->status, told->reason, told->type,
			  is_good ? answer->text : strlen(told->problem),
			  is_good ? "" : told->problem);
	packet = length > 0 && (size_t)length < sizeof(head)
			 ? native_answer_last(answer, (size_t)length)
			 : NULL;
	if (!packet)
		return;
	memcpy(packet->bytes, head, (size_t)length);
	packet->next = answer->first;
	answer->first = packet;
	if (!packet->next)
		answer->end = &packet->next;
}

int native_packet_send(int fd, struct native_packet *packet)
{
	CLEANUP_CLOSE int book = -1;
	struct native_process process;
	bool has_book = false;
	char path[64];

	if (packet->file >= 0)
		return fd_pass_send(fd, packet->bytes, packet->length, &packet->file, 1,
				    MSG_DONTWAIT);
	if (packet->book) {
		/* The descriptor never changes while the book exists, so no lock is needed. */
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", packet->book->book->file.fd);
		book = open(path, O_RDONLY | O_CLOEXEC);
		has_book = book >= 0 && (fcntl(book, F_GETFL) & O_ACCMODE) == O_RDONLY;
	}
	if (!packet->book || has_book) {
		int r = fd_pass_send(fd, packet->bytes, packet->length, &book, has_book,
				     MSG_DONTWAIT);

		if (r != -ETOOMANYREFS || !packet->book)
			return r;
	}
	memcpy(&process, packet->bytes + sizeof(struct native_reply), sizeof(process));
	process.flags &= ~NATIVE_HAS_BOOK;
	if (process.parts == 0)
		process.flags &= ~NATIVE_EXACT; /* there are no totals for it */
	memcpy(packet->bytes + sizeof(struct native_reply), &process, sizeof(process));
	packet->book = tracked_unref(packet->book);
	return native_packet_send(fd, packet);
}
