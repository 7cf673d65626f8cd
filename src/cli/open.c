/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem open: a link to the dashboard that signs a browser in with the rights of the caller. The
 * daemon makes the code in it for whom the kernel says is asking; web/server/sessions.h tells why it
 * does no harm that other users can see a command line with it.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/document-processes.h"
#include "answers/document.h"
#include "answers/session.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/browser.h"
#include "cli/common/command.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "source/daemon-client/daemon-client.h"

#define OPEN_CODE_LENGTH 64u
#define OPEN_LINK_SIZE 512
#define OPEN_PLACE_SIZE 64

struct open_wish {
	bool print;
	const char *user;  /* whose browser; NULL = ours, or of who has called sudo */
	const char *place; /* PID or DEV; NULL = the overview */
};

static int open_query(const struct open_wish *wish, struct query *ret_query)
{
	const char *user = wish->user ? wish->user : browser_default_user();

	if (!user)
		return 0;
	ret_query->given = QUERY_BROWSER;
	return browser_find_user("open", user, &ret_query->browser);
}

/* The page of a process or a device, as the dashboard names it after "#/". False: there is none. */
static bool open_find_place(const json_t *smi, const char *wanted, char ret_place[OPEN_PLACE_SIZE])
{
	struct snapshot_device device;
	struct process_id process;
	uint64_t number = 0;
	bool is_number = text_parse_u64(wanted, &number) == 0;
	char uid[24];

	for (size_t at = 0; document_next(smi, "processes", &at, document_process_id, &process,
					  sizeof(process));) {
		if (is_number && process.pid == number) {
			(void)snprintf(ret_place, OPEN_PLACE_SIZE, "/process/%" PRIu64,
				       number); /* fits */
			return true;
		}
	}
	for (size_t at = 0;
	     document_next(smi, "devices", &at, document_device, &device, sizeof(device));) {
		(void)snprintf(uid, sizeof(uid), "0x%" PRIx64, device.unique_id); /* fits */
		if (!(device.unique_id && strcmp(uid, wanted) == 0) &&
		    !(is_number && device.device == number))
			continue;
		if (!device.unique_id)
			(void)snprintf(uid, sizeof(uid), "%" PRIu64, number);  /* fits */
		(void)snprintf(ret_place, OPEN_PLACE_SIZE, "/device/%s", uid); /* fits */
		return true;
	}
	return false;
}

/* Returns 0 or an exit code, after the reason was told. */
static int open_choose(struct daemon_client *remote, const char *wanted, char *ret_place)
{
	CLEANUP(document_unload) json_t *smi = NULL;
	int r;

	*ret_place = '\0';
	if (!wanted)
		return 0;
	r = daemon_pages_ask(remote, ANSWERS_SMI, NULL, &smi);
	if (r != 0)
		return daemon_pages_fail("open", remote, r);
	if (open_find_place(smi, wanted, ret_place))
		return 0;
	fputs("ttmem open: there is neither a process nor a device \"", stderr);
	text_put(stderr, wanted);
	fputs("\"; see \"ttmem smi\"\n", stderr);
	return COMMAND_FAILED;
}

/* It goes to a terminal and to another program: only what a daemon of ours would say. */
static bool open_is_link(const char *url, const char *code)
{
	return url && code && strncmp(url, "http://", 7) == 0 &&
	       strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789.:[]/") == strlen(url) &&
	       strlen(url) < OPEN_LINK_SIZE / 2 && strlen(code) == OPEN_CODE_LENGTH &&
	       strspn(code, "0123456789abcdef") == OPEN_CODE_LENGTH;
}

static int open_answer(const struct open_wish *wish, const json_t *answer, const char *place)
{
	char link[OPEN_LINK_SIZE];
	struct open_row row;

	(void)fields_take(answer, open_document.members, &row, NULL); /* needs no memory */
	if (!open_is_link(row.url, row.code)) {
		fputs("ttmem open: the answer of ttmemd makes no sense\n", stderr);
		return COMMAND_FAILED;
	}
	(void)snprintf(link, sizeof(link), "%s#/open/%s%s", row.url, row.code, place); /* fits */
	puts(link);
	if (fflush(stdout) != 0)
		return output_finish();
	if (isatty(STDERR_FILENO)) {
		fprintf(stderr, "It works once, within %" PRIu64 " s, and signs the browser in as ",
			row.seconds);
		text_put(stderr, row.session.user ? row.session.user : "?");
		fputs(".\n", stderr);
	}
	if (!wish->print)
		browser_open("open", link, row.browser_id);
	return output_finish();
}

static int open_ask(const struct open_wish *wish, const struct query *query)
{
	CLEANUP(daemon_client_cleanup) struct daemon_client *remote = NULL;
	CLEANUP(document_unload) json_t *answer = NULL;
	char place[OPEN_PLACE_SIZE];
	int r = daemon_client_new(&remote);

	if (r < 0)
		return output_fail("open", "cannot ask ttmemd", r);
	r = open_choose(remote, wish->place, place);
	if (r != 0)
		return r;
	r = daemon_pages_ask(remote, ANSWERS_OPEN, query, &answer);
	if (r != 0)
		return daemon_pages_fail("open", remote, r);
	return open_answer(wish, answer, place);
}

static int open_run(int argc, char **argv)
{
	struct open_wish wish = {.print = false};
	const struct options_item items[] = {
		{0, "print", NULL, "only print the link", &wish.print, NULL},
		{0, "user", "USER", "root: for the browser of USER", &wish.user, options_text},
	};
	const struct options options = {
		.command = "open",
		.arguments = "[PID|DEV]",
		.summary = "Opens the dashboard, signed in as you.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	struct query query = {0};
	int count = 0;
	int r = options_parse(&options, argc, argv, &count);

	if (r == 0 && count > 1)
		r = options_count(&options, "one process or device", count);
	if (r != 0)
		return options_exit(r);
	wish.place = count ? argv[0] : NULL;
	if (open_query(&wish, &query) < 0)
		return COMMAND_USAGE;
	output_start();
	return open_ask(&wish, &query);
}

const struct command open_command = {
	.name = "open",
	.summary = "the dashboard in a browser, with what you may see",
	.run = open_run,
};
