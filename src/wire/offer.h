/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handing a book over: one message on a SOCK_SEQPACKET socket, sent once when the book is made. Two
 * file descriptors go with it, the book and a pidfd of its owner. There is no reply. The receiver
 * takes the sender's identity from the socket (SO_PEERCRED) and the pidfd, never from these bytes.
 */

#include <stdint.h>

#define OFFER_MAGIC UINT32_C(0x464f5454) /* "TTOF" */
#define OFFER_VERSION 1u
#define OFFER_FDS 2u         /* book, pidfd; no pidfd on kernels without it */
#define OFFER_SOCKETS_MAX 4u /* in TTMEM_OFFER, separated by ':' */

struct offer {
	uint32_t magic;
	uint32_t version;
	uint32_t size;     /* of this struct */
	uint32_t reserved; /* 0 */
};

_Static_assert(sizeof(struct offer) == 16, "offer size");

/*
 * Sent later, to the daemon only: something has happened in the book that should be read at once,
 * before it is over. At most one in OFFER_NOTICE_NS, and never one that would block.
 */
#define OFFER_NOTICE_MAGIC UINT32_C(0x574e5454) /* "TTNW" */
#define OFFER_NOTICE_NS UINT64_C(100000000)

struct offer_notice {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of this struct */
	uint32_t what; /* OFFER_NOTICE_FAILED */
};

#define OFFER_NOTICE_FAILED 1u /* an allocation has failed */

/*
 * The first notice follows the offer at once and has a descriptor: the owner's program, opened with
 * O_PATH, so that its functions can be named even if the process ends and its file is deleted right
 * away. It says the same as the others, because receivers that know nothing of the descriptor
 * refuse any other; they look at the book once more, and the kernel closes the descriptor.
 */
#define OFFER_NOTICE_FDS 1u

_Static_assert(sizeof(struct offer_notice) == 16, "notice size");
