/* SPDX-License-Identifier: Apache-2.0 */

/* Every field of the native protocol that can be wrong, one at a time. */

#include "wire/native.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"

static int decode(const struct native_request *request)
{
	struct native_request copy;

	return native_request_decode(request, sizeof(*request), &copy);
}

/* The result for a valid request after @change. */
#define REFUSED(change)                               \
	({                                            \
		struct native_request r;              \
		native_request_init(&r, NATIVE_LIST); \
		change;                               \
		decode(&r) == -EBADMSG;               \
	})

UNIT(a_request_survives_a_round_trip)
{
	struct native_request request, got;

	for (uint32_t kind = 1; kind < NATIVE_KINDS; kind++) {
		native_request_init(&request, (enum native_kind)kind);
		request.want = NATIVE_WANT_ALL;
		/* Whatever an old command sends, and a later one accepts. */
		memset(request.old, 0xff, sizeof(request.old));
		request.old_pid = request.accepts = UINT32_MAX;
		assert(native_is_request(&request, sizeof(request)));
		assert(native_request_decode(&request, sizeof(request), &got) == 0);
		assert(memcmp(&got, &request, sizeof(got)) == 0);
	}
}

UNIT(each_field_of_a_question_is_checked)
{
	assert(REFUSED(r.magic++));
	assert(REFUSED(r.size--));
	assert(REFUSED(r.kind = 0));
	assert(REFUSED(r.kind = NATIVE_KINDS));
	assert(REFUSED(r.want = 1u << 31));
	assert(REFUSED(r.reserved[3] = 1));
}

UNIT(a_question_has_one_length)
{
	struct native_request request, got;
	char longer[NATIVE_REQUEST_MAX] = {0};

	native_request_init(&request, NATIVE_LIST);
	memcpy(longer, &request, sizeof(request));
	for (size_t length = 0; length <= sizeof(longer); length++) {
		int r = native_request_decode(longer, length, &got);

		assert(r == (length == sizeof(request) ? 0 : -EBADMSG));
	}
	assert(!native_is_request(longer, 3));
	/* The length of another version is not known. */
	request.version++;
	assert(decode(&request) == -EPROTONOSUPPORT);
	assert(native_request_decode(&request, 16, &got) == -EPROTONOSUPPORT);
}

static int decode_reply(struct native_reply reply, size_t length)
{
	char packet[sizeof(reply) + 64] = {0};
	struct native_reply got;
	const void *payload;

	memcpy(packet, &reply, sizeof(reply));
	return native_reply_decode(packet, length, &got, &payload);
}

UNIT(each_field_of_an_answer_is_checked)
{
	struct native_reply good, reply;
	size_t length = sizeof(good) + 5;

	native_reply_init(&good, NATIVE_LIST);
	good.length = 5;
	assert(decode_reply(good, length) == 0);
	assert(decode_reply(good, length - 1) == -EBADMSG);
	assert(decode_reply(good, length + 1) == -EBADMSG);
	assert(decode_reply(good, sizeof(good) - 1) == -EBADMSG);
	reply = good, reply.magic++;
	assert(decode_reply(reply, length) == -EBADMSG);
	reply = good, reply.version++;
	assert(decode_reply(reply, length) == -EPROTONOSUPPORT);
	reply = good, reply.kind = NATIVE_KINDS;
	assert(decode_reply(reply, length) == -EBADMSG);
	reply = good, reply.flags = 2;
	assert(decode_reply(reply, length) == -EBADMSG);
	reply = good, reply.status = -EACCES;
	assert(decode_reply(reply, length) == -EBADMSG); /* only at the end */
	reply.flags = NATIVE_END;
	assert(decode_reply(reply, length) == 0);
	reply.status = 1;
	assert(decode_reply(reply, length) == -EBADMSG);
	reply = good, reply.reserved[1] = 1;
	assert(decode_reply(reply, length) == -EBADMSG);
}

struct row {
	struct native_process process;
	struct native_part part;
};

static int decode_row(const struct row *row)
{
	struct native_process process;
	struct native_part part;
	const void *parts;
	int r = native_process_decode(row, sizeof(*row), &process, &parts);

	return r < 0 ? r : native_part_get(parts, 0, &part);
}

#define ROW_REFUSED(change)                                         \
	({                                                          \
		struct row w = {.process = {.pid = 1, .parts = 1}}; \
		change;                                             \
		decode_row(&w) == -EBADMSG;                         \
	})

