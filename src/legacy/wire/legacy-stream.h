/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One connection of the old protocol: bytes in, messages out. Nothing in the stream names its
 * dialect; these rules infer it from what is known of old clients:
 *
 * 1. One connection, one dialect. The first message fixes it: a process uses one library.
 * 2. Every dialect is a candidate until a byte arrives that it cannot have: a type that its clients
 *    never send, or a nonzero byte where all of them send zeros (legacy.h). Bytes are judged one by
 *    one, so it does not matter how they were split into reads. The last candidate left is the
 *    dialect; none left is garbage. So the first nonzero byte behind the head tells the size: it is
 *    the next message's type, at offset 72, 112, 128 or 144. Only zeros up to and including 144
 *    leave W648 without texts.
 * 3. W648 only: a text that begins with a zero is all zeros, as strncpy() and struct.pack() leave
 *    it. So bytes at 112, 128 and 144 are not part of a text unless there was one at 72 or 136. A
 *    name that looks like the start of a W72 message (a type of W72 and three zeros) is not a name:
 *    names of one control character are far less likely than W72 messages. Afterwards, texts may
 *    hold any bytes.
 * 4. W32 has its id and pid where W128 and W144 have pid, id and time; its 32 bytes are often a
 *    valid beginning of either. The next byte usually decides (a type, against the lowest byte of a
 *    time), byte 64 always does: W32 has a type there, the others zero.
 * 5. Bytes that leave several candidates wait for more. If no more arrive, silence decides:
 *    LEGACY_STREAM_SILENCE_NS without a byte, when the bytes are exactly one or more whole messages
 *    of a candidate (of only one at a time). That candidate is the dialect. Other lengths keep
 *    waiting.
 * 6. The end of the stream decides at once, for the shortest candidate that has a whole message.
 *    The rest is a truncated message.
 * 7. The peer's pid never decides, because it may differ inside a container. It only vetoes: if it
 *    is where W128 and W144 have it, and not where W32 has it, then 32 bytes are the beginning of a
 *    long message, and neither silence nor the end makes them a short one.
 * 8. What the same process has spoken on another connection is expected: it needs no silence, because
 *    a process uses one library, and that sends whole messages.
 * 9. W24 comes alone: a 25th byte makes the 24 the beginning of a FREE.
 *
 * Hence: whatever an old client sends in whole messages is decoded correctly, in any burst, split
 * at any byte, as long as no gap *inside the first message* reaches 20 ms. A longer gap causes an
 * error only at exactly 24 (a FREE whose device, size, pid are 0), 32, 64, 72, 112, 128 or 144
 * bytes, where a shorter dialect is complete; the rest of the message is then garbage, unless it
 * looks like a message itself.
 *
 * The silence must be the client's, not the reader's: read the socket until it is empty, feed, and
 * only then call legacy_stream_next() with the current time.
 *
 * Garbage is never searched for something that looks like a message: that would invent messages.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "legacy/wire/legacy.h"

#define LEGACY_STREAM_SILENCE_NS UINT64_C(20000000)

/* Three of the longest and 28 of the most common messages. Each connection takes this memory. */
#define LEGACY_STREAM_ROOM 2048u

#define LEGACY_STREAM_NEVER UINT64_MAX /* only more bytes can help */

enum {
	LEGACY_GARBAGE = 1, /* no dialect; the connection is unusable */
	LEGACY_END,         /* everything was delivered, and no more can arrive */
	LEGACY_TRUNCATED,   /* the same, but the last message was cut short */
};

struct legacy_stream {
	enum legacy_dialect dialect;  /* others may read this */
	enum legacy_dialect expected; /* others may set this after legacy_stream_init() */

	uint32_t candidates; /* a bit for each dialect, while undecided */
	uint32_t judged;     /* bytes that were tested against the candidates */
	uint32_t begin, end; /* the unread part of the bytes below; begin is 0 while undecided */
	uint64_t arrived_ns; /* when the last byte was first seen */
	bool fresh;          /* bytes arrived since then */
	bool ended;
	bool garbage;
	uint8_t bytes[LEGACY_STREAM_ROOM];
};

void legacy_stream_init(struct legacy_stream *stream);

/*
 * Takes as many bytes as there is room for. Return: how many; at least one after
 * legacy_stream_next() has returned -EAGAIN. Invalidates the pointers in earlier messages. Garbage
 * is taken and dropped.
 */
size_t legacy_stream_feed(struct legacy_stream *stream, const void *bytes, size_t length);

/* Bytes that were fed and are not part of a message that legacy_stream_next() has returned. */
size_t legacy_stream_left(const struct legacy_stream *stream);

/* Forgets all bytes: the next ones begin a message of @dialect, which is not LEGACY_UNDECIDED. */
void legacy_stream_restart(struct legacy_stream *stream, enum legacy_dialect dialect);

/* There will be no more bytes. */
void legacy_stream_end(struct legacy_stream *stream);

/*
 * The next message, valid until the next feed.
 *
 * @now_ns: any clock that never goes backwards
 * @peer_pid: of the peer in our pid namespace, 0 = not known
 *
 * Return: 0; -EAGAIN and when to call again if no bytes arrive before (or LEGACY_STREAM_NEVER); or
 * one of the outcomes above, which is final.
 */
int legacy_stream_next(struct legacy_stream *stream, uint64_t now_ns, int32_t peer_pid,
		       struct legacy_message *ret_message, uint64_t *ret_wait_until_ns);
