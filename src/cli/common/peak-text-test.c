/* SPDX-License-Identifier: Apache-2.0 */

/* Lines about peaks, from documents as the daemon sends them. */

#include "cli/common/peak-text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answers/peak.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/testing/unit.h"

static struct peak_text options = {.indent = ""};

/* The rows of an array of peaks, which stay until the next call. */
static struct peak_list read_rows(const char *peaks)
{
	static struct pool pool;
	static json_t *document;
	struct peak_list list;

	json_decref(document);
	document = json_pack("{s:o}", "peaks", json_loads(peaks, 0, NULL));
	assert(document);
	assert(fields_take(document, peak_list_fields, &list, &pool) == 0);
	return list;
}

static const char *print(const char *peaks)
{
	static char *text;
	const struct peak_list list = read_rows(peaks);
	size_t length;

	free(text);
	options.out = open_memstream(&text, &length);
	assert(options.out);
	peak_text_put(&options, &list);
	assert(fclose(options.out) == 0);
	return text;
}

static bool has(const char *peaks, const char *text)
{
	const char *printed = print(peaks);

	if (!strstr(printed, text))
		fputs(printed, stderr);
	return strstr(printed, text) != NULL;
}

UNIT(a_peak_has_a_line_and_a_row_for_each_group)
{
	static const char peak[] =
		"[{\"device\":0,\"type\":\"DRAM\",\"bytes\":2048,\"pid\":7,\"comm\":\"train\","
		"\"time_ns\":1000000000,\"moment_ns\":1000000000,\"known_bytes\":2048,"
		"\"exact\":true,\"groups\":["
		"{\"key\":\"DRAM weights\",\"type\":\"DRAM\",\"bytes\":1536,\"buffers\":3},"
		"{\"key\":\"other\",\"bytes\":512,\"buffers\":1}]}]";
	const char *text;

	assert(setenv("TZ", "UTC", 1) == 0);
	text = print(peak);
	assert(strcmp(text,
		      "device 0 DRAM peak 2.0 KiB at 1970-01-01 00:00:01 (pid 7 train), exact\n"
		      "     1.5 KiB   75.0%        3  weights\n"
		      "       512 B   25.0%        1  other\n") == 0);
}

UNIT(bounds_ends_and_repetitions_are_said)
{
	assert(setenv("TZ", "UTC", 1) == 0);
	assert(has("[{\"bound\":\"at_least\",\"bytes\":1}]", " ? peak at least 1 B at "));
	assert(has("[{\"bound\":\"at_most\",\"bytes\":1}]", " peak at most 1 B at "));
	assert(has("[{\"bound\":\"exact\",\"bytes\":1}]", " peak 1 B at "));
	assert(has("[{\"ended\":true}]", "(pid 0 ?, ended)\n"));
	assert(has("[{\"ended\":false}]", "(pid 0 ?)\n"));
	options.is_over = true;
	assert(has("[{\"ended\":true}]", "(pid 0 ?)\n"));
	assert(has("[{\"time_ns\":1000000000,\"moment_ns\":2000000000}]",
		   " at 1970-01-01 00:00:01 (pid 0 ?), reached again at 1970-01-01 00:00:02\n"));
	assert(has("[{\"bytes\":4096,\"known_bytes\":1024,\"unknown_bytes\":3072,\"exact\":true}]",
		   ", 1.0 KiB of it known\n     3.0 KiB   75.0%           not known: freed too "
		   "long ago\n"));
}

UNIT(todays_peaks_have_no_date)
{
	char text[128], expected[64], day[32];
	const uint64_t now = clock_ns(CLOCK_REALTIME);
	const time_t seconds = (time_t)(now / NS_PER_S);
	struct tm local;

	assert(setenv("TZ", "UTC", 1) == 0);
	snprintf(text, sizeof(text), "[{\"time_ns\":%" PRIu64 ",\"moment_ns\":%" PRIu64 "}]", now,
		 now);
	assert(gmtime_r(&seconds, &local));
	(void)strftime(expected, sizeof(expected), " at %T (pid", &local);
	(void)strftime(day, sizeof(day), " at %F %T (pid", &local);
	/* It may be the next day by now. */
	assert(strstr(print(text), expected) || strstr(print(text), day));
}

UNIT(what_a_bank_needs_is_said)
{
	assert(has("[{\"per_bank\":{\"bytes\":1024,\"banks\":12,\"bound\":\"exact\"}}]",
		   ", 1.0 KiB in each of 12 banks, 12.0 KiB together\n"));
	assert(has("[{\"per_bank\":{\"bytes\":1024,\"banks\":12,\"bound\":\"at_least\"}}]",
		   ", at least 1.0 KiB in each of 12 banks, 12.0 KiB together\n"));
	assert(has("[{\"type\":\"L1\",\"per_bank\":{\"bytes\":1024,\"banks\":12,"
		   "\"bound\":\"exact\"}}]",
		   ", 1.0 KiB in each bank\n"));
	assert(has("[{\"per_bank\":{\"bytes\":1024,\"bound\":\"exact\"}}]", " in each bank\n"));
	assert(has("[{\"per_bank\":{\"bytes\":9000000000000000000,\"banks\":3}}]",
		   " in each bank\n"));
	assert(!strstr(print("[{\"per_bank\":{\"bytes\":0,\"banks\":3}}]"), "bank"));
}

/* Of a device, with the other members that count, and some that come after them. */
#define PEAK(device, members, more)                                                           \
	"{\"device\":" #device ",\"pid\":7,\"start_ns\":1,\"type\":\"L1\",\"known_bytes\":1," \
	"\"exact\":false,\"bound\":\"exact\",\"per_bank\":null," members more "}"
