/* SPDX-License-Identifier: Apache-2.0 */

/* Shared by the tests of the old protocol. */

#include "legacy/wire/testing/legacy-wire-testing.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/wire/legacy-encode.h"

#define TESTING_TIME UINT64_C(0x186d4c1f9a3b5c7d) /* some day in 2025, in ns */

static const char testing_long[] =
	"/usr/lib/libtt_metal.so(_ZN2tt8tt_metal6Buffer6createE+0x1f) -> "
	"model.py:123:forward -> attn.py:456:compute";

enum legacy_type legacy_testing_type(enum legacy_dialect dialect, unsigned int n)
{
	for (unsigned int type = 0; type < 256; type++) {
		if (legacy_has(dialect, (enum legacy_type)type) && n-- == 0)
			return (enum legacy_type)type;
	}
	return (enum legacy_type)0;
}

static bool testing_is_question(enum legacy_type type)
{
	return type == LEGACY_QUERY || type == LEGACY_DUMP_REMAINING ||
	       type == LEGACY_DEVICE_INFO_QUERY || type == LEGACY_DUMP_KERNELS;
}

static bool testing_has_time(enum legacy_type type)
{
	return type == LEGACY_ALLOC || type == LEGACY_CB_ALLOC || type == LEGACY_KERNEL_LOAD;
}

/* As clients send it. */
static void testing_usual(enum legacy_type type, bool is_w32, struct legacy_message *ret_message)
{
	ret_message->device = type == LEGACY_DEVICE_INFO_QUERY ? -1 : 3;
	if (testing_is_question(type))
		return;
	ret_message->size = type == LEGACY_FREE ? 0 : 0x180000;
	ret_message->pid = LEGACY_TESTING_PID;
	ret_message->id = is_w32 ? 5 : 0x1c8e0400;
	ret_message->buffer_type = 1;
	ret_message->kernel_sort = 2;
	ret_message->timestamp = testing_has_time(type) ? TESTING_TIME : 0;
	ret_message->name = "attention_weights_layer_0";
	ret_message->stack = testing_long;
}

static void testing_unusual(unsigned int variant, bool is_w32, struct legacy_message *ret_message)
{
	switch (variant) {
	case 1: /* all zero but the type */
		break;
	case 2: /* all bits set; the longest texts */
		ret_message->device = ret_message->pid = -1;
		ret_message->size = ret_message->id = ret_message->timestamp = UINT64_MAX;
		ret_message->buffer_type = ret_message->kernel_sort = 0xff;
		ret_message->name =
			"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
		ret_message->stack = testing_long;
		break;
	case 3: /* a long one that continues like W32; a short one with the pid also in its id */
		ret_message->device = 8;
		ret_message->pid = LEGACY_TESTING_PID;
		ret_message->id = is_w32 ? (UINT64_C(4242) << 32) + 9 : LEGACY_TESTING_PID;
		ret_message->timestamp = 8 + (UINT64_C(1) << 32);
		ret_message->stack = testing_long;
		break;
	case 4: /* no pid; a name that begins like a type of W144 */
		ret_message->size = 4096;
		ret_message->id = is_w32 ? (UINT64_C(17) << 32) + 2 : 17;
		ret_message->timestamp = 11;
		ret_message->name = "\tx";
		break;
	default: /* small numbers everywhere; a name that begins like a type of W72 */
		ret_message->device = ret_message->pid = 1;
		ret_message->size = ret_message->id = ret_message->timestamp = 1;
		ret_message->buffer_type = ret_message->kernel_sort = 1;
		ret_message->name = "\001\002\003";
		ret_message->stack = "\001";
		break;
	}
}

void legacy_testing_message(enum legacy_type type, unsigned int variant, bool is_w32,
			    struct legacy_message *ret_message)
{
	*ret_message = (struct legacy_message){.type = type, .name = "", .stack = ""};
	if (variant == 0)
		testing_usual(type, is_w32, ret_message);
	else
		testing_unusual(variant, is_w32, ret_message);
	ret_message->name_length = (uint32_t)strlen(ret_message->name);
	ret_message->stack_length = (uint32_t)strlen(ret_message->stack);
}

