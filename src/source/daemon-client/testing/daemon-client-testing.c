/* SPDX-License-Identifier: Apache-2.0 */

/* Serves one connection after the other and passes each packet to the given function. */

#include "source/daemon-client/testing/daemon-client-testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "wire/native.h"

void daemon_client_testing_send(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL); /* the peer may have gone */
}

void daemon_client_testing_reply(int fd, uint32_t kind, int status, const void *payload,
				 size_t length, bool end)
{
	char packet[NATIVE_PACKET_MAX];
	struct native_reply reply;

	native_reply_init(&reply, kind);
	reply.flags = end ? NATIVE_END : 0;
	reply.status = status;
	reply.length = (uint32_t)length;
	memcpy(packet, &reply, sizeof(reply));
	memcpy(packet + sizeof(reply), payload, length);
	(void)!send(fd, packet, sizeof(reply) + length, MSG_NOSIGNAL); /* as above */
}

static void testing_run(const char *path, uid_t uid, daemon_client_testing_fn *serve, int ready)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char packet[NATIVE_REQUEST_MAX];

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert(bind(listening, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(uid == getuid() || setresuid(uid, uid, uid) == 0);
	assert(listen(listening, 16) == 0);
	assert(write(ready, "", 1) == 1);
	for (;;) {
		int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		ssize_t n;

		while ((n = recv(fd, packet, sizeof(packet), 0)) > 0)
			serve(fd, packet, (size_t)n);
		close(fd);
	}
}

struct daemon_client_testing daemon_client_testing_start(const char *path, uid_t uid,
							 daemon_client_testing_fn *serve)
{
	struct daemon_client_testing server = {.pid = -1};
	int ready[2];
	char byte;

	snprintf(server.path, sizeof(server.path), "%s", path);
	assert(pipe2(ready, O_CLOEXEC) == 0);
	server.pid = fork();
	assert(server.pid >= 0);
	if (server.pid == 0) {
		testing_run(server.path, uid, serve, ready[1]);
		_exit(1);
	}
	close(ready[1]);
	assert(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return server;
}

struct daemon_client_testing daemon_client_testing_here(daemon_client_testing_fn *serve)
{
	char path[108];

	snprintf(path, sizeof(path), "%s/s", unit_dir());
	setenv("TTMEM_SOCKET", path, 1);
	return daemon_client_testing_start(path, getuid(), serve);
}

void daemon_client_testing_stop(struct daemon_client_testing *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	unlink(server->path);
}
