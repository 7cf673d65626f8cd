/* SPDX-License-Identifier: Apache-2.0 */

/* What the command has for the old system. */

#include "cli/common/legacy-parts.h"

#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/common/command.h"
#include "legacy/wire/legacy-encode.h"
#include "model/types.h"

const struct command *const legacy_parts_commands[] = {&dump_command, &analyze_command, NULL};

static bool parts_allocate(int fd, uint32_t device, uint32_t type, uint64_t address, uint64_t size)
{
	struct legacy_message message = {
		.type = type == TYPES_CB       ? LEGACY_CB_ALLOC
			: type == TYPES_KERNEL ? LEGACY_KERNEL_LOAD
					       : LEGACY_ALLOC,
		.device = (int32_t)device,
		.size = size,
		.buffer_type = type == TYPES_KERNEL ? 0 : (uint8_t)type,
		.pid = getpid(),
		.id = address,
	};
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;

	return legacy_encode_request(LEGACY_W144, &message, bytes, &length) == 0 &&
	       send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

legacy_parts_report *const legacy_parts_allocate = parts_allocate;
