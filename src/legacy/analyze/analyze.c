/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem analyze: reads the logs of the old system and says what went wrong. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "legacy/analyze/analyze.h"
#include "model/filter.h"
#include "model/query.h"
#include "model/types.h"

#define ANALYZE_CHUNK (256u << 10)
#define ANALYZE_TOP 10u
#define ANALYZE_LEAK 86 /* as "ttmem run --fail-on-leak" */

const char *analyze_path(const struct analyze_file *file)
{
	return strcmp(file->path, "-") == 0 ? "standard input" : file->path;
}

const char *analyze_no_frees(const struct analyze_file *file)
{
	if (!file->counts.lacks_frees)
		return NULL;
	return file->counts.blind == file->counts.events
		       ? "this log has no frees: what was left cannot be told"
		       : "a part of this log has no frees: what was left of it cannot be told";
}

static int analyze_read_all(struct log_reader *log, int fd, struct progress *progress)
{
	CLEANUP_FREE char *chunk = must_alloc(1, ANALYZE_CHUNK);

	for (;;) {
		ssize_t n = read(fd, chunk, ANALYZE_CHUNK);

		if (n == 0) {
			log_reader_finish(log);
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		log_reader_feed(log, chunk, (size_t)n);
		progress->done += (uint64_t)n;
		progress_draw(progress);
	}
}

static int analyze_read(struct log_analysis *analysis, struct analyze_file *file,
			struct progress *progress)
{
	bool is_input = strcmp(file->path, "-") == 0;
	CLEANUP_CLOSE int fd = is_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
					: open(file->path, O_RDONLY | O_CLOEXEC);
	struct log_reader *log;
	int r;

	if (fd < 0)
		return -errno;
	log = log_reader_new(log_analysis_take, analysis);
	r = analyze_read_all(log, fd, progress);
	file->counts = *log_reader_counts(log);
	log_reader_free(log);
	return r;
}

static int analyze_read_files(struct analyze *analyze)
{
	struct progress progress = {0};
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < analyze->file_count; i++) {
		const char *path = analyze->files[i].path;
		bool is_file = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) == 0
						      : stat(path, &st) == 0;

		if (is_file && S_ISREG(st.st_mode))
			progress.total += (uint64_t)st.st_size;
	}
	for (size_t i = 0; r == 0 && i < analyze->file_count; i++) {
		char text[1024];

		analyze->analysis->file = (uint32_t)i;
		r = analyze_read(analyze->analysis, &analyze->files[i], &progress);
		if (r < 0) {
			text_escape(analyze->files[i].path, text, sizeof(text));
			(void)output_fail("analyze", text, r); /* the caller ends with that code */
		}
	}
	progress_end(&progress);
	return r;
}

/* Why the reader cannot judge a file; NULL if it can. */
static const char *analyze_doubt(const struct analyze_file *file, bool asks_for_leaks)
{
	if (file->counts.bytes > 0 && !file->counts.is_known)
		return "nothing in it is of a known log";
	/*
	 * An empty log cannot be told from one that was never written: no leak check passes on
	 * that.
	 */
	if (file->counts.bytes == 0 && asks_for_leaks)
		return "it is empty: what was left cannot be told";
	return asks_for_leaks ? analyze_no_frees(file) : NULL;
}

static bool analyze_is_doubted(const struct analyze *analyze, bool asks_for_leaks)
{
	for (size_t i = 0; i < analyze->file_count; i++) {
		if (analyze_doubt(&analyze->files[i], asks_for_leaks))
			return true;
	}
	return false;
}

/* Reports each file that cannot be judged. Return: exit code. */
static int analyze_complain(const struct analyze *analyze, bool asks_for_leaks)
{
	int code = COMMAND_OK;

	for (size_t i = 0; i < analyze->file_count; i++) {
		const struct analyze_file *file = &analyze->files[i];
		const char *doubt = analyze_doubt(file, asks_for_leaks);

		if (!doubt)
			continue;
		fputs("ttmem analyze: ", stderr);
		text_put(stderr, analyze_path(file));
		fprintf(stderr, ": %s\n", doubt);
		code = COMMAND_FAILED;
	}
	return code;
}

