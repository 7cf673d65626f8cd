/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem report: a recording as one page that needs nothing else to be read. */

#include "cli/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/report/report-page.h"
#include "cli/report/report-serve.h"

#define REPORT_SUFFIX ".html"

struct report_options {
	const char *file;
	const char *output; /* NULL = the recording's name with .html; "-" = standard output */
	bool json;
	bool serve;
	struct report_serve served;
};

static int report_parse(struct report_options *options, int argc, char **argv)
{
	const struct options_item items[] = {
		{'o', "output", "FILE",
		 "where to write the page; \"-\" = standard output (RECORDING.html, in this "
		 "folder)",
		 &options->output, options_text},
		{0, "json", NULL, "only the data of the page, to standard output", &options->json,
		 NULL},
		{0, "serve", NULL,
		 "show the recording in the dashboard instead, to your own browser, until Ctrl-C",
		 &options->serve, NULL},
		{0, "at", "TIME",
		 "--serve: the moment to begin with, as of --from elsewhere (peak)",
		 &options->served.at, options_text},
		{0, "print", NULL, "--serve: only print the link", &options->served.print, NULL},
	};
	const struct options table = {
		.command = "report",
		.arguments = "RECORDING",
		.summary = "A recording as one HTML page: memory over time, the peak, leaks, "
			   "temporaries, growth,\nfragmentation. The page needs no network and "
			   "has no source text.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int count, r = options_parse(&table, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 1)
		return options_count(&table, "one recording", count);
	options->file = options->served.file = argv[0];
	if (options->serve && (options->json || options->output))
		return options_mistake("report", "--serve writes no file: no --output or --json");
	if (!options->serve && (options->served.at || options->served.print))
		return options_mistake("report", "--at and --print need --serve");
	if (!options->serve && !options->json && !report_page.head)
		return options_mistake("report", "this ttmem was built without npm, and so without "
						 "the page; --json has its data");
	return 0;
}

/*
 * In a page, "</script>" in a name would end the data, and "<!--" would change how it is read. "<" occurs
 * in JSON only within strings, where this means the same.
 */
static void report_write_data(FILE *out, const char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		const char *mark = memchr(text, '<', (size_t)(end - text));
		size_t length = (size_t)((mark ? mark : end) - text);

		(void)fwrite(text, 1, length, out); /* the stream remembers the error */
		text += length;
		if (mark) {
			fputs("\\u003c", out);
			text++;
		}
	}
}

static void report_write_page(FILE *out, const char *text, size_t size)
{
	(void)fwrite(report_page.head, 1, report_page.head_size, out);
	report_write_data(out, text, size);
	(void)fwrite(report_page.tail, 1, report_page.tail_size, out);
}

/* "run.ttrec" becomes "run.html", here, wherever the recording is. */
static char *report_name(const char *file)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	const char *dot = strrchr(name, '.');
	int length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
	char *text;

	if (asprintf(&text, "%.*s" REPORT_SUFFIX, length, name) < 0)
		must_end();
	return text;
}

static int report_write_file(const char *path, const char *text, size_t size)
{
	CLEANUP_CLOSE int fd = user_file_open(path, O_TRUNC, 0666);
	CLEANUP_FCLOSE FILE *out = NULL;
	char number[TEXT_NUMBER_SIZE], shown[512];
	bool failed;
	int r;

	if (fd < 0)
		r = fd;
	else
		r = (out = fdopen(fd, "we")) ? 0 : -errno;
	if (r == 0) {
		(void)cleanup_steal_fd(&fd);
		report_write_page(out, text, size);
		failed = fflush(out) != 0 || ferror(out);
		r = failed ? -(errno ? errno : EIO) : 0;
	}
	text_escape(path, shown, sizeof(shown));
	if (r < 0) {
		fprintf(stderr, "ttmem report: cannot write %s: %s\n", shown, user_file_error(r));
		return COMMAND_FAILED;
	}
	printf("%s: %s\n", shown,
	       text_size(report_page.head_size + size + report_page.tail_size, number));
	return output_finish();
}

static int report_write(const struct report_options *options, const char *text, size_t size)
{
	CLEANUP_FREE char *name = options->output ? NULL : report_name(options->file);
	const char *path = options->output ? options->output : name;

	if (options->json) {
		(void)fwrite(text, 1, size, stdout);
		return output_finish();
	}

	if (strcmp(path, "-") == 0) {
		report_write_page(stdout, text, size);
		return output_finish();
	}
	return report_write_file(path, text, size);
}

static int report_run(int argc, char **argv)
{
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	CLEANUP_FREE char *text = NULL;
	CLEANUP_FCLOSE FILE *memory = NULL;
	struct report_options options = {0};
	char why[RECORDING_WHY_SIZE];
	size_t size = 0;
	int r = report_parse(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	if (options.serve)
		return report_serve(&options.served);
	r = recording_open(&recording, options.file, why);
	if (r < 0) {
		fprintf(stderr, "ttmem report: %s\n", why);
		return COMMAND_FAILED;
	}
	memory = must_have(open_memstream(&text, &size));
	r = report_document(recording, memory);
	if (r < 0)
		return output_fail("report", "cannot read the recording", r);
	if (fflush(memory) != 0)
		must_end();
	return report_write(&options, text, size);
}

const struct command report_command = {
	.name = "report",
	.summary = "a recording as one page, to look at and to send",
	.run = report_run,
};
