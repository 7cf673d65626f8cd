/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The protocol between the daemon and the symbol process, on a SOCK_SEQPACKET socket: a request,
 * with the files to read, and one answer. Both sides are the same build, and each checks everything
 * that the other sends: the author of a file may control the answer.
 */

#include <stdbool.h>
#include <stdint.h>

#include "symbol/demangle.h"
#include "symbol/resolve.h"

#define SYMBOLIZER_WIRE_MAGIC UINT32_C(0x59535454) /* "TTSY" */
#define SYMBOLIZER_WIRE_VERSION 2u
#define SYMBOLIZER_WIRE_FILES 2u /* the program, and its debug file */

enum symbolizer_wire_kind {
	SYMBOLIZER_WIRE_FIND = 1,  /* with one file or two */
	SYMBOLIZER_WIRE_PROBE = 2, /* tries what is forbidden */
	SYMBOLIZER_WIRE_DEMANGLE = 3,
};

struct symbolizer_wire_request {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of the message: the name is sent only up to its NUL */
	uint32_t kind;
	uint64_t serial;
	uint64_t address;             /* FIND; else 0 */
	char name[DEMANGLE_NAME_MAX]; /* DEMANGLE: ends in NUL; otherwise not sent */
};

struct symbolizer_wire_answer {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of the message: only @count frames are sent */
	uint32_t kind;
	uint64_t serial;  /* of the request */
	int32_t result;   /* 0 or a negative errno */
	uint32_t count;   /* of frames */
	uint32_t allowed; /* PROBE: what was not refused, one bit each */
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

/* Sends without waiting. The caller keeps the descriptors (-1 = none). 0 or a negative errno. */
int symbolizer_wire_ask(int socket, const struct symbolizer_wire_request *request,
			const int files[SYMBOLIZER_WIRE_FILES]);
int symbolizer_wire_tell(int socket, const struct symbolizer_wire_answer *answer);

/*
 * Waits. The caller owns the descriptors. 0; -EPIPE at end of file; -EBADMSG; or another negative
 * errno.
 */
int symbolizer_wire_hear(int socket, struct symbolizer_wire_request *ret_request,
			 int ret_files[SYMBOLIZER_WIRE_FILES]);

/* Does not wait. 0; -EAGAIN; -EPIPE at end of file; -EBADMSG; or another negative errno. */
int symbolizer_wire_receive(int socket, uint64_t serial, struct symbolizer_wire_answer *ret_answer);

/* Bytes of an answer with @count frames. */
uint32_t symbolizer_wire_size(uint32_t count);

/* Bytes of a request. */
uint32_t symbolizer_wire_request_size(const struct symbolizer_wire_request *request);
