/* SPDX-License-Identifier: Apache-2.0 */

/* Asking a daemon that a child plays, its log, and the end of children. */

#include "cli/selftest/selftest-daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

static pid_t server;

/* Answers one request with @answer. Return: a daemon at its port. */
static struct selftest_daemon serve(const char *answer)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[1024];
	ssize_t n;
	int fd;

	assert(listening >= 0 && bind(listening, (struct sockaddr *)&address, size) == 0);
	assert(listen(listening, 1) == 0);
	assert(getsockname(listening, (struct sockaddr *)&address, &size) == 0);
	server = fork();
	assert(server >= 0);
	if (server == 0) {
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		n = recv(fd, request, sizeof(request) - 1, 0);
		request[n > 0 ? n : 0] = '\0';
		if (strncmp(request, "GET /metrics HTTP/1.0\r\n", 23) == 0 &&
		    send(fd, answer, strlen(answer), MSG_NOSIGNAL) >= 0)
			_exit(0);
		_exit(1);
	}
	assert(close(listening) == 0);
	return (struct selftest_daemon){.port = ntohs(address.sin_port)};
}

static void served(void)
{
	int status;

	assert(waitpid(server, &status, 0) == server && status == 0);
}

UNIT(the_body_of_an_answer_is_returned)
{
	struct selftest_daemon daemon = serve("HTTP/1.0 200 OK\r\nA: b\r\n\r\none\r\n\r\ntwo");
	char *body = selftest_daemon_get(&daemon, "/metrics");

	assert(body && strcmp(body, "one\r\n\r\ntwo") == 0);
	free(body);
	served();
	daemon = serve("HTTP/1.0 200 OK\r\n\r\n");
	body = selftest_daemon_get(&daemon, "/metrics");
	assert(body && strcmp(body, "") == 0);
	free(body);
	served();
}

UNIT(an_answer_without_a_body_is_a_failure)
{
	struct selftest_daemon daemon = serve("HTTP/1.0 200 OK\r\nA: b\r\n");

	assert(!selftest_daemon_get(&daemon, "/metrics"));
	served();
	/* Nobody listens there any more. */
	assert(!selftest_daemon_get(&daemon, "/metrics"));
}

UNIT(the_whole_log_is_read)
{
	struct selftest_daemon daemon = {.pid = 0};
	FILE *file;
	char *log;

	snprintf(daemon.log, sizeof(daemon.log), "%s", unit_path("log"));
	assert(!selftest_daemon_log(&daemon));
	file = fopen(daemon.log, "we");
	assert(file);
	for (int i = 0; i < 10000; i++)
		assert(fputc('a' + i % 26, file) != EOF);
	assert(fclose(file) == 0);
	log = selftest_daemon_log(&daemon);
	assert(log && strlen(log) == 10000 && log[9999] == 'a' + 9999 % 26 && log[4096] == 'o');
	free(log);
}

UNIT(stopping_removes_the_folder_and_the_process)
{
	static const char *const words[] = {"sleep", "1000", NULL};
	struct selftest_daemon daemon = {.pid = 0};
	struct stat file;
	int fd;

	selftest_daemon_stop(&daemon);
	snprintf(daemon.folder, sizeof(daemon.folder), "%s", unit_path("folder"));
	assert(mkdir(daemon.folder, 0700) == 0 && chdir(daemon.folder) == 0);
	assert(mkdir("below", 0700) == 0);
	fd = open("below/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && close(fd) == 0);
	daemon.pid = selftest_spawn(words);
	assert(daemon.pid > 0);
	selftest_daemon_stop(&daemon);
	assert(daemon.pid == 0 && !daemon.folder[0]);
	assert(stat(unit_path("folder"), &file) < 0 && errno == ENOENT);
	assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

UNIT(a_program_that_is_not_there_ends_with_127)
{
	static const char *const words[] = {"/does/not/exist", NULL};
	int status;
	pid_t pid = selftest_spawn(words);

	assert(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert(WIFEXITED(status) && WEXITSTATUS(status) == 127);
	selftest_end(0); /* there is none */
}
