/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The decoder of the old protocol under arbitrary input, in two modes. Bytes 0 and 1 select the
 * mode and the peer's pid.
 *
 * Hostile: the input is pieces of a stream (time before it in 1/4 ms, length, bytes). The output
 * must be the stream's own bytes, in order and without a gap, until the stream ends or is garbage;
 * and unless there was silence, it must be the same if everything arrives at once, or byte by byte.
 *
 * Honest: the input describes which messages of one dialect a client sends and how they are split,
 * with no gap of 20 ms. Exactly these messages must come out.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/wire/legacy-stream.h"
#include "legacy/wire/testing/legacy-wire-testing.h"

#define FUZZ_TICK UINT64_C(250000)
#define FUZZ_SILENCE (LEGACY_STREAM_SILENCE_NS / FUZZ_TICK)
#define FUZZ_PIECES 512u
#define FUZZ_MESSAGES 24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

struct fuzz_piece {
	uint8_t ticks; /* since the previous one */
	size_t end;
};

static struct legacy_testing_burst fuzz_burst;
static struct fuzz_piece fuzz_pieces[FUZZ_PIECES];

static uint8_t fuzz_byte(struct fuzz_input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

/* A number: its first byte gives its length, and usually it is small. */
static uint64_t fuzz_number(struct fuzz_input *input)
{
	static const uint8_t widths[] = {0, 0, 1, 1, 2, 4, 8, 8};
	uint8_t how = fuzz_byte(input);
	uint64_t value = 0;

	for (unsigned int i = 0; i < widths[how % 8]; i++)
		value = value << 8 | fuzz_byte(input);
	return how & 8 ? value << 32 : value;
}

static void fuzz_run(struct legacy_testing_run *run, const struct fuzz_piece *pieces, size_t count,
		     int32_t peer_pid)
{
	legacy_testing_begin(run, &fuzz_burst, peer_pid);
	for (size_t i = 0; i < count; i++) {
		legacy_testing_wait(run, pieces[i].ticks * FUZZ_TICK);
		legacy_testing_feed(run, pieces[i].end);
	}
	assert(run->fed == fuzz_burst.length);
	legacy_testing_end(run);

	/* Only an incomplete message may be lost. */
	if (run->outcome == LEGACY_END)
		assert(run->consumed == run->fed);
	if (run->outcome == LEGACY_TRUNCATED)
		assert(run->consumed < run->fed && run->fed - run->consumed < LEGACY_SIZE_MAX);
}

/* The same stream in other pieces. */
static void fuzz_compare(const struct legacy_testing_run *run, size_t step)
{
	static struct legacy_testing_run other;

	legacy_testing_begin(&other, &fuzz_burst, run->peer_pid);
	while (other.fed < fuzz_burst.length)
		legacy_testing_feed(&other, bits_min(other.fed + step, fuzz_burst.length));
	legacy_testing_end(&other);
	assert(other.outcome == run->outcome);
	assert(other.dialect == run->dialect);
	assert(other.count == run->count);
	assert(other.consumed == run->consumed);
}

static void fuzz_hostile(struct fuzz_input *input, int32_t peer_pid)
{
	static struct legacy_testing_run run;
	uint64_t ticks_idle = 0;
	bool silence = false;
	size_t count = 0;

	legacy_testing_start(&fuzz_burst, LEGACY_UNDECIDED);
	while (input->size > 0 && count < FUZZ_PIECES) {
		uint8_t ticks = fuzz_byte(input);
		size_t length = bits_min(fuzz_byte(input), input->size);

		length = bits_min(length, LEGACY_TESTING_BYTES - fuzz_burst.length);
		ticks_idle += ticks; /* a piece may have no bytes */
		silence |= ticks_idle >= FUZZ_SILENCE;
		if (length > 0)
			ticks_idle = 0;
		memcpy(fuzz_burst.bytes + fuzz_burst.length, input->data, length);
		fuzz_burst.length += length;
		input->data += length;
		input->size -= length;
		fuzz_pieces[count++] = (struct fuzz_piece){ticks, fuzz_burst.length};
	}
	fuzz_run(&run, fuzz_pieces, count, peer_pid);
	if (silence)
		return;
	fuzz_compare(&run, LEGACY_TESTING_BYTES);
	fuzz_compare(&run, 1);
	fuzz_compare(&run, 1 + fuzz_burst.length % 97);
}

static void fuzz_text(struct fuzz_input *input, char *text, size_t room, const char **ret_text,
		      uint32_t *ret_length)
{
	size_t length = bits_min(fuzz_number(input), room);

	length = bits_min(length, input->size);
	memcpy(text, input->data, length);
	input->data += length;
	input->size -= length;
	*ret_text = text;
	*ret_length = (uint32_t)length;
}

static void fuzz_message(struct fuzz_input *input)
{
	char name[LEGACY_NAME_SIZE], stack[LEGACY_STACK_SIZE];
	struct legacy_message message = {0};
	uint8_t n = fuzz_byte(input) % 16;

	message.type = legacy_testing_type(fuzz_burst.dialect, n);
	if (!message.type)
		message.type = legacy_testing_type(fuzz_burst.dialect, 0);
	message.device = (int32_t)fuzz_number(input);
	message.size = fuzz_number(input);
	message.buffer_type = message.kernel_sort = (uint8_t)fuzz_number(input);
	message.pid = (int32_t)fuzz_number(input);
	message.id = fuzz_number(input);
	message.timestamp = fuzz_number(input);
	fuzz_text(input, name, sizeof(name), &message.name, &message.name_length);
	fuzz_text(input, stack, sizeof(stack), &message.stack, &message.stack_length);
	legacy_testing_append(&fuzz_burst, &message);
}

/* What no rule can get right for everyone (legacy-guess-test.c): no honest client sends it. */
static void fuzz_spare(int32_t *peer_pid)
{
	uint8_t *first = fuzz_burst.bytes;
	int32_t pid_long;

	if (fuzz_burst.dialect == LEGACY_W648 && legacy_check_beginning(LEGACY_W72, first + 72, 4))
		first[72] = 'x';
	memcpy(&pid_long, first + 20, 4);
	if (fuzz_burst.dialect == LEGACY_W32 && pid_long == *peer_pid)
		*peer_pid = 0;
}

static void fuzz_honest(struct fuzz_input *input, int32_t peer_pid)
{
	static struct legacy_testing_run run;
	unsigned int messages = 1 + fuzz_byte(input) % FUZZ_MESSAGES;
	uint8_t dialect = (uint8_t)(1 + fuzz_byte(input) % (LEGACY_DIALECTS - 1));
	size_t count = 0, end = 0;

	legacy_testing_start(&fuzz_burst, (enum legacy_dialect)dialect);
	do {
		fuzz_message(input);
	} while (fuzz_burst.count < messages && dialect != LEGACY_W24);
	fuzz_spare(&peer_pid);

	while (end < fuzz_burst.length && count < FUZZ_PIECES - 1) {
		uint8_t ticks = (uint8_t)(fuzz_byte(input) % FUZZ_SILENCE);
		size_t length = 1 + fuzz_number(input) % (LEGACY_STREAM_ROOM * 2);

		end = input->size ? bits_min(end + length, fuzz_burst.length) : fuzz_burst.length;
		fuzz_pieces[count++] = (struct fuzz_piece){ticks, end};
	}
	fuzz_pieces[count++] = (struct fuzz_piece){0, fuzz_burst.length};
	fuzz_run(&run, fuzz_pieces, count, peer_pid);
	legacy_testing_expect_all(&run);
	fuzz_compare(&run, LEGACY_TESTING_BYTES);
	fuzz_compare(&run, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	uint8_t how = fuzz_byte(&input);
	int32_t peer_pid = (int32_t)fuzz_number(&input);

	if (how & 1)
		fuzz_honest(&input, peer_pid);
	else
		fuzz_hostile(&input, peer_pid);
	return 0;
}
