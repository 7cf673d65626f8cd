/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What we and the process for symbols say to each other, on a SOCK_SEQPACKET socket: a question, with the
 * files to look into, and one answer. Both are of the same build, and each checks all that
 * the other says: behind the answer may be whoever made the file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "symbol/demangle.h"
#include "symbol/resolve.h"

#define SYMBOLIZER_WIRE_MAGIC UINT32_C(0x59535454) /* "TTSY" */
#define SYMBOLIZER_WIRE_VERSION 2u
#define SYMBOLIZER_WIRE_FILES 2u /* the program, and the one with its debug information */

enum symbolizer_wire_kind {
	SYMBOLIZER_WIRE_FIND = 1,  /* with one file or two */
	SYMBOLIZER_WIRE_PROBE = 2, /* try what is forbidden */
	SYMBOLIZER_WIRE_DEMANGLE = 3,
};

struct symbolizer_wire_request {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of what is sent: as much of the name as there is */
	uint32_t kind;
	uint64_t serial;
	uint64_t address;             /* FIND; else 0 */
	char name[DEMANGLE_NAME_MAX]; /* DEMANGLE: ends in NUL; else not sent */
};

struct symbolizer_wire_answer {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of what is sent: only so many frames as there are */
	uint32_t kind;
	uint64_t serial;  /* of the request */
	int32_t result;   /* 0 or a negative errno */
	uint32_t count;   /* of frames */
	uint32_t allowed; /* PROBE: what was not refused, a bit each */
	uint32_t has_debug;
	uint32_t build_id_length;
	uint32_t reserved; /* 0 */
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
	char link[RESOLVE_TEXT_SIZE];
	union {
		struct resolve_frame frames[RESOLVE_FRAMES_MAX];
		char text[DEMANGLE_NAME_MAX]; /* DEMANGLE: ends in NUL */
	};
};

_Static_assert(__builtin_offsetof(struct symbolizer_wire_request, name) == 32, "request size");
_Static_assert(sizeof(struct resolve_frame) == 520, "frame size");
_Static_assert(__builtin_offsetof(struct symbolizer_wire_answer, frames) == 336, "answer size");

/* Sends without waiting. The descriptors (-1 = none) stay the caller's. 0 or a negative errno. */
int symbolizer_wire_ask(int socket, const struct symbolizer_wire_request *request,
			const int files[SYMBOLIZER_WIRE_FILES]);
int symbolizer_wire_tell(int socket, const struct symbolizer_wire_answer *answer);

/* Waits. The descriptors are the caller's. 0; -EPIPE at the end; -EBADMSG; or another negative errno. */
int symbolizer_wire_hear(int socket, struct symbolizer_wire_request *ret_request,
			 int ret_files[SYMBOLIZER_WIRE_FILES]);

/* Does not wait. 0; -EAGAIN; -EPIPE at the end; -EBADMSG; or another negative errno. */
int symbolizer_wire_receive(int socket, uint64_t serial, struct symbolizer_wire_answer *ret_answer);

/* Bytes of an answer with so many frames. */
uint32_t symbolizer_wire_size(uint32_t count);

/* Bytes of a request. */
uint32_t symbolizer_wire_request_size(const struct symbolizer_wire_request *request);
