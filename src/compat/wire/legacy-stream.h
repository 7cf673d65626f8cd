/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One connection of the old protocol: bytes in, messages out. Nothing in the stream says which
 * dialect it is; what is known of old clients does, by these rules:
 *
 * 1. One connection, one dialect. The first message fixes it: a process speaks through one library.
 * 2. Every dialect is a candidate until a byte comes that it cannot have: a type that its clients
 *    never send, or anything but zero where all of them leave zeros (legacy.h). Bytes are judged
 *    one after the other, so how they were cut into reads makes no difference. The last candidate
 *    left is the dialect; none left is garbage. So the first byte behind the head that is not zero
 *    tells the size: it is the next message's type, and 72, 112, 128 or 144 is where it stands.
 *    Nothing but zeros up to and including 144 leaves W648 without texts.
 * 3. W648 only: a text that begins with a zero is all zeros, as strncpy() and struct.pack() leave
 *    it. So bytes at 112, 128 and 144 are no part of a text unless there was one at 72 or 136. A
 *    name that looks like the start of a W72 message (a type of W72 and three zeros) is none: a
 *    name of one control character, against what every second W72 message begins with. From then
 *    on, texts may hold any bytes.
 * 4. W32 has its id and pid where W128 and W144 have pid, id and time; its 32 bytes are often a
 *    good beginning of either. The next byte mostly tells (a type, against a time's lowest byte),
 *    byte 64 always does: W32 has a type there, the others zero.
 * 5. Bytes that leave several candidates wait. What they wait for, if no more of them come, is
 *    silence: LEGACY_STREAM_SILENCE_NS without a byte, when there are exactly as many as one or
 *    more whole messages of a candidate (only one can be so at a time). That candidate it is. Other
 *    lengths wait on.
 * 6. The end of the stream decides at once, for the shortest candidate of which there is a whole
 *    message. What is left over is a message cut short.
 * 7. The peer's pid never decides, for it may be another one inside a container. It only holds
 *    back: if it is where W128 and W144 have it, and not where W32 has it, then 32 bytes are the
 *    beginning of a long message, and neither silence nor the end makes a short one of them.
 * 8. W24 comes alone: a 25th byte makes the 24 the beginning of a FREE.
 *
 * Hence: whatever an old client sends in whole messages is decoded right, in any burst, cut at any
 * byte, as long as no gap *inside the first message* reaches 20 ms. A longer gap is wrong only at
 * exactly 24 (a FREE whose device, size, pid are 0), 32, 64, 72, 112, 128 or 144 bytes, where a
 * shorter dialect is whole; the rest of the message then turns out as garbage, unless it looks like
 * a message itself.
 *
 * Silence must be that of the client, not of whoever reads: read the socket until it is empty,
 * feed, and only then ask with the current time.
 *
 * Garbage is never searched for something that looks like a message: that would invent messages.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/wire/legacy.h"

#define LEGACY_STREAM_SILENCE_NS UINT64_C(20000000)

/* Three of the longest and 28 of the most common messages. A connection costs this much memory. */
#define LEGACY_STREAM_ROOM 2048u

#define LEGACY_STREAM_NEVER UINT64_MAX /* only more bytes can help */

enum {
	LEGACY_GARBAGE = 1, /* no dialect; the connection is of no more use */
	LEGACY_END,         /* everything was delivered, and no more can come */
	LEGACY_TRUNCATED,   /* likewise, but the last message was cut short */
};

struct legacy_stream {
	enum legacy_dialect dialect; /* others may read this */

	uint32_t candidates; /* a bit for each dialect, while undecided */
	uint32_t judged;     /* bytes that have been held against the candidates */
	uint32_t begin, end; /* what is left of the bytes below; begin is 0 while undecided */
	uint64_t arrived_ns; /* when the last byte was seen first */
	bool fresh;          /* bytes came since then */
	bool ended;
	bool garbage;
	uint8_t bytes[LEGACY_STREAM_ROOM];
};

void legacy_stream_init(struct legacy_stream *stream);

/*
 * Takes as many of the bytes as there is room for. Return: how many; after legacy_stream_next() has
 * said -EAGAIN, at least one. Invalidates what earlier messages point to. Garbage is taken and
 * dropped.
 */
size_t legacy_stream_feed(struct legacy_stream *stream, const void *bytes, size_t length);

/* There will be no more bytes. */
void legacy_stream_end(struct legacy_stream *stream);

/*
 * The next message, which is good until the next feed.
 *
 * @now_ns: any clock that does not go back
 * @peer_pid: of the other end as this process sees it, 0 = not known
 *
 * Return: 0, -EAGAIN and when to ask again if no bytes come before (or LEGACY_STREAM_NEVER), or an
 * outcome from above, which then stays.
 */
int legacy_stream_next(struct legacy_stream *stream, uint64_t now_ns, int32_t peer_pid,
		       struct legacy_message *ret_message, uint64_t *ret_wait_until_ns);
