/* SPDX-License-Identifier: Apache-2.0 */

/* Paths and parameters: what is accepted, and each way in which one can be wrong. */

#include "web/server/url.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answers/answers.h"
#include "base/testing/unit.h"

#define ALL UINT32_MAX

static struct url url;

static int read_all(const char *text, uint32_t allowed)
{
	int r;

	url_deinit(&url);
	url = (struct url){0};
	r = url_parse(&url, text);
	return r < 0 ? r : url_read(&url, allowed);
}

static void refused(const char *text, const char *problem)
{
	assert(read_all(text, ALL) == -EINVAL);
	if (!strstr(url.problem, problem))
		fprintf(stderr, "%s: %s\n", text, url.problem);
	assert(strstr(url.problem, problem));
	url_deinit(&url);
}

UNIT(every_url_parameter_is_parsed)
{
	assert(read_all("/x?pid=7&device=3&device=0xAB&type=l1&sort=age&by=site&limit=10&cursor=c"
			"&address=0x10&kind=leak&since=1&from=2&to=3&step=60&token=t&size=1.5K&"
			"page=32&per_bank=4K",
			ALL) == 0);
	assert(strcmp(url.path, "/x") == 0);
	assert(url.query.filter.pid == 7);
	assert(url.query.filter.device_count == 2 && url.query.filter.devices[0].value == 3);
	assert(url.query.filter.devices[1].by_id && url.query.filter.devices[1].value == 0xab);
	assert(url.query.filter.has_type && url.query.filter.type == 1);
	assert(url.query.order == SNAPSHOT_BY_AGE && url.query.by == GROUP_SITE &&
	       url.query.limit == 10);
	assert(strcmp(url.query.cursor, "c") == 0 && url.query.address == 16);
	assert(strcmp(url.query.kind, "leak") == 0 && url.query.since_ns == 1 &&
	       url.query.from_ns == 2);
	assert(url.query.to_ns == 3 && url.query.step_ms == 60000 &&
	       strcmp(url.query.token, "t") == 0);
	assert(url.query.size == 1536 && url.query.page_size == 32 && url.query.per_bank == 4096);
	url_deinit(&url);
}

UNIT(missing_parameters_have_defaults)
{
	static const char *const texts[] = {"/x", "/x?", "/x?&&"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert(read_all(texts[i], 0) == 0 && url.query.given == 0);
		assert(strcmp(url.path, "/x") == 0 && url.query.limit == URL_LIMIT_DEFAULT);
	}
	url_deinit(&url);
}

UNIT(texts_are_decoded)
{
	assert(read_all("/x?cursor=a%20b+c%2Bd%3d%26&t%79pe=CB", ALL) == 0);
	assert(strcmp(url.query.cursor, "a b c+d=&") == 0 && url.query.filter.type == 5);
	url_deinit(&url);
	refused("/x?cursor=%", "two digits");
	refused("/x?cursor=%2", "two digits");
	refused("/x?cursor=%g0", "two digits");
	refused("/x?cursor=a%00b", "%00");
	refused("/x?%zz=1", "two digits");
}

UNIT(a_parameter_of_another_route_is_refused)
{
	refused("/x?colour=red", "\"colour\"");
	refused("/x?=1", "unknown parameter \"\"");
	assert(read_all("/x?pid=7", QUERY_DEVICE) == -EINVAL);
	assert(strstr(url.problem, "unknown parameter \"pid\""));
	refused("/x?limit=1&limit=2", "twice");
	url_deinit(&url);
}

static const char *some_value(const struct query_rule *rule)
{
	return rule->words ? rule->words->text : rule->kind == QUERY_IS_TYPE ? "L1" : "1";
}

UNIT(each_answer_takes_what_it_honours_and_nothing_else)
{
	size_t taken = 0, refused_ones = 0;

	for (size_t i = 0; i < ANSWERS_COUNT; i++) {
		for (const struct query_rule *rule = query_rules; rule->name; rule++) {
			const char *value = rule->field == QUERY_KIND ? "leak" : some_value(rule);
			char text[64], problem[64];

			snprintf(text, sizeof(text), "/x?%s=%s", rule->name, value);
			snprintf(problem, sizeof(problem), "unknown parameter \"%s\"", rule->name);
			if (answers[i].honours & rule->field) {
				assert(read_all(text, answers[i].honours) == 0);
				assert(url.query.given == (uint32_t)rule->field);
				taken++;
			} else {
				assert(read_all(text, answers[i].honours) == -EINVAL);
				assert(strcmp(url.problem, problem) == 0);
				refused_ones++;
			}
		}
	}
	assert(taken > 50 && refused_ones > 500);
	url_deinit(&url);
}

UNIT(malformed_parameter_values_are_refused)
{
	refused("/x?pid=0", "pid");
	refused("/x?pid=-1", "pid");
	refused("/x?pid=1x", "pid");
	refused("/x?pid=2147483648", "pid");
	refused("/x?pid", "pid");
	refused("/x?device=1024", "device");
	refused("/x?device=", "device");
	refused("/x?type=RAM", "SYSTEM_MEMORY");
	refused("/x?sort=name", "size or age");
	refused("/x?by=pid", "thread");
	refused("/x?only=living", "past");
	refused("/x?buffers=all", "a number from 0 to 1000000");
	refused("/x?buffers=1000001", "a number from 0 to 1000000");
	refused("/x?browser=me", "the number of a user");
	refused("/x?browser=4294967295", "the number of a user");
	refused("/x?limit=0", "10000");
	refused("/x?limit=10001", "10000");
	refused("/x?cursor=", "next");
	refused("/x?address=zero", "0x");
	refused("/x?kind=Leak", "double_free");
	refused("/x?kind=", "double_free");
	refused("/x?kind=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "double_free");
	refused("/x?since=now", "ns");
	refused("/x?from=1.5", "ns");
	refused("/x?to=18446744073709551616", "ns");
	refused("/x?step=2", "1, 10 or 60");
	refused("/x?size=0", "bytes");
	refused("/x?size=-1", "bytes");
	refused("/x?size=much", "bytes");
	refused("/x?size=99999999999E", "bytes");
	refused("/x?page=0", "bytes");
	refused("/x?per_bank=0", "bytes");
	refused("/x?at=0", "a time in ns since 1970");
	refused("/x?at=-1", "a time in ns since 1970");
	refused("/x?at=18446744073709551616", "a time in ns since 1970");
	refused("/x?at=1&at=1", "twice");
	refused("/x?page=", "bytes");
}

UNIT(parameters_are_bounded)
{
	char text[4096] = "/x?";
	size_t length = 3;

	for (size_t i = 0; i < 85; i++) {
		length += (size_t)snprintf(text + length, sizeof(text) - length, "device=1&");
		if (i == 64)
			refused(text, "64 of them");
	}
	refused(text, "more than 80");
}

UNIT(paths_of_devices)
{
	uint32_t device = 9;

	assert(url_device_path("/api/devices/0/stats", &device) == 0 && device == 0);
	assert(url_device_path("/api/devices/1023/stats", &device) == 0 && device == 1023);
	assert(url_device_path("/api/devices//stats", &device) == -EINVAL);
	assert(url_device_path("/api/devices/1/stats/", &device) == -EINVAL);
	assert(url_device_path("/api/devices/-1/stats", &device) == -EINVAL);
	assert(url_device_path("/api/devices/99999999/stats", &device) == -EINVAL);
	assert(url_device_path("/api/devices/1", &device) == -EINVAL);
	assert(device == 1023);
}
