/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stacks as old clients send them, one text: of Python "file:line:function -> file:line:function",
 * outermost first; of C++ what backtrace_symbols() gives, "module(function+0x1f) [0x7f]", innermost
 * first. In the book they are frames, innermost first, so that they can be compared and grouped
 * like those of native clients. A part that is not of Python's form becomes a frame whose function
 * is the whole part.
 */

#include <stddef.h>
#include <stdint.h>

struct writer;

/* Id of the stack in the writer's book; 0 = none. @text is not NUL-terminated. */
uint32_t legacy_stack_intern(struct writer *writer, const char *text, size_t length);
