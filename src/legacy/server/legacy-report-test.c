/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The old server's sums, byte by byte, as answers/remaining-report-test.c does it for lists: the files are in
 * tests/corpus/legacy-report.
 */

#include "legacy/server/legacy-report.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "model/snapshot.h"

#define RTEST_NOW UINT64_C(1700000000000000000)
#define RTEST_MB (1024.0 * 1024.0)

enum {
	RTEST_DRAM = 0,
	RTEST_L1 = 1,
	RTEST_TRACE = 4
};

static void rtest_expect(const char *name, const char *text)
{
	char path[512], expected[65536];
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/legacy-report/%s.txt", testing_corpus(), name);
	{
		CLEANUP_FCLOSE FILE *file = fopen(path, "re");

		n = file ? fread(expected, 1, sizeof(expected) - 1, file) : 0;
		expected[n] = '\0';
	}
	if (strcmp(expected, text) != 0)
		fprintf(stderr, "%s is not:\n%s", path, text);
	assert(strcmp(expected, text) == 0);
}

static void rtest_check(const char *name, struct snapshot *snapshot,
			void (*report)(FILE *, const struct snapshot *))
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert(out && snapshot_finish(snapshot) == 0);
	report(out, snapshot);
	assert(fclose(out) == 0);
	rtest_expect(name, text);
	snapshot_free(snapshot);
}

static struct snapshot *rtest_totals(void)
{
	struct snapshot_process process = {.id.pid = 1, .alive = true, .exact = true};
	struct snapshot *snapshot = snapshot_new(RTEST_NOW);
	uint32_t index;
	static const struct {
		uint32_t type;
		uint64_t buffers;
		double mb;
	} parts[] = {{RTEST_DRAM, 45, 234.56}, {RTEST_L1, 143, 127.45}, {RTEST_TRACE, 2, 32.0}};

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0 && index == 0);
	for (size_t i = 0; i < 3; i++) {
		struct snapshot_part *part = snapshot_part(snapshot, 0, 0);

		assert(part);
		part->memory[parts[i].type].buffers = parts[i].buffers;
		part->memory[parts[i].type].used = (uint64_t)(parts[i].mb * RTEST_MB);
	}
	return snapshot;
}

UNIT(summary_of_the_documents_example)
{
	rtest_check("summary", rtest_totals(), legacy_report_summary);
}

UNIT(statistics_have_the_old_form)
{
	rtest_check("statistics", rtest_totals(), legacy_report_statistics);
}
