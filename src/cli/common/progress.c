/* SPDX-License-Identifier: Apache-2.0 */

/* A bar that is drawn over itself. */

#include "cli/common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"

#define PROGRESS_BAR 30u
#define PROGRESS_REDRAW_NS UINT64_C(100000000)

static void progress_draw_done(const struct progress *progress)
{
	char number[TEXT_NUMBER_SIZE];

	if (progress->unit)
		fprintf(stderr, "%" PRIu64 " %s%s\033[K", progress->done, progress->unit,
			progress->done == 1 ? "" : "s");
	else
		fprintf(stderr, "%s\033[K", text_size(progress->done, number));
}

void progress_draw(struct progress *progress)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned int filled;

	if (now - progress->drawn_ns < PROGRESS_REDRAW_NS || isatty(STDERR_FILENO) != 1)
		return;
	progress->drawn_ns = now;
	fputs("\r", stderr);
	if (progress->total) {
		uint64_t done = bits_min(progress->done, progress->total);

		filled = (unsigned int)(PROGRESS_BAR * done / progress->total);
		fprintf(stderr, "[%.*s%*s] %3" PRIu64 " %%  ", (int)filled,
			"##############################", (int)(PROGRESS_BAR - filled), "",
			100 * done / progress->total);
	}
	progress_draw_done(progress);
}

void progress_end(struct progress *progress)
{
	if (progress->drawn_ns)
		fputs("\r\033[K", stderr);
	progress->drawn_ns = 0;
}
