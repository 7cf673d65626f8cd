/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of one type that a process, a device or a user has, as a row of CSV. */

#include <stdbool.h>
#include <stdint.h>

#include "answers/fields.h"

struct by_user_row;
struct snapshot_device;
struct snapshot_memory;
struct snapshot_process;

/* What no column needs may be NULL or 0. */
struct memory_row {
	const struct snapshot_memory *memory;
	const struct snapshot_process *process;
	const struct snapshot_device *on; /* the device that it is on */
	const struct by_user_row *whose;
	const char *user;
	uint64_t time_ns, uid, occupied;
	uint32_t device, type;
	bool is_occupied; /* that is known */
};

/* Columns, and the first line of the CSV. */
#define MEMORY_OF_PROCESS                                                                     \
	"pid,user,comm,alive,device,device_uid,type,used,occupied,buffers,peak,bound,allocs," \
	"frees,unknown_frees,double_frees,last_ns"
#define MEMORY_OF_DEVICE "time_ns,device,uid,arch,card,remote,type,used,buffers,peak,capacity,bound"
#define MEMORY_OF_USER "time_ns,user,user_id,processes,device,uid,type,used,buffers,bound"

extern const struct field memory_fields[];

/* Writes a row; @memory: its memory, and what that has is filled in. */
void memory_put_csv(FILE *out, const struct fields_view *view, struct memory_row row,
		    const struct snapshot_memory *memory);
