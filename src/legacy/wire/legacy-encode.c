/* SPDX-License-Identifier: Apache-2.0 */

/* Writes messages of the old protocol. */

#include "legacy/wire/legacy-encode.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"

/* A number that wraps would look small: saturate instead. */
static uint32_t encode_saturate(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static void encode_counters(enum legacy_dialect dialect, const struct legacy_answer *answer,
			    uint8_t *bytes)
{
	const struct legacy_counters counters = {
		.dram = answer->dram,
		.l1 = answer->l1,
		.l1_small = answer->l1_small,
		.trace = answer->trace,
	};

	memcpy(bytes + offsetof(struct legacy_w72, counters), &counters, sizeof(counters));
	if (dialect == LEGACY_W128 || dialect == LEGACY_W144) {
		memcpy(bytes + offsetof(struct legacy_w128, cb), &answer->cb, 8);
		memcpy(bytes + offsetof(struct legacy_w128, kernel), &answer->kernel, 8);
	}
}

static void encode_device_info(enum legacy_dialect dialect, const struct legacy_answer *answer,
			       uint8_t *bytes)
{
	const struct legacy_device_info info = {
		.total_dram = answer->total_dram,
		.total_l1 = answer->total_l1,
		.arch = answer->arch,
		.dram_channels = answer->dram_channels,
		.dram_per_channel = encode_saturate(answer->dram_per_channel),
		.l1_per_core = encode_saturate(answer->l1_per_core),
		.available = answer->available,
		.devices = answer->devices,
	};
	const uint32_t ring[] = {
		encode_saturate(answer->ring_total),
		encode_saturate(answer->ring_used),
		answer->ring_programs,
	};

	if (dialect == LEGACY_W112)
		memcpy(bytes + offsetof(struct legacy_w112, info), &info, sizeof(info));
	else
		memcpy(bytes + offsetof(struct legacy_w128, info), &info, sizeof(info));
	if (dialect == LEGACY_W144)
		memcpy(bytes + offsetof(struct legacy_w144, ring_total), ring, sizeof(ring));
}

int legacy_encode_response(enum legacy_dialect dialect, const struct legacy_answer *answer,
			   uint8_t ret_bytes[LEGACY_SIZE_MAX], size_t *ret_length)
{
	const struct legacy_head head = {.type = (uint8_t)answer->type, .device = answer->device};
	enum legacy_type question;

	if (answer->type == LEGACY_RESPONSE)
		question = LEGACY_QUERY;
	else if (answer->type == LEGACY_DEVICE_INFO_RESPONSE)
		question = LEGACY_DEVICE_INFO_QUERY;
	else
		return -EINVAL;
	if (!legacy_has(dialect, question))
		return -EINVAL;

	memset(ret_bytes, 0, legacy_size(dialect));
	memcpy(ret_bytes, &head, sizeof(head));
	if (answer->type == LEGACY_RESPONSE)
		encode_counters(dialect, answer, ret_bytes);
	else
		encode_device_info(dialect, answer, ret_bytes);
	*ret_length = legacy_size(dialect);
	return 0;
}

void legacy_encode_text(const char *text, size_t length, char *ret_bytes, size_t *ret_length)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		bool at_line_start = n == 0 || ret_bytes[n - 1] == '\n';

		if (text[i] != '\n' || !at_line_start)
			ret_bytes[n++] = text[i];
	}
	if (n == 0 || ret_bytes[n - 1] != '\n')
		ret_bytes[n++] = '\n';
	ret_bytes[n++] = '\n';
	*ret_length = n;
}

static void encode_w32(const struct legacy_message *message, uint8_t *bytes)
{
	const struct legacy_w32 wire = {
		.type = (uint8_t)message->type,
		.device = message->device,
		.size = message->size,
		.id = message->id,
		.pid = message->pid,
	};

	memcpy(bytes, &wire, sizeof(wire));
}

static void encode_head(const struct legacy_message *message, uint8_t *bytes)
{
	bool kernel = message->type == LEGACY_KERNEL_LOAD || message->type == LEGACY_KERNEL_UNLOAD;
	const struct legacy_head wire = {
		.type = (uint8_t)message->type,
		.device = message->device,
		.size = message->size,
		.buffer_type = kernel ? message->kernel_sort : message->buffer_type,
		.pid = message->pid,
		.id = message->id,
		.timestamp = message->timestamp,
	};

	memcpy(bytes, &wire, sizeof(wire));
}

/* As strncpy(to, text, size - 1) into zeros does. */
static void encode_string(const char *text, size_t length, uint8_t *to, size_t size)
{
	if (text)
		memcpy(to, text, strnlen(text, bits_min(length, size - 1)));
}

int legacy_encode_request(enum legacy_dialect dialect, const struct legacy_message *message,
			  uint8_t ret_bytes[LEGACY_SIZE_MAX], size_t *ret_length)
{
	if (!legacy_has(dialect, message->type))
		return -EINVAL;

	memset(ret_bytes, 0, legacy_size(dialect));
	if (dialect == LEGACY_TEXT)
		memcpy(ret_bytes, LEGACY_TEXT_REQUEST, legacy_size(dialect));
	else if (dialect == LEGACY_W24)
		ret_bytes[0] = LEGACY_FREE; /* its author took this number to be free */
	else if (dialect == LEGACY_W32)
		encode_w32(message, ret_bytes);
	else
		encode_head(message, ret_bytes);
	if (dialect == LEGACY_W648) {
		encode_string(message->name, message->name_length,
			      ret_bytes + offsetof(struct legacy_w648, name), LEGACY_NAME_SIZE);
		encode_string(message->stack, message->stack_length,
			      ret_bytes + offsetof(struct legacy_w648, stack), LEGACY_STACK_SIZE);
	}
	*ret_length = legacy_size(dialect);
	return 0;
}
