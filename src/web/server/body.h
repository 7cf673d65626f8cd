/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of an answer: written like a stream, bounded, and charged to a purse that all answers
 * still being read share, so that many slow readers of large documents cannot exhaust memory.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BODY_MAX ((size_t)64 << 20)        /* one answer */
#define BODY_TOTAL_MAX ((size_t)256 << 20) /* all of them together */

#define BODY_TAG_SIZE 32u

struct body_purse {
	size_t used; /* atomic */
};

struct body {
	char *text;
	size_t length, capacity;
	uint32_t refs;            /* atomic */
	int error;                /* 0, -EFBIG, -ENOBUFS (the purse is empty) or -ENOMEM */
	struct body_purse *purse; /* outlives the body */
};

struct body *body_new(struct body_purse *purse);
struct body *body_ref(struct body *body);
struct body *body_unref(struct body *body);

/* A stream into the body; closing it flushes. NULL: no memory. */
FILE *body_open(struct body *body);

int body_append(struct body *body, const char *text, size_t length);

/*
 * A quoted tag for a document, as HTTP has them. When it was made is no part of that, so that a
 * document in which nothing else has changed has the same one.
 */
void body_tag(const struct body *body, char ret_tag[BODY_TAG_SIZE]);
