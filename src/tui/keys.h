/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* User input as views see it: characters are themselves, everything else is beyond Unicode. */

#include <stdint.h>

enum keys_key {
	KEYS_NONE = 0,
	KEYS_ENTER = '\r',
	KEYS_ESCAPE = 27,
	KEYS_UP = 0x110000,
	KEYS_DOWN,
	KEYS_LEFT,
	KEYS_RIGHT,
	KEYS_PAGE_UP,
	KEYS_PAGE_DOWN,
	KEYS_HOME,
	KEYS_END,
	KEYS_BACKSPACE,
	KEYS_RESIZE,
	KEYS_CLICK, /* with row and column; likewise the next */
	KEYS_WHEEL_UP,
	KEYS_WHEEL_DOWN,
};

struct keys_event {
	uint32_t key;
	unsigned int row, column;
};
