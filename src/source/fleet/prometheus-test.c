/* SPDX-License-Identifier: Apache-2.0 */

/* Samples of any answer. */

#include "source/fleet/prometheus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"

#define ANSWER(samples) "{\"data\":{\"result\":[" samples "]}}"

static int parse(struct prometheus *answer, const char *text)
{
	return prometheus_parse(answer, text, strlen(text));
}

UNIT(a_sample_has_its_labels_and_its_value)
{
	CLEANUP(prometheus_deinit) struct prometheus answer;
	const struct prometheus_sample *sample;

	assert(parse(&answer,
		     ANSWER("{\"metric\":{\"__name__\":\"up\",\"cluster\":\"c\",\"instance\":\"i\","
			    "\"device\":\"0\",\"uid\":\"0x1\",\"type\":\"L1\"},"
			    "\"value\":[1.5,\"27\"]}")) == 0);
	sample = answer.samples;
	assert(answer.count == 1 && sample->value == 27);
	assert(strcmp(sample->name, "up") == 0 && strcmp(sample->cluster, "c") == 0);
	assert(strcmp(sample->instance, "i") == 0 && strcmp(sample->device, "0") == 0);
	assert(strcmp(sample->uid, "0x1") == 0 && strcmp(sample->type, "L1") == 0);
}

UNIT(a_label_that_is_missing_or_no_text_is_empty)
{
	CLEANUP(prometheus_deinit) struct prometheus answer;

	assert(parse(&answer, ANSWER("{\"metric\":{\"device\":7}}")) == 0 && answer.count == 1);
	assert(!*answer.samples->device && !*answer.samples->instance);
	assert(answer.samples->value == 0);
}

UNIT(elements_without_labels_are_no_samples)
{
	CLEANUP(prometheus_deinit) struct prometheus answer;

	assert(parse(&answer, ANSWER("1,{},null,{\"metric\":3}")) == 0 && answer.count == 0);
}

UNIT(values_are_clamped)
{
	static const struct {
		const char *text;
		uint64_t value;
	} values[] = {{"\"-1\"", 0},
		      {"\"NaN\"", 0},
		      {"\"x\"", 0},
		      {"7", 0},
		      {"[\"1\"]", 0},
		      {"null", 0},
		      {"\"1e300\"", INT64_MAX},
		      {"\"+Inf\"", INT64_MAX},
		      {"\"1.9\"", 1}};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		CLEANUP(prometheus_deinit) struct prometheus answer;
		char text[128];

		(void)snprintf(text, sizeof(text), ANSWER("{\"metric\":{},\"value\":[0,%s]}"),
			       values[i].text);
		assert(parse(&answer, text) == 0 && answer.samples->value == values[i].value);
	}
}

UNIT(what_is_no_answer_is_refused)
{
	static const char *const wrong[] = {"", "[]", "{}", "{\"data\":[]}",
					    "{\"data\":{\"result\":{}}}"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		CLEANUP(prometheus_deinit) struct prometheus answer;

		assert(parse(&answer, wrong[i]) == -EBADMSG && answer.count == 0);
	}
}
