/* SPDX-License-Identifier: Apache-2.0 */

/* A field is its number and kind, then its value; numbers have seven bits in each byte, lowest first. */

#include "cli/export/format/export-proto.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/must.h"

#define PROTO_VARINT 0u
#define PROTO_LENGTH 2u

void export_proto_deinit(struct export_proto *proto)
{
	free(proto->bytes);
	*proto = EXPORT_PROTO_NULL;
}

void export_proto_reset(struct export_proto *proto)
{
	proto->length = 0;
}

static void proto_put(struct export_proto *proto, const void *bytes, size_t length)
{
	must_grow(proto->bytes, &proto->capacity, proto->length + length);
	if (length > 0)
		memcpy(proto->bytes + proto->length, bytes, length);
	proto->length += length;
}

void export_proto_varint(struct export_proto *proto, uint64_t value)
{
	unsigned char bytes[10];
	size_t length = 0;

	do {
		bytes[length++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	proto_put(proto, bytes, length);
}

void export_proto_number(struct export_proto *proto, uint32_t field, uint64_t value)
{
	export_proto_varint(proto, (uint64_t)field << 3 | PROTO_VARINT);
	export_proto_varint(proto, value);
}

void export_proto_bytes(struct export_proto *proto, uint32_t field, const void *bytes,
			size_t length)
{
	export_proto_varint(proto, (uint64_t)field << 3 | PROTO_LENGTH);
	export_proto_varint(proto, length);
	proto_put(proto, bytes, length);
}

void export_proto_text(struct export_proto *proto, uint32_t field, const char *text)
{
	export_proto_bytes(proto, field, text, strlen(text));
}

void export_proto_message(struct export_proto *proto, uint32_t field, struct export_proto *part)
{
	export_proto_bytes(proto, field, part->bytes, part->length);

	export_proto_reset(part);
}