static void analyze_add_sum(struct analyze *analyze, const struct log_analysis_sum *sum)
{
	struct log_analysis_sum *totals = &analyze->totals;

	totals->allocs += sum->allocs;
	totals->frees += sum->frees;
	totals->reuses += sum->reuses;
	totals->leaks += sum->leaks;
	totals->leaked_bytes += sum->leaked_bytes;
	totals->early_frees += sum->early_frees;
	for (size_t i = 0; i < LOG_ANALYSIS_KINDS; i++)
		totals->found[i] += sum->found[i];
	if (sum->leaks == 0 && (sum->type == TYPES_CB || sum->type == TYPES_KERNEL)) {
		analyze->unnamed += sum->live;
		analyze->unnamed_bytes += sum->live_bytes;
	}
}

static void analyze_add(struct analyze *analyze)
{
	const struct log_analysis *analysis = analyze->analysis;

	for (size_t i = 0; i < analyze->file_count; i++) {
		const struct log_reader_counts *counts = &analyze->files[i].counts;

		analyze->counts.events += counts->events;
		analyze->counts.damaged += counts->damaged;
		analyze->counts.blind += counts->blind;
		analyze->counts.lacks_frees |= counts->lacks_frees;
	}
	for (size_t i = 0; i < ARRAY_SIZE(analysis->devices); i++) {
		for (uint32_t t = 0; analysis->devices[i] && t < LOG_ANALYSIS_TYPES; t++)
			analyze_add_sum(analyze, &analysis->devices[i]->sums[t]);
	}
	for (size_t i = 0; i < analysis->leak_count; i++) {
		if (analysis->leaks[i].how != LOG_ANALYSIS_PROCESS_ENDED)
			continue;
		analyze->ended++;
		analyze->ended_bytes += analysis->leaks[i].size;
	}
}

static int analyze_compare_addresses(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return bits_compare(*a, *b);
}

/* S1's list: each leaked address once, in ascending order. */
static void analyze_addresses(const struct analyze *analyze)
{
	const struct log_analysis *analysis = analyze->analysis;
	CLEANUP_FREE uint64_t *list = must_alloc(analysis->leak_count + 1, sizeof(*list));
	size_t count = 0;

	for (; count < analysis->leak_count; count++)
		list[count] = analysis->leaks[count].address;
	qsort(list, count, sizeof(*list), analyze_compare_addresses);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || list[i] != list[i - 1])
			printf("0x%" PRIx64 "\n", list[i]);
	}
}

/* Drops what is of other types, apart from the rows of processes. */
static void analyze_keep_type(struct analyze *analyze)
{
	struct log_analysis *analysis = analyze->analysis;
	uint32_t type = analyze->type;
	size_t leaks = 0, findings = 0, sites = 0;

	for (size_t i = 0; i < analysis->leak_count; i++) {
		if (analysis->leaks[i].type == type)
			analysis->leaks[leaks++] = analysis->leaks[i];
	}
	for (size_t i = 0; i < analysis->finding_count; i++) {
		if (analysis->findings[i].type == type)
			analysis->findings[findings++] = analysis->findings[i];
	}
	for (size_t i = 0; i < analysis->site_count; i++) {
		struct log_analysis_site *site = analysis->sites[i];

		if (site->sum.type == type) {
			analysis->sites[i] = analysis->sites[sites];
			analysis->sites[sites++] = site;
		}
	}
	analysis->leak_count = leaks;
	analysis->finding_count = findings;
	analyze->site_count = sites;
	for (size_t i = 0; i < ARRAY_SIZE(analysis->devices); i++) {
		for (uint32_t t = 0; analysis->devices[i] && t < LOG_ANALYSIS_TYPES; t++) {
			if (t != type)
				analysis->devices[i]->sums[t] =
					(struct log_analysis_sum){.type = t};
		}
	}
}