void legacy_testing_start(struct legacy_testing_burst *burst, enum legacy_dialect dialect)
{
	burst->dialect = dialect;
	burst->length = burst->count = 0;
}

void legacy_testing_append(struct legacy_testing_burst *burst, const struct legacy_message *message)
{
	size_t length;

	assert(burst->length + LEGACY_SIZE_MAX <= sizeof(burst->bytes));
	assert(legacy_encode_request(burst->dialect, message, burst->bytes + burst->length,
				     &length) == 0);
	burst->length += length;
	burst->count++;
}

void legacy_testing_add(struct legacy_testing_burst *burst, enum legacy_type type,
			unsigned int variant)
{
	struct legacy_message message;

	legacy_testing_message(type, variant, burst->dialect == LEGACY_W32, &message);
	legacy_testing_append(burst, &message);
}

void legacy_testing_begin(struct legacy_testing_run *run, const struct legacy_testing_burst *burst,
			  int32_t peer_pid)
{
	run->burst = burst;
	run->now_ns = UINT64_C(1000000000);
	run->peer_pid = peer_pid;
	run->fed = run->count = run->consumed = 0;
	run->dialect = LEGACY_UNDECIDED;
	run->outcome = -EAGAIN;
	run->wait_until_ns = LEGACY_STREAM_NEVER;
	legacy_stream_init(&run->stream);
}

static void testing_check(struct legacy_testing_run *run, const struct legacy_message *message)
{
	size_t size = legacy_size(message->dialect);
	struct legacy_message again;

	assert(size > 0 && message->dialect == run->stream.dialect);
	assert(run->dialect == LEGACY_UNDECIDED || run->dialect == message->dialect);
	assert(run->consumed + size <= run->fed);
	assert(memcmp(message->raw, run->burst->bytes + run->consumed, size) == 0);
	assert(legacy_decode(message->dialect, message->raw, &again) == 0);
	assert(again.type == message->type && again.id == message->id && again.pid == message->pid);
	assert(again.name_length == message->name_length);
	assert(message->name_length <= LEGACY_NAME_SIZE);
	assert(message->stack_length <= LEGACY_STACK_SIZE);
	run->dialect = message->dialect;
	run->consumed += size;
	run->count++;
}

static void testing_take(struct legacy_testing_run *run)
{
	int outcome = run->outcome;
	struct legacy_message message;
	int r;

	run->wait_until_ns = 0;
	while ((r = legacy_stream_next(&run->stream, run->now_ns, run->peer_pid, &message,
				       &run->wait_until_ns)) == 0) {
		assert(outcome == -EAGAIN); /* any other outcome is final */
		testing_check(run, &message);
	}
	assert(outcome == -EAGAIN || outcome == r);
	if (r == -EAGAIN)
		assert(run->wait_until_ns > run->now_ns);
	else
		assert(r == LEGACY_GARBAGE || r == LEGACY_END || r == LEGACY_TRUNCATED);
	run->outcome = r;
}

void legacy_testing_feed(struct legacy_testing_run *run, size_t to)
{
	assert(to <= run->burst->length);
	while (run->fed < to) {
		size_t took = legacy_stream_feed(&run->stream, run->burst->bytes + run->fed,
						 to - run->fed);

		assert(took > 0 && took <= to - run->fed);
		assert(took <= LEGACY_STREAM_ROOM || run->outcome == LEGACY_GARBAGE);
		run->fed += took;
		testing_take(run);
	}
}

void legacy_testing_wait(struct legacy_testing_run *run, uint64_t ns)
{
	run->now_ns += ns;
	testing_take(run);
}

void legacy_testing_end(struct legacy_testing_run *run)
{
	legacy_stream_end(&run->stream);
	testing_take(run);
	assert(run->outcome != -EAGAIN);
}

void legacy_testing_expect_all(const struct legacy_testing_run *run)
{
	assert(run->dialect == run->burst->dialect);
	assert(run->count == run->burst->count);
	assert(run->consumed == run->burst->length);
	assert(run->outcome == -EAGAIN || run->outcome == LEGACY_END);
}
