/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Python's frames for the stacks of libttmem (ttmem/provider.h). They are read where the layout of this
 * CPython is known and was found right (layout.h), with or without the GIL; else by public functions while
 * the thread has the GIL, and without it the thread's last ones must do.
 *
 * A frame is known by its instruction, which lies in its code object. Another code object may come to lie at
 * the same address, so those that were seen with the GIL are kept alive for good ("pinned"; they hold
 * constants and names, no globals); the others are known by their content as well.
 *
 * Nothing here takes the GIL, runs Python code or looks once the interpreter finalises.
 */

#include <stdbool.h>
#include <stdint.h>

/* How frames are found. */
enum frames_how {
	FRAMES_OFF = 0,    /* nowhere, and counted: another kind of interpreter */
	FRAMES_PUBLIC = 1, /* by public functions */
	FRAMES_READER = 2, /* in memory */
};

/*
 * Once, with the GIL: what CPython this is. @code_size is that of the type of code objects. False = its
 * public functions are not all there, or not of the main interpreter, and nothing else may be called.
 */
bool frames_init(uint32_t version, long code_size);

/* Whether memory says the same as the public functions do, of the frames that are calling right now. */
bool frames_check(void);

/* What was chosen: @wanted, or what can be had. Then the library asks. 0 or a negative errno. */
int frames_start(enum frames_how wanted, enum frames_how *ret_how);

/* From now on only threads with the GIL are looked at: those without may soon lose what is theirs. */
void frames_stop(void);
