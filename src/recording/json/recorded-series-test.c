/* SPDX-License-Identifier: Apache-2.0 */

/* Steps of series; what is in them is tested with "ttmem report --serve". */

#include "recording/json/recorded-series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/emit.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "recording/testing/testing-recorder.h"

/* A file may say that there are more devices than samples are kept. */
UNIT(any_number_of_devices_has_series)
{
	const struct query queries[] = {{.limit = 100}, {.limit = 100, .step_ms = 10}};
	struct testing_book book;
	struct testing_recorder recorder;
	struct testing_recorded recorded;
	struct recording *recording = NULL;
	struct snapshot *end = snapshot_new(1000);
	char why[RECORDING_WHY_SIZE] = "";

	testing_recorder_init(&recorder);
	testing_book_open(&book);
	testing_recorded_init(&recorded, &recorder, &book, 100);
	testing_recorder_end(&recorder);
	assert(end && recording_open(&recording, recorder.path, why) == 0);
	for (size_t i = 0; i < 2; i++) {
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		struct emit json = EMIT_INIT(out);

		end->device_count = 10000000;
		assert(recorded_series_document(&json, recording, end, &queries[i]) == 0);
		end->device_count = 0;
		assert(fclose(out) == 0 && strstr(text, "\"series\""));
		free(text);
	}
	snapshot_free(end);
	recording_free(recording);
	testing_recorded_deinit(&recorded);
	testing_book_deinit(&book);
	testing_recorder_deinit(&recorder);
}
