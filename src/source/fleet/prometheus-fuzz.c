/* SPDX-License-Identifier: Apache-2.0 */

/* Feeds arbitrary bytes as the answer of a Prometheus. */

#include <string.h>

#include "base/testing/unit.h"
#include "source/fleet/prometheus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prometheus answer;

	(void)prometheus_parse(&answer, (const char *)data, size);
	for (size_t i = 0; i < answer.count; i++) {
		const struct prometheus_sample *sample = &answer.samples[i];

		assert(strlen(sample->name) + strlen(sample->cluster) + strlen(sample->instance) +
			       strlen(sample->device) + strlen(sample->uid) +
			       strlen(sample->type) <=
		       size);
		assert(sample->value <= INT64_MAX);
	}
	prometheus_deinit(&answer);
	return 0;
}
