/* SPDX-License-Identifier: Apache-2.0 */

/* The CSV of "ttmem leaks": raw numbers, empty if unknown. */

#include <stdio.h>

#include "cli/leaks/leaks.h"
#include "model/types.h"

#define LEAKS_CSV_PROCESS "pid,user,comm,ended_ns,how,exit_code,signal,"
#define LEAKS_CSV_SUMMARY LEAKS_CSV_PROCESS "bytes,buffers"
#define LEAKS_CSV_SITES \
	LEAKS_CSV_PROCESS "type,bytes,buffers,oldest_ns,name,phase,function,file,line"

/* A process, or one of its call sites. */
struct leaks_line {
	const struct ended_row *ended;
	const struct ended_exit *exit;
	const struct site_row *site;
	const struct frame *place;
	uint64_t bytes, buffers, oldest_ns;
	bool is_site, is_totals_only;
};

#define ROW struct leaks_line
#define ENDED(...) FIELD_VIA(ended, struct ended_row, __VA_ARGS__)
#define SITE(...) FIELD_VIA(site, struct site_row, __VA_ARGS__)
#define PLACE(...) FIELD_VIA(place, struct frame, __VA_ARGS__, .absent = FIELD_NULL)

static const struct field leaks_line_fields[] = {
	ENDED("pid", SHORT, pid),
	ENDED("user", TEXT, user),
	ENDED("comm", TEXT, comm),
	ENDED("ended_ns", TIME, ended_ns),
	ENDED("how", TEXT, how),
	FIELD_VIA(exit, struct ended_exit, "exit_code", SHORT, code,
		  .known = 1 + offsetof(struct ended_exit, has_code)),
	FIELD_VIA(exit, struct ended_exit, "signal", SHORT, signal, .absent = FIELD_NULL),
	SITE("type", NAME, type, .names = types_name),
	FIELD("bytes", BYTES, bytes),
	FIELD_UNLESS(is_totals_only, "buffers", NUMBER, buffers),
	FIELD_IF(is_site, "oldest_ns", TIME, oldest_ns),
	SITE("name", TEXT, names.name),
	SITE("phase", TEXT, phase),
	PLACE("function", TEXT, function),
	PLACE("file", TEXT, file),
	PLACE("line", SHORT, line),
	FIELD_END,
};

void leaks_csv_begin(bool summary)
{
	puts(summary ? LEAKS_CSV_SUMMARY : LEAKS_CSV_SITES);
}

void leaks_csv_rows(const struct leaks_row *leak, bool summary)
{
	static const struct ended_exit no_exit;
	static const struct site_row no_site = {.type = UINT32_MAX};
	static const struct frame no_place;
	bool is_process = summary || leak->site_count == 0;
	struct fields_view view;

	fields_choose(&view, leaks_line_fields, summary ? LEAKS_CSV_SUMMARY : LEAKS_CSV_SITES);
	for (size_t i = 0; i < (is_process ? 1 : leak->site_count); i++) {
		const struct site_row *site = is_process ? &no_site : &leak->sites[i];
		const struct leaks_line line = {
			.ended = &leak->ended,
			.exit = leak->ended.exit ? leak->ended.exit : &no_exit,
			.site = site,
			.place = site->stack.site ? &site->stack.site->frame : &no_place,
			.bytes = is_process ? leak->ended.bytes : site->bytes,
			.buffers = is_process ? leak->ended.buffers : site->buffers,
			.oldest_ns = site->oldest_ns,
			.is_site = !is_process,
			/* The buffers of a process that only a region told of are not known. */
			.is_totals_only = is_process && leak->is_totals_only,
		};

		fields_csv_row(stdout, &view, &line);
	}
}
