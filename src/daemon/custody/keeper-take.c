/* SPDX-License-Identifier: Apache-2.0 */

/* Asks the keeper for what it holds. The only thing that a starting daemon waits for. */

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/custody/keeper-private.h"

/* TAKE, for books, or FETCH, for everything else. */
struct keeper_request {
	uint32_t kind, answer;
	keeper_take_fn *take;
	keeper_fetch_fn *fetch;
	void *context;
	uint32_t count; /* of answers */
};

/* Handles one answer. 0, 1 at the end, or a negative errno. */
static int keeper_request_one(struct keeper *keeper, struct keeper_request *request)
{
	struct keeper_entry entry;
	struct keeper_wire message;
	CLEANUP_CLOSE int fd = -1;
	int r = keeper_wire_receive(keeper->link.fd, &message, &fd);

	if (r < 0)
		return r;
	if (message.kind == KEEPER_WIRE_END) {
		keeper->counts.refused = message.refused;
		return 1;
	}
	if (message.kind != request->answer || !keeper_wire_fits(&message, fd))
		return -EBADMSG;
	request->count++;
	if (request->fetch) {
		request->fetch(request->context, message.source, cleanup_steal_fd(&fd));
		return 0;
	}
	entry = (struct keeper_entry){
		.process = {message.pid, message.start_ticks},
		.book = {message.device, message.inode},
		.source = message.source,
	};
	memcpy(entry.comm, message.comm, sizeof(entry.comm));
	if (request->take)
		request->take(request->context, &entry, cleanup_steal_fd(&fd));
	return 0;
}

/* Waits for the next answer. 0 or -ETIMEDOUT. */
static int keeper_request_wait(const struct keeper *keeper)
{
	struct pollfd more = {.fd = keeper->link.fd, .events = POLLIN};

	return poll(&more, 1, KEEPER_TAKE_MS) == 0 ? -ETIMEDOUT : 0;
}

/* 0 or a negative errno: -ETIMEDOUT if an answer takes too long, or there are too many. */
static int keeper_request(struct keeper *keeper, struct keeper_request *request)
{
	const struct keeper_wire message = KEEPER_WIRE_INIT(request->kind);
	int r = keeper_wire_send(keeper->link.fd, &message, -1);

	while (r == 0) {
		r = keeper_request_one(keeper, request);
		if (r == -EAGAIN)
			r = keeper_request_wait(keeper);
		if (r == 0 && request->count > KEEPER_BOOKS_MAX)
			r = -ETIMEDOUT;
	}
	return r > 0 ? 0 : r;
}

int keeper_take(struct keeper *keeper, keeper_take_fn *take, void *context)
{
	struct keeper_request request = {
		.kind = KEEPER_WIRE_TAKE,
		.answer = KEEPER_WIRE_HELD,
		.take = take,
		.context = context,
	};
	int r;

	if (keeper->is_new || keeper->link.fd < 0)
		return 0;
	r = keeper_request(keeper, &request);
	if (r == 0)
		return 0;
	/*
	 * A keeper that does not answer, or answers without end, must be replaced; one that closed
	 * the connection was about to exit.
	 */
	keeper->is_stuck = r == -ETIMEDOUT;
	keeper_private_retire(keeper);
	/* A keeper exits by itself only if it holds nothing: then nothing was lost. */
	return r == -EPIPE && request.count == 0 ? 0 : r;
}

int keeper_fetch(struct keeper *keeper, keeper_fetch_fn *fetch, void *context)
{
	struct keeper_request request = {
		.kind = KEEPER_WIRE_FETCH,
		.answer = KEEPER_WIRE_OTHER,
		.fetch = fetch,
		.context = context,
	};
	int r;

	if (keeper->is_new || keeper->link.fd < 0)
		return 0;
	r = keeper_request(keeper, &request);
	if (r == 0)
		return 0;
	/* An older one hangs up, because it does not know the message. It is replaced. */
	keeper->is_stuck = true;
	keeper_private_retire(keeper);
	return r == -EPIPE && request.count == 0 ? 0 : r;
}