#define ALIKE(device) PEAK(device, "\"bytes\":10", "")
#define WITH(device, groups) PEAK(device, "\"bytes\":10", ",\"groups\":[" groups "]")

UNIT(devices_of_a_mesh_are_told_once)
{
	assert(has("[" ALIKE(4) "]", "device 4 L1 peak 10 B at "));
	assert(has("[" ALIKE(0) "," ALIKE(1) "]", "devices 0, 1 L1 peak 10 B each at "));
	assert(has("[" ALIKE(0) "," ALIKE(1) "," ALIKE(2) "," ALIKE(5) "]",
		   "devices 0-2, 5 L1 peak 10 B each at "));
	assert(has("[" ALIKE(3) "," ALIKE(5) "," ALIKE(6) "," ALIKE(7) "]", "devices 3, 5-7 L1"));
}

/* Each pair differs in one member only. */
UNIT(peaks_that_differ_have_lines_of_their_own)
{
	static const char *const others[] = {
		ALIKE(0),
		PEAK(1, "\"bytes\":11", ""),
		PEAK(1, "\"bytes\":10", ",\"pid\":8"),
		PEAK(1, "\"bytes\":10", ",\"start_ns\":2"),
		PEAK(1, "\"bytes\":10", ",\"type\":\"DRAM\""),
		PEAK(1, "\"bytes\":10", ",\"exact\":true"),
		PEAK(1, "\"bytes\":10", ",\"bound\":\"at_most\""),
		WITH(1, "{}"),
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(text, sizeof(text), "[" ALIKE(0) ",%s]", others[i]);
		assert(has(text, "\ndevice "));
	}
}

#define OF(key, bytes, buffers) "{\"key\":\"" key "\",\"bytes\":" bytes ",\"buffers\":" buffers "}"

UNIT(groups_that_differ_make_peaks_differ)
{
	assert(has("[" WITH(0, OF("a", "1", "1")) "," WITH(1, OF("a", "1", "1")) "]",
		   "devices 0, 1 "));
	assert(has("[" WITH(0, OF("a", "1", "1")) "," WITH(1, OF("b", "1", "1")) "]",
		   "\ndevice 1 "));
	assert(has("[" WITH(0, OF("a", "1", "1")) "," WITH(1, OF("a", "2", "1")) "]",
		   "\ndevice 1 "));
	assert(has("[" WITH(0, OF("a", "1", "1")) "," WITH(1, OF("a", "1", "2")) "]",
		   "\ndevice 1 "));
	assert(has("[" WITH(0, OF("a", "1", "1") "," OF("b", "1", "1")) "," WITH(
			   1, OF("a", "1", "1") "," OF("c", "1", "1")) "]",
		   "\ndevice 1 "));
}

UNIT(an_empty_line_may_separate_peaks)
{
	assert(!strstr(print("[" ALIKE(0) "," ALIKE(0) "]"), "\n\n"));
	options.is_spaced = true;
	options.indent = "> ";
	assert(has("[" ALIKE(0) "," ALIKE(0) "]", "\n\n> device 0"));
	assert(strncmp(print("[" ALIKE(0) "]"), "> device", 8) == 0);
}

#define GROUPS(groups) "[{\"bytes\":100,\"groups\":[" groups "]}]"
#define GROUP "{\"key\":\"k\",\"bytes\":10,\"buffers\":2}"

UNIT(the_rest_is_one_row)
{
	options.rows = 2;
	/* One more row says as much as the sum would. */
	assert(!strstr(print(GROUPS(GROUP "," GROUP "," GROUP)), "more"));
	assert(has(GROUPS(GROUP "," GROUP "," GROUP "," GROUP),
		   "        20 B   20.0%        4  2 more; --json has all\n"));
	options.rows = 0;
	assert(!strstr(print(GROUPS(GROUP "," GROUP "," GROUP "," GROUP)), "more"));
}

UNIT(a_call_site_has_its_names_and_its_line)
{
	assert(has(GROUPS("{\"site\":{\"function\":\"f\",\"file\":\"a.py\",\"line\":3,"
			  "\"python\":true},\"name\":\"w\",\"name_count\":1}"),
		   "  w at "));
	assert(has(GROUPS("{\"site\":{\"function\":\"f\",\"file\":\"a.py\",\"line\":3},"
			  "\"name_count\":2}"),
		   "  2 names at "));
	assert(!strstr(print(GROUPS("{\"site\":{\"function\":\"f\",\"file\":\"a.py\","
				    "\"line\":3}}")),
		       " at f"));
	assert(has(GROUPS("{\"key\":\"L1\",\"type\":\"L1\"}"), "  -\n"));
	assert(has(GROUPS("{\"key\":\"L1 a\",\"type\":\"DRAM\"}"), "  L1 a\n"));
	assert(has(GROUPS("{}"), "  -\n"));
}

UNIT(the_largest_peak_is_the_first)
{
	struct peak_list list = read_rows("[{\"bytes\":1,\"buffers\":5},"
					  "{\"bytes\":2,\"pid\":2,\"buffers\":4},"
					  "{\"bytes\":2,\"pid\":1,\"start_ns\":2,\"buffers\":3},"
					  "{\"bytes\":2,\"pid\":1,\"start_ns\":1,"
					  "\"type\":\"TRACE\",\"buffers\":2},"
					  "{\"bytes\":2,\"pid\":1,\"start_ns\":1,"
					  "\"type\":\"CB\",\"device\":1,\"buffers\":1},"
					  "{\"bytes\":2,\"pid\":1,\"start_ns\":1,"
					  "\"type\":\"CB\",\"device\":0,\"buffers\":0}]");

	peak_text_sort(&list);
	assert(list.count == 6);
	for (size_t i = 0; i < 6; i++)
		assert(list.rows[i].buffers == i);
}
