/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The layout of each dialect's messages as a table, and a decoder. Only what every old client is
 * known to leave at zero must be zero; numbers may be absurd, and are checked by their users: a
 * device that does not exist is the client's mistake, not another dialect.
 */

#include "legacy/wire/legacy.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"

#define LEGACY_BIT(type) (1u << (type))
#define LEGACY_BUFFERS                                                                   \
	(LEGACY_BIT(LEGACY_ALLOC) | LEGACY_BIT(LEGACY_FREE) | LEGACY_BIT(LEGACY_QUERY) | \
	 LEGACY_BIT(LEGACY_DUMP_REMAINING))
#define LEGACY_PROGRAMS                                             \
	(LEGACY_BIT(LEGACY_CB_ALLOC) | LEGACY_BIT(LEGACY_CB_FREE) | \
	 LEGACY_BIT(LEGACY_KERNEL_LOAD) | LEGACY_BIT(LEGACY_KERNEL_UNLOAD))
#define LEGACY_ALL                                                                 \
	(LEGACY_BUFFERS | LEGACY_BIT(LEGACY_DEVICE_INFO_QUERY) | LEGACY_PROGRAMS | \
	 LEGACY_BIT(LEGACY_DUMP_KERNELS))

struct legacy_shape {
	const char *name;
	uint32_t types; /* a bit for each type that clients send */
	uint16_t size;

	/* Besides bytes 1 to 3, these ranges are zero in every request; the ends are exclusive. */
	uint16_t pad, pad_end;
	uint16_t rest, rest_end;
};

static const struct legacy_shape legacy_shapes[LEGACY_DIALECTS] = {
	[LEGACY_UNDECIDED] = {"undecided", 0, 0, 0, 0, 0, 0},
	[LEGACY_TEXT] = {"text", 0, sizeof(LEGACY_TEXT_REQUEST) - 1, 0, 0, 0, 0},
	[LEGACY_W24] = {"W24", LEGACY_BIT(LEGACY_FREE), 24, 4, 24, 0, 0},
	[LEGACY_W32] = {"W32", LEGACY_PROGRAMS, 32, 28, 32, 0, 0},
	[LEGACY_W72] = {"W72", LEGACY_BUFFERS, 72, 17, 20, 40, 72},
	[LEGACY_W112] = {"W112", LEGACY_BUFFERS | LEGACY_BIT(LEGACY_DEVICE_INFO_QUERY), 112, 17, 20,
			 40, 112},
	[LEGACY_W128] = {"W128", LEGACY_ALL, 128, 17, 20, 40, 128},
	[LEGACY_W144] = {"W144", LEGACY_ALL, 144, 17, 20, 40, 144},
	[LEGACY_W648] = {"W648", LEGACY_BUFFERS, 648, 17, 20, 40, 72},
};

static const uint8_t legacy_zeros[LEGACY_SIZE_MAX];

size_t legacy_size(enum legacy_dialect dialect)
{
	return legacy_shapes[dialect].size;
}

const char *legacy_dialect_name(enum legacy_dialect dialect)
{
	return (unsigned int)dialect < LEGACY_DIALECTS ? legacy_shapes[dialect].name : "unknown";
}

const char *legacy_type_name(enum legacy_type type)
{
	static const char *const names[] = {
		[LEGACY_ALLOC] = "ALLOC",
		[LEGACY_FREE] = "FREE",
		[LEGACY_QUERY] = "QUERY",
		[LEGACY_RESPONSE] = "RESPONSE",
		[LEGACY_DUMP_REMAINING] = "DUMP_REMAINING",
		[LEGACY_DEVICE_INFO_QUERY] = "DEVICE_INFO_QUERY",
		[LEGACY_DEVICE_INFO_RESPONSE] = "DEVICE_INFO_RESPONSE",
		[LEGACY_CB_ALLOC] = "CB_ALLOC",
		[LEGACY_CB_FREE] = "CB_FREE",
		[LEGACY_KERNEL_LOAD] = "KERNEL_LOAD",
		[LEGACY_KERNEL_UNLOAD] = "KERNEL_UNLOAD",
		[LEGACY_DUMP_KERNELS] = "DUMP_KERNELS",
		[LEGACY_QUERY_ALL] = "QUERY_ALL",
		[LEGACY_STATISTICS] = "STATISTICS",
	};

	return (unsigned int)type < ARRAY_SIZE(names) && names[type] ? names[type] : "unknown";
}

