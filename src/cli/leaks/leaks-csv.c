/* SPDX-License-Identifier: Apache-2.0 */

/* The CSV of "ttmem leaks": raw numbers, empty if unknown. */

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "cli/leaks/leaks.h"

static void leaks_csv_text(const json_t *row, const char *key)
{
	const char *text = daemon_pages_text(row, key);

	text_put_csv(stdout, text ? text : "");
}

static void leaks_csv_number(const json_t *row, const char *key)
{
	if (json_is_number(json_object_get(row, key)))
		printf("%" PRIu64, daemon_pages_number(row, key));
}

void leaks_csv_begin(bool summary)
{
	fputs("pid,user,comm,ended_ns,how,exit_code,signal,", stdout);
	puts(summary ? "bytes,buffers"
		     : "type,bytes,buffers,oldest_ns,name,phase,function,file,line");
}

static void leaks_csv_process(const json_t *process)
{
	const json_t *exit = json_object_get(process, "exit");

	printf("%" PRIu64 ",", daemon_pages_number(process, "pid"));
	leaks_csv_text(process, "user");
	putchar(',');
	leaks_csv_text(process, "comm");
	printf(",%" PRIu64 ",", daemon_pages_number(process, "ended_ns"));
	leaks_csv_text(process, "how");
	putchar(',');
	leaks_csv_number(exit, "code");
	putchar(',');
	leaks_csv_number(exit, "signal");
	putchar(',');
}

static void leaks_csv_site(const json_t *process, const json_t *site)
{
	const json_t *place = json_object_get(site, "site");

	leaks_csv_process(process);
	leaks_csv_text(site, "type");
	printf(",%" PRIu64 ",%" PRIu64 ",", daemon_pages_number(site, "bytes"),
	       daemon_pages_number(site, "buffers"));
	leaks_csv_number(site, "oldest_ns");
	putchar(',');
	leaks_csv_text(site, "name");
	putchar(',');
	leaks_csv_text(site, "phase");
	putchar(',');
	leaks_csv_text(place, "function");
	putchar(',');
	leaks_csv_text(place, "file");
	putchar(',');
	leaks_csv_number(place, "line");
	putchar('\n');
}

void leaks_csv_rows(const json_t *process, bool summary)
{
	const json_t *sites = json_object_get(process, "sites");
	size_t count = json_array_size(sites);

	if (summary || count == 0) {
		leaks_csv_process(process);
		printf("%s%" PRIu64 ",", summary ? "" : ",", daemon_pages_number(process, "bytes"));
		/* The buffers of a process that only a region told of are not known. */
		if (!json_is_false(json_object_get(process, "buffers_known")))
			printf("%" PRIu64, daemon_pages_number(process, "buffer_count"));
		puts(summary ? "" : ",,,,,,");
		return;
	}
	for (size_t i = 0; i < count; i++)
		leaks_csv_site(process, json_array_get(sites, i));
}
