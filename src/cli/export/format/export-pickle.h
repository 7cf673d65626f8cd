/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Python's pickle, protocol 2, one operation after another: a value is pushed onto a stack, and put into
 * the list or dictionary below it. Only operations that memory_viz knows, which has a reader of its own.
 */

#include <stdint.h>
#include <stdio.h>

/* Begins, and ends with the value that is on the stack. */
void export_pickle_begin(FILE *out);
void export_pickle_end(FILE *out);

/* Push a value. */
void export_pickle_list(FILE *out);
void export_pickle_dict(FILE *out);
void export_pickle_number(FILE *out, uint64_t value);
void export_pickle_text(FILE *out, const char *text);

/* Puts the last value into the list below it. */
void export_pickle_append(FILE *out);

/* Puts the last two values, key and value, into the dictionary below them. */
void export_pickle_set(FILE *out);

/* Remembers the last value under a number, which stays where it is; pushes it once more. */
void export_pickle_remember(FILE *out, uint32_t number);
void export_pickle_recall(FILE *out, uint32_t number);
