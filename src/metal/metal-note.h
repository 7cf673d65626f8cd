/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two names in the book of a process that libttmem-metal.so reports for begin like this; which tt-metal
 * it has found follows, and what it has learned about it and how. `ttmem doctor` looks for them.
 */
#define METAL_NOTE_HEAD "libttmem-metal.so: "

#define METAL_NOTE_SIZE 256 /* of a name, with its NUL */
#define METAL_NOTE_COUNT 2
