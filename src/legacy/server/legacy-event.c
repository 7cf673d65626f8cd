/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Applies messages to a book as events. What the old server should not have accepted is refused and
 * counted: device numbers out of range, unknown types, impossible sizes.
 */

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/writer.h"
#include "legacy/server/legacy-log.h"
#include "legacy/server/legacy-private.h"
#include "legacy/server/legacy-stack.h"
#include "model/types.h"

#define EVENT_SIZE_MAX (UINT64_C(100) << 30) /* as in the newest old server */
#define EVENT_TYPE_L1 1u
#define EVENT_TYPE_LAST 4u /* the last type that ALLOC and FREE refer to */

bool legacy_event_is(const struct legacy_message *message)
{
	switch (message->type) {
	case LEGACY_ALLOC:
	case LEGACY_FREE:
	case LEGACY_CB_ALLOC:
	case LEGACY_CB_FREE:
	case LEGACY_KERNEL_LOAD:
	case LEGACY_KERNEL_UNLOAD:
		return true;
	case LEGACY_QUERY:
	case LEGACY_RESPONSE:
	case LEGACY_DUMP_REMAINING:
	case LEGACY_DEVICE_INFO_QUERY:
	case LEGACY_DEVICE_INFO_RESPONSE:
	case LEGACY_DUMP_KERNELS:
	case LEGACY_QUERY_ALL:
	case LEGACY_STATISTICS:
	default:
		return false;
	}
}

static bool event_allocates(const struct legacy_message *message)
{
	return message->type == LEGACY_ALLOC || message->type == LEGACY_CB_ALLOC ||
	       message->type == LEGACY_KERNEL_LOAD;
}

bool legacy_event_check(struct legacy_server *server, const struct legacy_message *message)
{
	if (unlikely(message->device < 0 || message->device >= (int32_t)BOOK_DEVICES)) {
		server->counts.refused_device++;
		if (server->log)
			legacy_log_bad_device(server->log, message);
		return false;
	}
	if (!event_allocates(message))
		return true;
	if (unlikely(message->size == 0 || message->size > EVENT_SIZE_MAX)) {
		server->counts.refused_size++;
		if (server->log)
			legacy_log_bad_size(server->log, message);
		return false;
	}
	if (unlikely(message->type == LEGACY_ALLOC && message->buffer_type > EVENT_TYPE_LAST)) {
		server->counts.refused_type++;
		if (server->log)
			legacy_log_bad_type(server->log, message);
		return false;
	}
	return true;
}

/*
 * A FREE carries no type. It refers to a buffer, never to a circular buffer or kernel, though these
 * may have the same address. Only if such a record exists must the type be chosen here; otherwise
 * the writer's own rule applies.
 */
static uint32_t event_free_type(struct writer *writer, uint32_t device, uint64_t address)
{
	struct shard *shard = writer->shards[device];
	const struct book_record *youngest = NULL;
	uint32_t slots[BOOK_TYPES], found;
	bool has_other = false;

	if (!shard)
		return INDEX_ANY;
	found = index_find_all(&shard->index, &shard->records, address, 0, slots);
	for (uint32_t i = 0; i < found; i++) {
		const struct book_record *record = records_at(&shard->records, slots[i]);

		if (book_meta_type(record->meta) > EVENT_TYPE_LAST)
			has_other = true;
		else if (!youngest || record->birth >= youngest->birth)
			youngest = record;
	}
	if (!has_other)
		return INDEX_ANY;
	return youngest ? book_meta_type(youngest->meta) : EVENT_TYPE_L1;
}

static uint32_t event_name(struct writer *writer, const struct legacy_message *message)
{
	char text[LEGACY_NAME_SIZE + 1];

	if (message->name_length == 0)
		return 0;
	memcpy(text, message->name, message->name_length);
	text[message->name_length] = '\0';
	return intern_string(writer, text, BOOK_NAME_MAX);
}

static void event_alloc(struct legacy_client *client, const struct legacy_message *message)
{
	struct writer *writer = client->writer;
	struct shard_buffer buffer = {
		.address = message->id,
		.size = message->size,
		.type = message->buffer_type,
		.thread = client->facts.ns_pid,
	};

	if (message->type == LEGACY_CB_ALLOC) {
		buffer.type = TYPES_CB;
	} else if (message->type == LEGACY_KERNEL_LOAD) {
		struct book_shape shape = {.kernel_sort = message->kernel_sort};

		buffer.type = TYPES_KERNEL;
		if (shape.kernel_sort)
			buffer.shape = intern_shape(writer, &shape);
	}
	if (message->dialect == LEGACY_W648) {
		buffer.name = event_name(writer, message);
		buffer.stack = legacy_stack_intern(writer, message->stack, message->stack_length);
	}
	writer_alloc(writer, (uint32_t)message->device, &buffer, 0);
}

static void event_free(struct legacy_client *client, const struct legacy_message *message)
{
	struct writer *writer = client->writer;
	struct shard_buffer who = {.address = message->id, .thread = client->facts.ns_pid};
	uint32_t device = (uint32_t)message->device;

	if (message->type == LEGACY_CB_FREE)
		who.type = TYPES_CB;
	else if (message->type == LEGACY_KERNEL_UNLOAD)
		who.type = TYPES_KERNEL;
	else
		who.type = event_free_type(writer, device, message->id);
	writer_free_buffer(writer, device, &who);
}

void legacy_event_apply(struct legacy_client *client, const struct legacy_message *message)
{
	struct legacy_log *log = client->server->log;
	uint32_t device = (uint32_t)message->device;
	uint64_t before = 0;

	if (unlikely(log))
		before = legacy_log_head(client->writer, device);
	if (event_allocates(message))
		event_alloc(client, message);
	else
		event_free(client, message);
	if (unlikely(log))
		legacy_log_events(log, client->writer, &client->facts, device, before);
}
