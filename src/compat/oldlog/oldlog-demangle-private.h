/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the demangler; private to them. All return false for what is not known. */

#include "compat/oldlog/oldlog-demangle.h"

/* Text is only ever added; pieces say where it is. */
bool oldlog_demangle_put(struct oldlog_demangle *d, const char *bytes, size_t length);
bool oldlog_demangle_put_text(struct oldlog_demangle *d, const char *text);
bool oldlog_demangle_put_piece(struct oldlog_demangle *d, struct oldlog_demangle_piece piece);
struct oldlog_demangle_piece oldlog_demangle_since(const struct oldlog_demangle *d, uint32_t from);

/* For "S_": in the order in which they appear. */
bool oldlog_demangle_remember(struct oldlog_demangle *d, struct oldlog_demangle_piece piece);

/* What belongs together and is not complete yet. */
bool oldlog_demangle_push(struct oldlog_demangle *d, struct oldlog_demangle_piece piece);

/* Reads. */
bool oldlog_demangle_take(struct oldlog_demangle *d, const char *word);
bool oldlog_demangle_index(struct oldlog_demangle *d, uint32_t base, uint32_t *ret_index);
bool oldlog_demangle_type(struct oldlog_demangle *d, struct oldlog_demangle_piece *ret);
/* After its "I"; @is_function: "T_" of the function's signature means these. */
bool oldlog_demangle_arguments(struct oldlog_demangle *d, bool is_function,
			       struct oldlog_demangle_piece *ret);
bool oldlog_demangle_parameters(struct oldlog_demangle *d, struct oldlog_demangle_piece *ret);
bool oldlog_demangle_encoding(struct oldlog_demangle *d, bool is_outermost,
			      struct oldlog_demangle_piece *ret);

/* @ret_suffix: " const" of a member function. */
bool oldlog_demangle_name(struct oldlog_demangle *d, bool is_function, const char **ret_suffix,
			  struct oldlog_demangle_piece *ret);
bool oldlog_demangle_substitution(struct oldlog_demangle *d, struct oldlog_demangle_piece *ret);
bool oldlog_demangle_parameter(struct oldlog_demangle *d, struct oldlog_demangle_piece *ret);
