/* SPDX-License-Identifier: Apache-2.0 */

/* Bodies grow by doubling; growth is charged to the purse first. */

#include "web/server/body.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/hash.h"

#define BODY_FIRST 4096u
#define BODY_HEAD 128u /* a document has its time within so many bytes */

struct body *body_new(struct body_purse *purse)
{
	struct body *body = calloc(1, sizeof(*body));

	if (!body)
		return NULL;
	body->refs = 1;
	body->purse = purse;
	return body;
}

struct body *body_ref(struct body *body)
{
	__atomic_add_fetch(&body->refs, 1, __ATOMIC_RELAXED);
	return body;
}

struct body *body_unref(struct body *body)
{
	if (!body || __atomic_sub_fetch(&body->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	__atomic_sub_fetch(&body->purse->used, body->capacity, __ATOMIC_RELAXED);
	free(body->text);
	free(body);
	return NULL;
}

static int body_grow(struct body *body, size_t needed)
{
	size_t capacity = body->capacity ? body->capacity : BODY_FIRST;
	size_t more;
	char *text;

	while (capacity < needed)
		capacity *= 2;
	more = capacity - body->capacity;
	if (__atomic_add_fetch(&body->purse->used, more, __ATOMIC_RELAXED) > BODY_TOTAL_MAX) {
		__atomic_sub_fetch(&body->purse->used, more, __ATOMIC_RELAXED);
		return -ENOBUFS;
	}
	text = realloc(body->text, capacity);
	if (!text) {
		__atomic_sub_fetch(&body->purse->used, more, __ATOMIC_RELAXED);
		return -ENOMEM;
	}
	body->text = text;
	body->capacity = capacity;
	return 0;
}

int body_append(struct body *body, const char *text, size_t length)
{
	if (body->error == 0 && length > BODY_MAX - body->length)
		body->error = -EFBIG;
	if (body->error == 0 && body->length + length > body->capacity)
		body->error = body_grow(body, body->length + length);
	if (body->error < 0)
		return body->error;
	if (length > 0)
		memcpy(body->text + body->length, text, length);
	body->length += length;
	return 0;
}

static ssize_t body_write(void *cookie, const char *text, size_t length)
{
	return body_append(cookie, text, length) < 0 ? 0 : (ssize_t)length;
}

FILE *body_open(struct body *body)
{
	FILE *file = fopencookie(body, "w", (cookie_io_functions_t){.write = body_write});

	/*
	 * Only one thread writes a body, in very small pieces: locking would be a fifth of the
	 * work.
	 */
	if (file)
		(void)__fsetlocking(file, FSETLOCKING_BYCALLER); /* returns the previous mode */
	return file;
}

void body_tag(const struct body *body, char ret_tag[BODY_TAG_SIZE])
{
	static const char key[] = "\"time_ns\":";
	size_t head = bits_min(body->length, BODY_HEAD), from = 0;
	const char *time = head ? memmem(body->text, head, key, strlen(key)) : NULL;
	uint64_t tag = 0;

	if (time) {
		from = (size_t)(time - body->text);
		tag = hash_u64(hash_bytes(body->text, from));
		for (from += strlen(key); from < body->length; from++) {
			if (body->text[from] < '0' || body->text[from] > '9')
				break;
		}
	}
	if (body->length > from)
		tag ^= hash_bytes(body->text + from, body->length - from);
	(void)snprintf(ret_tag, BODY_TAG_SIZE, "\"%016" PRIx64 "\"", tag); /* fits */
}
