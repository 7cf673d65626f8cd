/* SPDX-License-Identifier: Apache-2.0 */

/* recording-sample FILE EVENTS: a recording to try things with. Not installed. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "recording/testing/testing-recording.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: recording-sample FILE EVENTS\n");
		return 2;
	}
	testing_recording_make(argv[1], (uint32_t)strtoul(argv[2], NULL, 10));
	return 0;
}
