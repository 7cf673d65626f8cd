/* SPDX-License-Identifier: Apache-2.0 */

/* Descriptors in flight, which the kernel keeps as long as one end of the pair is open. */

#include "legacy/server/legacy-box.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

int legacy_box_init(struct legacy_box *box)
{
	int ends[2];

	*box = LEGACY_BOX_NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	box->out = ends[0];
	box->in = ends[1];
	return 0;
}

void legacy_box_deinit(struct legacy_box *box)
{
	if (box->out >= 0)
		(void)close(box->out); /* others may hold it */
	if (box->in >= 0)
		(void)close(box->in); /* what is in it stays there */
	*box = LEGACY_BOX_NULL;
}

int legacy_box_put(struct legacy_box *box, const uint32_t *numbers, const int *fds, size_t count)
{
	int r = fd_pass_send(box->in, numbers, count * sizeof(*numbers), fds, count, MSG_DONTWAIT);

	box->messages += r == 0;
	return r;
}

static int box_list_one(int out, legacy_box_fn *found, void *context)
{
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(LEGACY_BOX_BATCH);
	uint32_t numbers[LEGACY_BOX_BATCH];
	ssize_t n = fd_pass_receive(out, numbers, sizeof(numbers), &got, MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0)
		return n == 0 ? -EAGAIN : (int)n;
	if (n > (ssize_t)sizeof(numbers))
		return -EBADMSG;
	for (size_t i = 0; i < (size_t)n / sizeof(*numbers) && got.fds[i] >= 0; i++)
		found(context, numbers[i], cleanup_steal_fd(&got.fds[i]));
	return 0;
}

int legacy_box_list(int out, legacy_box_fn *found, void *context)
{
	int start = 0, r;

	/* Each look begins behind the one before. */
	if (setsockopt(out, SOL_SOCKET, SO_PEEK_OFF, &start, sizeof(start)) < 0)
		return -errno;
	do
		r = box_list_one(out, found, context);
	while (r == 0);
	return r == -EAGAIN ? 0 : r;
}
