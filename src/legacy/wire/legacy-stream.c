/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of the old protocol; the rules are numbered as in the header. Once the dialect is
 * known, a message costs one check and one copy of its numbers: it is decoded in place, and the
 * next feed moves an incomplete message to the front.
 */

#include "legacy/wire/legacy-stream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"

#define STREAM_BIT(dialect) (1u << (dialect))
#define STREAM_ALL (STREAM_BIT(LEGACY_DIALECTS) - STREAM_BIT(LEGACY_UNDECIDED + 1))

_Static_assert(LEGACY_STREAM_ROOM > 2 * LEGACY_SIZE_MAX, "a feed must always find room");

void legacy_stream_init(struct legacy_stream *stream)
{
	stream->dialect = stream->expected = LEGACY_UNDECIDED;
	stream->candidates = STREAM_ALL;
	stream->judged = 0;
	stream->begin = stream->end = 0;
	stream->arrived_ns = 0;
	stream->fresh = stream->ended = stream->garbage = false;
}

size_t legacy_stream_feed(struct legacy_stream *stream, const void *bytes, size_t length)
{
	size_t took;

	assert(!stream->ended);
	if (stream->garbage)
		return length;
	if (stream->begin > 0 && length > LEGACY_STREAM_ROOM - stream->end) {
		memmove(stream->bytes, stream->bytes + stream->begin, stream->end - stream->begin);
		stream->end -= stream->begin;
		stream->begin = 0;
	}
	took = bits_min(length, LEGACY_STREAM_ROOM - stream->end);
	if (took == 0)
		return 0;
	memcpy(stream->bytes + stream->end, bytes, took);
	stream->end += (uint32_t)took;
	stream->fresh = true;
	return took;
}

size_t legacy_stream_left(const struct legacy_stream *stream)
{
	return stream->end - stream->begin;
}

void legacy_stream_restart(struct legacy_stream *stream, enum legacy_dialect dialect)
{
	stream->dialect = dialect;
	stream->begin = stream->end = 0;
	stream->fresh = stream->ended = stream->garbage = false;
}

void legacy_stream_end(struct legacy_stream *stream)
{
	stream->ended = true;
}

/* Rule 3: whether byte @at can be part of a text in the first W648 message. */
static bool stream_fits_text(const uint8_t *bytes, size_t at)
{
	size_t name = offsetof(struct legacy_w648, name);
	size_t stack = offsetof(struct legacy_w648, stack);
	size_t text = at < stack ? name : stack;

	if (at < name)
		return true;
	if (bytes[text] == 0)
		return bytes[at] == 0;
	return at != name + 3 || !legacy_check_beginning(LEGACY_W72, bytes + name, 4);
}

/* Whether @dialect allows byte @at of the stream, given the bytes before it. */
static bool stream_fits(enum legacy_dialect dialect, const uint8_t *bytes, size_t at)
{
	size_t size = legacy_size(dialect);

	if (dialect == LEGACY_W24 && at >= size)
		return false; /* rule 9 */
	if (!legacy_fits_at(dialect, at % size, bytes[at]))
		return false;
	return dialect != LEGACY_W648 || stream_fits_text(bytes, at);
}

/* Rule 2. Stops as soon as the dialect is known: later bytes do not matter. */
static void stream_judge(struct legacy_stream *stream)
{
	while (stream->judged < stream->end) {
		uint32_t left = stream->candidates;

		for (uint32_t open = left; open; open &= open - 1) {
			uint32_t d = (uint32_t)__builtin_ctz(open);

			if (!stream_fits((enum legacy_dialect)d, stream->bytes, stream->judged))
				left &= ~STREAM_BIT(d);
		}
		stream->judged++;
		stream->candidates = left;
		if (left == 0) {
			stream->garbage = true;
			return;
		}
		if ((left & (left - 1)) == 0) {
			stream->dialect = (enum legacy_dialect)__builtin_ctz(left);
			return;
		}
	}
}

