/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands in front of the capture and the release of traces. The forms of these functions call each other in
 * some versions: only the outermost call counts. They may throw; then a capture has not begun.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "metal/metal-front.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-trace.h"

static _Thread_local uint32_t metal_trace_depth;

uint32_t metal_front_trace_begin(void *mesh, uint8_t queue) METAL_FRONT(METAL_NAME_TRACE_BEGIN);
void metal_front_trace_begin_id(void *mesh, uint8_t queue, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_BEGIN_ID);
void metal_front_trace_begin_id_old(void *mesh, uint8_t queue, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_BEGIN_ID_OLD);
uint32_t metal_front_trace_begin_on(void *mesh, void *queue) METAL_FRONT(METAL_NAME_TRACE_BEGIN_ON);
void metal_front_trace_begin_on_id(void *mesh, void *queue, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_BEGIN_ON_ID);
void metal_front_trace_end(void *mesh, uint8_t queue, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_END);
void metal_front_trace_end_old(void *mesh, uint8_t queue, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_END_OLD);
void metal_front_trace_end_on(void *mesh, void *queue, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_END_ON);
void metal_front_trace_release(void *mesh, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_RELEASE);
void metal_front_trace_release_old(void *mesh, const uint32_t *id)
	METAL_FRONT(METAL_NAME_TRACE_RELEASE_OLD);

/* Also if it throws. */
static void metal_trace_leave(const uint32_t *depth)
{
	metal_trace_depth = *depth;
}

#define METAL_TRACE_INSIDE CLEANUP(metal_trace_leave) uint32_t depth = metal_trace_depth++

static void metal_trace_begun(const void *mesh)
{
	if (metal_trace_depth || !metal_is_on())
		return;
	metal_lock();
	metal_trace_begin(mesh);
	metal_unlock();
}

/* Before the call: what it allocates is not written to by the trace. */
static void metal_trace_ending(const void *mesh, uint32_t id)
{
	if (metal_trace_depth || !metal_is_on())
		return;
	metal_lock();
	metal_trace_end(mesh, id);
	metal_unlock();
}

static uint32_t metal_trace_call_begin(const struct metal_names *names, void *mesh, uint8_t queue)
{
	METAL_TRACE_INSIDE;

	return names->trace_begin ? names->trace_begin(mesh, queue) : 0;
}

uint32_t metal_front_trace_begin(void *mesh, uint8_t queue)
{
	uint32_t id = metal_trace_call_begin(metal_names(METAL_HERE), mesh, queue);

	metal_trace_begun(mesh);
	return id;
}

static void metal_trace_call_begin_id(const struct metal_names *names, void *mesh, uint8_t queue,
				      const uint32_t *id)
{
	METAL_TRACE_INSIDE;

	if (names->trace_begin_id)
		names->trace_begin_id(mesh, queue, id);
}

void metal_front_trace_begin_id(void *mesh, uint8_t queue, const uint32_t *id)
{
	metal_trace_call_begin_id(metal_names(METAL_HERE), mesh, queue, id);
	metal_trace_begun(mesh);
}

void metal_front_trace_begin_id_old(void *mesh, uint8_t queue, const uint32_t *id)
{
	metal_trace_call_begin_id(metal_names(METAL_HERE), mesh, queue, id);
	metal_trace_begun(mesh);
}

static uint32_t metal_trace_call_begin_on(const struct metal_names *names, void *mesh, void *queue)
{
	METAL_TRACE_INSIDE;

	return names->trace_begin_on ? names->trace_begin_on(mesh, queue) : 0;
}

uint32_t metal_front_trace_begin_on(void *mesh, void *queue)
{
	uint32_t id = metal_trace_call_begin_on(metal_names(METAL_HERE), mesh, queue);

	metal_trace_begun(mesh);
	return id;
}

static void metal_trace_call_begin_on_id(const struct metal_names *names, void *mesh, void *queue,
					 const uint32_t *id)
{
	METAL_TRACE_INSIDE;

	if (names->trace_begin_on_id)
		names->trace_begin_on_id(mesh, queue, id);
}

void metal_front_trace_begin_on_id(void *mesh, void *queue, const uint32_t *id)
{
	metal_trace_call_begin_on_id(metal_names(METAL_HERE), mesh, queue, id);
	metal_trace_begun(mesh);
}

void metal_front_trace_end(void *mesh, uint8_t queue, const uint32_t *id)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	metal_trace_ending(mesh, *id);

	METAL_TRACE_INSIDE;

	if (names->trace_end)
		names->trace_end(mesh, queue, id);
}

void metal_front_trace_end_old(void *mesh, uint8_t queue, const uint32_t *id)
{
	metal_front_trace_end(mesh, queue, id);
}

void metal_front_trace_end_on(void *mesh, void *queue, const uint32_t *id)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	metal_trace_ending(mesh, *id);

	METAL_TRACE_INSIDE;

	if (names->trace_end_on)
		names->trace_end_on(mesh, queue, id);
}

void metal_front_trace_release(void *mesh, const uint32_t *id)
{
	const struct metal_names *names = metal_names(METAL_HERE);

	if (metal_is_on()) {
		metal_lock();
		metal_trace_release(mesh, *id);
		metal_unlock();
	}
	if (names->trace_release)
		names->trace_release(mesh, id);
}

void metal_front_trace_release_old(void *mesh, const uint32_t *id)
{
	metal_front_trace_release(mesh, id);
}
