/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a book that is offered over a link may be taken, and whose it is. The program that offers it has
 * made its file, and may offer it for processes of its own user; root and the daemon's own user for any. The
 * process is that of the pidfd, as /proc knows it, and the book has to be about that one; what the book or
 * the offer say about a user counts for nothing, unless nobody can be asked any more and the program is
 * trusted.
 */

#include <stdbool.h>
#include <stdint.h>

struct link_offer;
struct proc;
struct registry;
struct registry_offer;

struct link_sender {
	uint32_t uid;
	bool is_trusted; /* root, or the daemon's own user */
};

/* Root, or the daemon's own user: both could as well write what the daemon stores. */
bool link_offer_trusts(uint32_t uid);

/*
 * Takes both descriptors in any case; -1 = none. 0 and @ret_offer without its link; -EBADMSG if that is no
 * book or no pidfd; -EPERM if this sender may not offer it; or another negative errno.
 */
int link_offer_open_consume(const struct registry *registry, const struct link_sender *sender,
			    const struct link_offer *offer, const int fds[2],
			    struct registry_offer *ret_offer);