static void analyze_report(struct analyze *analyze, bool json, bool addresses)
{
	analyze->site_count = analyze->analysis->site_count;
	if (analyze->has_type)
		analyze_keep_type(analyze);
	analyze_add(analyze);
	if (addresses) {
		analyze_addresses(analyze);
		return;
	}
	analyze_names(analyze->analysis);
	if (json)
		analyze_json(analyze, clock_ns(CLOCK_REALTIME));
	else
		analyze_print(analyze);
}

static void analyze_files(struct analyze *analyze, char **paths, int count)
{
	analyze->file_count = (size_t)count;
	analyze->files = must_alloc(analyze->file_count, sizeof(*analyze->files));
	for (int i = 0; i < count; i++)
		analyze->files[i].path = paths[i];
}

/* The options, apart from the files. */
struct analyze_wish {
	bool json, addresses, fail_on_leak;
	struct query query;
};

static int analyze_go(struct analyze *analyze, const struct analyze_wish *wish)
{
	const struct filter *filter = &wish->query.filter;
	bool asks_for_leaks = wish->fail_on_leak || wish->addresses;

	analyze->analysis->has_only_device = filter->device_count > 0;
	analyze->analysis->only_device = (uint32_t)filter->devices[0].value;
	analyze->has_type = filter->has_type;
	analyze->type = filter->type;
	if (analyze_read_files(analyze) < 0)
		return COMMAND_FAILED; /* already reported */
	log_analysis_finish(analyze->analysis);
	analyze->is_doubted = analyze_is_doubted(analyze, asks_for_leaks);
	analyze_report(analyze, wish->json, wish->addresses);
	return analyze_complain(analyze, asks_for_leaks);
}

static int analyze_run(int argc, char **argv)
{
	struct analyze analyze = {.top = 0};
	struct analyze_wish wish = {.json = false};
	const struct options_item items[] = {
		{0, "json", NULL, "as JSON", &wish.json, NULL},
		{0, "leaked-addresses", NULL, "only the addresses that were left, one in a line",
		 &wish.addresses, NULL},
		{0, "device", "DEVICE", "only this device"},
		{0, "type", "TYPE", "only this type of memory"},
		{0, "top", "N", "rows of each list (10; as JSON: all)", &analyze.top, options_u32},
		{0, "fail-on-leak", NULL, "exit with 86 if something was left", &wish.fail_on_leak,
		 NULL},
	};
	const struct options options = {
		.command = "analyze",
		.shows_sizes = true,
		.arguments = "FILE...",
		.summary =
			"Reads logs of the old allocation server, of TT_BUFFER_DEBUG_LOG,\n"
			"TT_ALLOC_TRACKING_DETAILED and TT_ALLOC_STACK_TRACE, and says what was\n"
			"left, freed twice or unknown, and why. \"-\" is standard input.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &wish.query,
		.honours = QUERY_DEVICE | QUERY_TYPE,
	};
	int count, code, r = options_parse(&options, argc, argv, &count);
	bool was_left;

	if (r != 0)
		return options_exit(r);
	if (count == 0)
		r = options_mistake("analyze", "expects one or more log files, got none");
	else if (wish.json && wish.addresses)
		r = options_mistake("analyze", "--json or --leaked-addresses, not both");
	else if (wish.query.filter.device_count > 1 ||
		 (wish.query.filter.device_count > 0 && wish.query.filter.devices[0].by_id))
		r = options_mistake("analyze", "--device expects one device number, as in the log");
	if (r != 0)
		return options_exit(r);
	if (!analyze.top)
		analyze.top = wish.json ? UINT32_MAX : ANALYZE_TOP;
	output_start();
	analyze_files(&analyze, argv, count);
	analyze.analysis = log_analysis_new(argv);
	code = analyze_go(&analyze, &wish);
	was_left = analyze.totals.leaks + analyze.analysis->unlisted > 0;
	log_analysis_free(analyze.analysis);
	free(analyze.files);
	r = output_finish();
	/* A leak in one file is a leak, whatever is wrong with the others. */
	if (r == COMMAND_OK && wish.fail_on_leak && was_left)
		return ANALYZE_LEAK;
	return code == COMMAND_OK ? r : code;
}

const struct command analyze_command = {
	.name = "analyze",
	.summary = "what logs of the old system tell: leaks, double frees",
	.run = analyze_run,
};
