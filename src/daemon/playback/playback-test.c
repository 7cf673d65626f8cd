/* SPDX-License-Identifier: Apache-2.0 */

/* A recording as a provider: what is left of one that cannot be opened. */

#include "daemon/playback/playback.h"

#include <errno.h>
#include <string.h>

#include "base/testing/unit.h"

UNIT(a_playback_without_its_file_can_be_given_back)
{
	char why[RECORDING_WHY_SIZE] = "";
	struct playback playback;

	memset(&playback, 0xff, sizeof(playback)); /* whatever was there before */
	assert(playback_init(&playback, unit_path("none.ttrec"), why) == -ENOENT && *why);
	assert(!playback.recording && !playback.end && playback.count == 0);
	playback_deinit(&playback);
}
