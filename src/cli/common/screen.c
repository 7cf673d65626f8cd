/* SPDX-License-Identifier: Apache-2.0 */

/* Drawing in place, and keys. */

#include "cli/common/screen.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "cli/common/output.h"

static struct termios screen_before;
static bool screen_has_keys;
static bool screen_is_deaf; /* nothing more will come */

FILE *screen_begin(struct screen *screen)
{
	free(screen->picture);
	screen->picture = NULL;
	return open_memstream(&screen->picture, &screen->size);
}

int screen_show(struct screen *screen, FILE *picture)
{
	unsigned int rows = output_rows();

	if (fclose(picture) != 0 || !screen->picture)
		return -ENOMEM;
	fputs(screen->drawn ? "\033[H" : "\033[2J\033[?25l\033[H", stdout);
	screen->drawn = true;
	for (char *line = screen->picture, *end; *line && rows > 1; line = end + 1, rows--) {
		end = strchrnul(line, '\n');
		fwrite(line, 1, (size_t)(end - line), stdout);
		fputs("\033[K\n", stdout);
		if (!*end)
			break;
	}
	fputs("\033[J", stdout);
	(void)fflush(stdout); /* output_is_broken() reports a lost terminal */
	return 0;
}

void screen_end(struct screen *screen)
{
	if (screen->drawn)
		fputs("\033[?25h", stdout);
	free(screen->picture);
	*screen = SCREEN_NULL;
}

/* A job in the background that touched its terminal would be stopped. */
static bool screen_is_ours(void)
{
	pid_t job = tcgetpgrp(STDIN_FILENO);

	/* One that is not the session's has no jobs. */
	return job == getpgrp() || (job < 0 && isatty(STDIN_FILENO) == 1);
}

bool screen_keys_begin(void)
{
	struct termios quiet;

	if (!screen_is_ours() || tcgetattr(STDIN_FILENO, &screen_before) < 0)
		return false;
	quiet = screen_before;
	quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	quiet.c_cc[VMIN] = 0;
	quiet.c_cc[VTIME] = 0;
	screen_has_keys = tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet) == 0;
	return screen_has_keys;
}

void screen_keys_end(void)
{
	if (screen_has_keys && screen_is_ours())
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN,
				&screen_before); /* fails if the terminal is gone */
	screen_has_keys = false;
}

char screen_key(void)
{
	char key = 0;

	if (!screen_has_keys || !screen_is_ours() || read(STDIN_FILENO, &key, 1) != 1)
		return 0;
	return key;
}

bool screen_wait(unsigned int ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), end = now + ms * NS_PER_MS;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char key;

	for (; now < end && !output_is_stopped(); now = clock_ns(CLOCK_MONOTONIC)) {
		unsigned int rest = (unsigned int)((end - now + NS_PER_MS - 1) / NS_PER_MS);

		if (!screen_has_keys || screen_is_deaf || !screen_is_ours()) {
			output_sleep(rest);
			return false;
		}
		if (poll(&input, 1, (int)bits_min(rest, (unsigned int)INT_MAX)) <= 0)
			continue;
		key = screen_key();
		if (key == 'q' || key == 'Q')
			return true;
		/* A terminal that is gone is always readable, and has nothing. */
		if (!key)
			screen_is_deaf = true;
	}
	return false;
}
