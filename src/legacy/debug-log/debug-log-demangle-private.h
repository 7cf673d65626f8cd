/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the demangler; private to them. All return false for what is not known. */

#include "legacy/debug-log/debug-log-demangle.h"

/* Text is only ever added; pieces say where it is. */
bool debug_log_demangle_put(struct debug_log_demangle *d, const char *bytes, size_t length);
bool debug_log_demangle_put_text(struct debug_log_demangle *d, const char *text);
bool debug_log_demangle_put_piece(struct debug_log_demangle *d,
				  struct debug_log_demangle_piece piece);
struct debug_log_demangle_piece debug_log_demangle_since(const struct debug_log_demangle *d,
							 uint32_t from);

/* For "S_": in the order in which they appear. */
bool debug_log_demangle_remember(struct debug_log_demangle *d,
				 struct debug_log_demangle_piece piece);

/* What belongs together and is not complete yet. */
bool debug_log_demangle_push(struct debug_log_demangle *d, struct debug_log_demangle_piece piece);

/* Reads. */
bool debug_log_demangle_take(struct debug_log_demangle *d, const char *word);
bool debug_log_demangle_index(struct debug_log_demangle *d, uint32_t base, uint32_t *ret_index);
bool debug_log_demangle_type(struct debug_log_demangle *d, struct debug_log_demangle_piece *ret);
/* After its "I"; @is_function: "T_" of the function's signature means these. */
bool debug_log_demangle_arguments(struct debug_log_demangle *d, bool is_function,
				  struct debug_log_demangle_piece *ret);
bool debug_log_demangle_parameters(struct debug_log_demangle *d,
				   struct debug_log_demangle_piece *ret);
bool debug_log_demangle_encoding(struct debug_log_demangle *d, bool is_outermost,
				 struct debug_log_demangle_piece *ret);

/* @ret_suffix: " const" of a member function. */
bool debug_log_demangle_name(struct debug_log_demangle *d, bool is_function,
			     const char **ret_suffix, struct debug_log_demangle_piece *ret);
bool debug_log_demangle_substitution(struct debug_log_demangle *d,
				     struct debug_log_demangle_piece *ret);
bool debug_log_demangle_parameter(struct debug_log_demangle *d,
				  struct debug_log_demangle_piece *ret);
