/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stack as Python prints it, one frame per line, for tools that look for 'File "model.py", line 7, in
 * forward'. It begins with the frame that stands for the stack (model/sites/site.h), and goes outwards: those
 * tools show the first frame.
 */

struct stack;

/*
 * The trace and @ret_path, the first frame's file, are owned by the caller; the path is NULL if there is
 * none, or if it could be taken for something else when it is shown.
 */
char *export_trace(const struct stack *stack, char **ret_path);