UNIT(each_field_of_a_process_is_checked)
{
	struct row row = {.process = {.pid = 1, .parts = 1, .flags = NATIVE_PROCESS_FLAGS}};
	struct native_process process;
	const void *parts;

	memset(row.process.comm, '\xff', sizeof(row.process.comm)); /* any bytes */
	strcpy(row.process.container, "0123abc");
	assert(decode_row(&row) == 0);
	assert(native_process_decode(&row, sizeof(row) - 1, &process, &parts) == -EBADMSG);
	assert(native_process_decode(&row, 10, &process, &parts) == -EBADMSG);
	assert(ROW_REFUSED(w.process.pid = 0));
	assert(ROW_REFUSED(w.process.pid = UINT32_MAX));
	assert(ROW_REFUSED(w.process.parts = 0));
	assert(ROW_REFUSED(w.process.parts = 2));
	assert(ROW_REFUSED(w.process.parts = UINT32_MAX));
	assert(ROW_REFUSED(w.process.flags = 32));
	assert(ROW_REFUSED(w.process.reserved = 1));
	assert(ROW_REFUSED(w.process.comm[63] = 1));
	assert(ROW_REFUSED(w.process.container[1] = 1));
	assert(ROW_REFUSED(memset(w.process.container, 'a', 72)));
	assert(ROW_REFUSED(w.part.device = NATIVE_DEVICES));
	assert(ROW_REFUSED(w.part.flags = 0x200));
	assert(ROW_REFUSED(w.part.flags = 7u << NATIVE_PART_JOINED));
	assert(ROW_REFUSED(w.part.flags = 7u << NATIVE_PART_UNMATCHED));
	assert(ROW_REFUSED(w.part.arch[23] = 'x'));
	assert(ROW_REFUSED(w.part.card[9] = 'x'));
	assert(ROW_REFUSED(w.part.memory[6].bound = 3));
	assert(ROW_REFUSED(w.part.memory[0].flags = 4));
}

UNIT(a_device_tells_how_it_was_joined)
{
	const struct native_part part = {.flags = NATIVE_DECLARED | 6u << NATIVE_PART_JOINED |
						  5u << NATIVE_PART_UNMATCHED};
	struct native_part told;

	assert(native_part_get(&part, 0, &told) == 0);
	assert(native_part_number(&told, NATIVE_PART_JOINED) == 6);
	assert(native_part_number(&told, NATIVE_PART_UNMATCHED) == 5);
	assert(told.flags & NATIVE_DECLARED && !(told.flags & NATIVE_REMOTE));
}

UNIT(a_packet_holds_what_is_promised)
{
	assert(sizeof(struct native_reply) + sizeof(struct native_process) +
		       NATIVE_PARTS_MAX * sizeof(struct native_part) <=
	       NATIVE_PACKET_MAX);
	assert(NATIVE_PARTS_MAX >= 64); /* a large mesh in one packet */
	assert(sizeof(struct native_request) <= NATIVE_REQUEST_MAX);
}

#define MEMORY_REFUSED(change)                                   \
	({                                                       \
		struct native_driver_memory m = {.pid = 1}, n;   \
		change;                                          \
		native_driver_memory_get(&m, 0, &n) == -EBADMSG; \
	})

UNIT(each_field_of_the_drivers_memory_is_checked)
{
	const struct native_driver_memory memory = {
		.pid = INT32_MAX, .number = NATIVE_DEVICES - 1, .pinned = UINT64_MAX};
	struct native_driver_memory told;
	uint32_t count;

	assert(native_driver_memory_get(&memory, 0, &told) == 0);
	assert(memcmp(&told, &memory, sizeof(told)) == 0);
	assert(MEMORY_REFUSED(m.pid = 0));
	assert(MEMORY_REFUSED(m.pid = UINT32_MAX));
	assert(MEMORY_REFUSED(m.number = NATIVE_DEVICES));
	assert(MEMORY_REFUSED(m.reserved = 1));
	assert(native_driver_memory_count(2 * sizeof(memory), &count) == 0 && count == 2);
	assert(native_driver_memory_count(0, &count) == -EBADMSG);
	assert(native_driver_memory_count(sizeof(memory) + 1, &count) == -EBADMSG);
	assert(native_driver_memory_count((NATIVE_DRIVER_MEMORY_MAX + 1) * sizeof(memory),
					  &count) == -EBADMSG);
}
