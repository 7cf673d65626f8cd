/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The page and its documents are in ttmemd, so a process of that program serves them: see
 * daemon/playback/playback-process.h for what passes between it and us. It ends with us.
 */

#include "cli/report/report-serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/child.h"
#include "cli/common/browser.h"
#include "cli/common/command.h"
#include "cli/common/daemon-program.h"
#include "cli/common/output.h"

#define REPORT_SERVE_LINK_SIZE 512
#define REPORT_SERVE_END_MS 5000 /* until it has ended */

struct report_server {
	int fd; /* links come from here */
	uint32_t browser;
	struct child child;
};

static void report_serve_stop(struct report_server *server)
{
	if (server->fd >= 0)
		close(server->fd);
	if (!server->child.pid)
		return;
	if (!child_wait(&server->child, REPORT_SERVE_END_MS))
		child_kill(&server->child);
}

/* Returns 0 or an exit code, after the reason was told. */
static int report_serve_start(struct report_server *server, const struct report_serve *wish)
{
	const char *user = browser_default_user();
	char program[DAEMON_PROGRAM_SIZE], number[16];
	const char *const arguments[] = {
		"ttmemd", "--playback", wish->file, wish->at ? wish->at : "", number, NULL};
	struct child_setup setup = {
		.program = program,
		.arguments = arguments,
		.input = -1,
		.keeps_errors = true,
	};
	int pair[2], r;

	server->browser = geteuid();
	if (user && browser_find_user("report", user, &server->browser) < 0)
		return COMMAND_USAGE;
	(void)snprintf(number, sizeof(number), "%" PRIu32, server->browser); /* fits */
	if (!daemon_program_find(program)) {
		fputs("ttmem report: there is no ttmemd beside this program, which has the page\n",
		      stderr);
		return COMMAND_FAILED;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return output_fail("report", "cannot serve the page", -errno);
	server->fd = pair[0];
	setup.extra = pair[1];
	r = child_start(&server->child, NULL, &setup);
	close(pair[1]);
	return r < 0 ? output_fail("report", "cannot start ttmemd", r) : 0;
}

/* A whole line; it is from our own child. Otherwise that has ended, and has told why. */
static int report_serve_read(const struct report_server *server, char *ret_link, size_t size)
{
	size_t length = 0;

	while (length + 1 < size) {
		ssize_t got = read(server->fd, ret_link + length, 1);

		if (got < 0 && errno == EINTR && !output_is_stopped())
			continue;
		if (got <= 0)
			return -EPIPE;
		if (ret_link[length] == '\n')
			break;
		length++;
	}
	ret_link[length] = '\0';
	return 0;
}

static int report_serve_link(const struct report_server *server, const struct report_serve *wish)
{
	char link[REPORT_SERVE_LINK_SIZE];

	/* If it has ended, there is nothing to read either. */
	(void)send(server->fd, "\n", 1, MSG_NOSIGNAL);
	if (report_serve_read(server, link, sizeof(link)) < 0)
		return output_is_stopped() ? 0 : COMMAND_FAILED;
	puts(link);
	if (fflush(stdout) != 0)
		return output_finish();
	if (isatty(STDERR_FILENO))
		fputs("It works once, within a minute, and only in your own browser. Enter: "
		      "another "
		      "link. Ctrl-C: end.\n",
		      stderr);
	if (!wish->print)
		browser_open("report", link, server->browser);
	return 0;
}

/* What the user has typed. False: nothing more will come. */
static bool report_serve_typed(void)
{
	char text[256];
	ssize_t got = read(STDIN_FILENO, text, sizeof(text));

	return got > 0 || (got < 0 && errno == EINTR);
}

static int report_serve_run(const struct report_server *server, const struct report_serve *wish)
{
	struct pollfd fds[] = {
		{.fd = server->fd, .events = POLLIN},
		{.fd = isatty(STDIN_FILENO) ? STDIN_FILENO : -1, .events = POLLIN},
	};
	sigset_t stops, none;
	int r = report_serve_link(server, wish);

	/* A signal that comes before the wait must not be missed: it ends the wait. */
	sigemptyset(&none);
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &stops, NULL); /* cannot fail for these */
	while (r == 0 && !output_is_stopped()) {
		if (ppoll(fds, 2, NULL, &none) < 0)
			continue;
		if (fds[0].revents)
			return COMMAND_FAILED; /* the server says nothing by itself: it has ended */
		if (!fds[1].revents)
			continue;
		if (report_serve_typed())
			r = report_serve_link(server, wish);
		else
			fds[1].fd = -1;
	}
	return r;
}

int report_serve(const struct report_serve *wish)
{
	CLEANUP(report_serve_stop) struct report_server server = {.fd = -1, .child = CHILD_NULL};
	int r;

	output_catch_stop();
	r = report_serve_start(&server, wish);
	return r == 0 ? report_serve_run(&server, wish) : r;
}
