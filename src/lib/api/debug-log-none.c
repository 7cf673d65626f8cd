/* SPDX-License-Identifier: Apache-2.0 */

/* In the place of src/legacy/debug-log where that is not built: there are no such logs. */

#include "lib/api/debug-log.h"

bool debug_log_tracks(void)
{
	return false;
}

void debug_log_prepare(void)
{
}

void debug_log_open(void)
{
}

bool debug_log_is_on(void)
{
	return false;
}

void debug_log_new_book(void)
{
}

void debug_log_new_stack(uint32_t id, const uintptr_t *addresses, size_t count, size_t room)
{
	(void)id;
	(void)addresses;
	(void)count;
	(void)room;
}

void debug_log_alloc(const struct debug_log_buffer *buffer)
{
	(void)buffer;
}

void debug_log_free(struct writer *writer, const struct debug_log_buffer *buffer,
		    const struct thread *thread)
{
	(void)writer;
	(void)buffer;
	(void)thread;
}

uint64_t debug_log_mark(const struct writer *writer, uint32_t device)
{
	(void)writer;
	(void)device;
	return 0;
}

void debug_log_free_all(struct writer *writer, uint32_t device, uint64_t mark,
			const struct thread *thread)
{
	(void)writer;
	(void)device;
	(void)mark;
	(void)thread;
}