bool legacy_has(enum legacy_dialect dialect, enum legacy_type type)
{
	if (dialect == LEGACY_TEXT)
		return type == LEGACY_QUERY_ALL;
	if (dialect == LEGACY_W24)
		return type == LEGACY_STATISTICS;
	return (unsigned int)type < 32 && legacy_shapes[dialect].types & LEGACY_BIT(type);
}

bool legacy_fits_at(enum legacy_dialect dialect, size_t offset, uint8_t byte)
{
	const struct legacy_shape *shape = &legacy_shapes[dialect];

	if (dialect == LEGACY_TEXT)
		return byte == (uint8_t)LEGACY_TEXT_REQUEST[offset];
	if (offset == 0)
		return byte < 32 && shape->types & LEGACY_BIT(byte);
	return byte == 0 || !(offset < 4 || (offset >= shape->pad && offset < shape->pad_end) ||
			      (offset >= shape->rest && offset < shape->rest_end));
}

bool legacy_check(enum legacy_dialect dialect, const uint8_t *bytes)
{
	const struct legacy_shape *shape = &legacy_shapes[dialect];
	uint32_t first;

	if (dialect == LEGACY_TEXT)
		return memcmp(bytes, LEGACY_TEXT_REQUEST, shape->size) == 0;
	memcpy(&first, bytes, sizeof(first)); /* the type and three zeros */
	if (first >= 32 || !(shape->types & LEGACY_BIT(first)))
		return false;
	return memcmp(bytes + shape->pad, legacy_zeros, (size_t)shape->pad_end - shape->pad) == 0 &&
	       memcmp(bytes + shape->rest, legacy_zeros, (size_t)shape->rest_end - shape->rest) ==
		       0;
}

bool legacy_check_beginning(enum legacy_dialect dialect, const uint8_t *bytes, size_t length)
{
	uint8_t whole[LEGACY_SIZE_MAX];

	if (length == 0)
		return true;
	if (dialect == LEGACY_TEXT)
		return memcmp(bytes, LEGACY_TEXT_REQUEST, length) == 0;
	/* Zero is valid for every byte but the first. */
	memset(whole, 0, legacy_shapes[dialect].size);
	memcpy(whole, bytes, length);
	return legacy_check(dialect, whole);
}

static void legacy_decode_w32(const uint8_t *bytes, struct legacy_message *ret_message)
{
	struct legacy_w32 wire;

	memcpy(&wire, bytes, sizeof(wire));
	ret_message->type = (enum legacy_type)wire.type;
	ret_message->device = wire.device;
	ret_message->size = wire.size;
	ret_message->id = wire.id;
	ret_message->pid = wire.pid;
}

static void legacy_decode_head(const uint8_t *bytes, struct legacy_message *ret_message)
{
	struct legacy_head wire;

	memcpy(&wire, bytes, sizeof(wire));
	ret_message->type = (enum legacy_type)wire.type;
	ret_message->device = wire.device;
	ret_message->size = wire.size;
	ret_message->id = wire.id;
	ret_message->pid = wire.pid;
	ret_message->timestamp = wire.timestamp;
	if (wire.type == LEGACY_KERNEL_LOAD || wire.type == LEGACY_KERNEL_UNLOAD)
		ret_message->kernel_sort = wire.buffer_type;
	else
		ret_message->buffer_type = wire.buffer_type;
}

static void legacy_decode_texts(const uint8_t *bytes, struct legacy_message *ret_message)
{
	const char *texts = (const char *)bytes;

	ret_message->name = texts + offsetof(struct legacy_w648, name);
	ret_message->name_length = (uint32_t)strnlen(ret_message->name, LEGACY_NAME_SIZE);
	ret_message->stack = texts + offsetof(struct legacy_w648, stack);
	ret_message->stack_length = (uint32_t)strnlen(ret_message->stack, LEGACY_STACK_SIZE);
}

int legacy_decode(enum legacy_dialect dialect, const uint8_t *bytes,
		  struct legacy_message *ret_message)
{
	if (unlikely(!legacy_check(dialect, bytes)))
		return -EBADMSG;

	*ret_message = (struct legacy_message){
		.dialect = dialect,
		.name = "",
		.stack = "",
		.raw = bytes,
	};
	if (likely(dialect >= LEGACY_W72))
		legacy_decode_head(bytes, ret_message);
	else if (dialect == LEGACY_W32)
		legacy_decode_w32(bytes, ret_message);
	else if (dialect == LEGACY_W24)
		ret_message->type = LEGACY_STATISTICS;
	else
		ret_message->type = LEGACY_QUERY_ALL;
	if (dialect == LEGACY_W648)
		legacy_decode_texts(bytes, ret_message);
	return 0;
}
