/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes a made-up course of events (src/cli/export/testing/testing-story.h) to standard output, for readers that
 * we did not write: story FORMAT
 */

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "cli/export/format/export-form.h"
#include "cli/export/testing/testing-story.h"

int main(int argc, char **argv)
{
	static const struct export_form *const forms[] = {
		&export_chrome,   &export_csv,       &export_firefox,
		&export_folded,   &export_heaptrack, &export_memory_viz,
		&export_perfetto, &export_pprof,     &export_speedscope,
	};

	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(forms); i++) {
		if (strcmp(forms[i]->name, argv[1]) == 0)
			return story_write(forms[i], STORY_WHOLE, stdout) == 0 ? 0 : 1;
	}
	return 2;
}
