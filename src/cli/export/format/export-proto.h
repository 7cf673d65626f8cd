/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Messages of Protocol Buffers, written field by field into memory. */

#include <stddef.h>
#include <stdint.h>

struct export_proto {
	unsigned char *bytes;
	size_t length, capacity;
};

#define EXPORT_PROTO_NULL ((struct export_proto){.bytes = NULL})

void export_proto_deinit(struct export_proto *proto);

/* Empties it, to be used again. */
void export_proto_reset(struct export_proto *proto);

/* Adds a field: a number; a text; a message, packed numbers or other bytes. */
void export_proto_number(struct export_proto *proto, uint32_t field, uint64_t value);
void export_proto_text(struct export_proto *proto, uint32_t field, const char *text);
void export_proto_bytes(struct export_proto *proto, uint32_t field, const void *bytes,
			size_t length);

/* Adds a message as a field, and empties it. */
void export_proto_message(struct export_proto *proto, uint32_t field, struct export_proto *part);

/* Adds a number alone, for packed fields. */
void export_proto_varint(struct export_proto *proto, uint64_t value);