/* Rule 7: whether the peer's pid suggests the beginning of a W128 or W144 message. */
static bool stream_is_long(const struct legacy_stream *stream, int32_t peer_pid)
{
	int32_t pid_long, pid_short;

	if (peer_pid <= 0 ||
	    !(stream->candidates & (STREAM_BIT(LEGACY_W128) | STREAM_BIT(LEGACY_W144))))
		return false;
	memcpy(&pid_long, stream->bytes + offsetof(struct legacy_head, pid), 4);
	memcpy(&pid_short, stream->bytes + offsetof(struct legacy_w32, pid), 4);
	return pid_long == peer_pid && pid_short != peer_pid;
}

/* Rules 5 and 6: the dialect if no more bytes arrive. */
static enum legacy_dialect stream_guess(const struct legacy_stream *stream, int32_t peer_pid)
{
	for (uint32_t d = LEGACY_UNDECIDED + 1; d < LEGACY_DIALECTS; d++) {
		size_t size = legacy_size((enum legacy_dialect)d);

		if (!(stream->candidates & STREAM_BIT(d)) || stream->end < size)
			continue;
		if (d == LEGACY_W32 && stream_is_long(stream, peer_pid))
			continue;
		if (stream->ended || stream->end % size == 0)
			return (enum legacy_dialect)d;
	}
	return LEGACY_UNDECIDED;
}

/* Return: 0 if the dialect is known, else the result for the caller. */
static int stream_decide(struct legacy_stream *stream, uint64_t now_ns, int32_t peer_pid,
			 uint64_t *ret_wait_until_ns)
{
	enum legacy_dialect guess;

	stream_judge(stream);
	if (stream->garbage)
		return LEGACY_GARBAGE;
	if (stream->dialect != LEGACY_UNDECIDED)
		return 0;

	guess = stream_guess(stream, peer_pid);
	if (guess == LEGACY_UNDECIDED) {
		if (stream->ended)
			return stream->end ? LEGACY_TRUNCATED : LEGACY_END;
		*ret_wait_until_ns = LEGACY_STREAM_NEVER;
		return -EAGAIN;
	}
	/* Rule 8, else rule 5. */
	if (guess != stream->expected && !stream->ended &&
	    (now_ns < stream->arrived_ns ||
	     now_ns - stream->arrived_ns < LEGACY_STREAM_SILENCE_NS)) {
		*ret_wait_until_ns = stream->arrived_ns + LEGACY_STREAM_SILENCE_NS;
		return -EAGAIN;
	}
	stream->dialect = guess;
	return 0;
}

/* The result for the caller when no complete message is left. */
static int stream_rest(struct legacy_stream *stream, uint64_t *ret_wait_until_ns)
{
	size_t left = stream->end - stream->begin;

	if (!legacy_check_beginning(stream->dialect, stream->bytes + stream->begin, left)) {
		stream->garbage = true;
		return LEGACY_GARBAGE;
	}
	if (stream->ended)
		return left ? LEGACY_TRUNCATED : LEGACY_END;
	*ret_wait_until_ns = LEGACY_STREAM_NEVER;
	return -EAGAIN;
}

int legacy_stream_next(struct legacy_stream *stream, uint64_t now_ns, int32_t peer_pid,
		       struct legacy_message *ret_message, uint64_t *ret_wait_until_ns)
{
	size_t size;
	int r;

	if (unlikely(stream->garbage))
		return LEGACY_GARBAGE;
	if (stream->fresh) {
		stream->fresh = false;
		stream->arrived_ns = now_ns;
	}
	if (unlikely(stream->dialect == LEGACY_UNDECIDED)) {
		r = stream_decide(stream, now_ns, peer_pid, ret_wait_until_ns);
		if (r)
			return r;
	}

	size = legacy_size(stream->dialect);
	if (stream->end - stream->begin < size)
		return stream_rest(stream, ret_wait_until_ns);
	r = legacy_decode(stream->dialect, stream->bytes + stream->begin, ret_message);
	if (unlikely(r < 0)) {
		stream->garbage = true;
		return LEGACY_GARBAGE;
	}
	stream->begin += (uint32_t)size;
	return 0;
}
