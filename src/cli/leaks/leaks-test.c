/* SPDX-License-Identifier: Apache-2.0 */

/* The text that "ttmem leaks" prints for the answers of a fake daemon. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "cli/common/command.h"
#include "source/daemon-client/testing/daemon-client-testing.h"

static unsigned int sites; /* of the process that is shown */

static void serve(int fd, const void *packet, size_t length)
{
	char body[4096], text[4200];
	size_t used =
		(size_t)snprintf(body, sizeof(body), "{\"processes\":[{\"pid\":7,\"sites\":[");

	for (unsigned int i = 0; i < sites; i++)
		used += (size_t)snprintf(body + used, sizeof(body) - used,
					 "%s{\"type\":\"DRAM\",\"bytes\":%u,\"buffers\":1}",
					 i ? "," : "", 100 + i);
	(void)snprintf(body + used, sizeof(body) - used, "]}],\"next\":null,\"notes\":[]}");
	(void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		       strlen(body), body);
	daemon_client_testing_send(fd, text);
}

/* What is printed for so many call sites. */
static const char *print(unsigned int count)
{
	static char text[8192];
	char name[] = "leaks", *argv[] = {name, NULL};
	int terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	int file = open(unit_path("printed"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct daemon_client_testing server;
	ssize_t got;

	sites = count;
	server = daemon_client_testing_here(serve);
	assert(fflush(stdout) == 0 && dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
	assert(leaks_command.run(1, argv) == 0 && fflush(stdout) == 0);
	assert(dup2(terminal, STDOUT_FILENO) == STDOUT_FILENO);
	daemon_client_testing_stop(&server);
	got = pread(file, text, sizeof(text) - 1, 0);
	assert(got > 0 && close(file) == 0 && close(terminal) == 0);
	text[got] = '\0';
	return text;
}

static unsigned int count(const char *text, const char *word)
{
	unsigned int found = 0;

	while ((text = strstr(text, word))) {
		found++;
		text++;
	}
	return found;
}

UNIT(every_call_site_has_a_line)
{
	const char *text = print(2);

	assert(count(text, " in 1 buffer of DRAM") == 2 && count(text, " in ") == 2);
	assert(!strstr(text, "more call sites"));
}

UNIT(twenty_call_sites_are_shown_and_the_rest_counted)
{
	const char *text = print(20);

	assert(count(text, " of DRAM") == 20 && !strstr(text, "more call sites"));
	text = print(22);
	assert(count(text, " of DRAM") == 20 && strstr(text, "... and 2 more call sites"));
}
