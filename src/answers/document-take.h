/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading documents that other programs wrote, which may be anything. */

#include <stdbool.h>
#include <stddef.h>

struct field;
struct json_t;

/*
 * Parses a document; NULL if it is invalid. Numbers are exact, unless one exceeds 2^63, which only a program
 * that lies about its memory can cause: then all are rounded to 53 bits.
 */
struct json_t *document_load(const char *text, size_t length);

/* For CLEANUP(). */
void document_unload(struct json_t **document);

/* NULL = it says none. */
const char *document_schema(const struct json_t *document);

/*
 * The next row of a list, which begins @at 0; of fields_take() without a pool. False: there are no more. Texts
 * live as long as the document.
 */
bool document_next(const struct json_t *document, const char *list, size_t *at,
		   const struct field *fields, void *row, size_t size);
