/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A picture that is drawn again and again in place: each line over the old one, so that nothing
 * flickers. And keys, read one by one without waiting.
 */

#include <stdbool.h>
#include <stdio.h>

struct screen {
	char *picture; /* what is being drawn */
	size_t size;
	bool drawn; /* something is on the terminal already */
};

#define SCREEN_NULL     \
	(struct screen) \
	{               \
		0       \
	}

/* A stream to write the next picture to, NULL if there is no memory. */
FILE *screen_begin(struct screen *screen);

/* Closes the stream and puts the picture on the terminal, as much of it as fits. 0 or -ENOMEM. */
int screen_show(struct screen *screen, FILE *picture);

/* Gives the terminal back. */
void screen_end(struct screen *screen);

/* Keys come at once and are not shown, until screen_keys_end(); only if stdin is a terminal. */
bool screen_keys_begin(void);
void screen_keys_end(void);

/* The next key that has been pressed, 0 if none. */
char screen_key(void);
