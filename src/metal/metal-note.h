/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A name in the book of a process that libttmem-metal.so reports for begins like this; what it has
 * learned about tt-metal, and how, follows. `ttmem doctor` looks for it.
 */
#define METAL_NOTE_HEAD "libttmem-metal.so: "
