/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon, an old server in its place, the clock, and where this command itself runs. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "answers/answers.h"
#include "answers/status.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "cli/common/session.h"
#include "cli/doctor/doctor.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/daemon-client/daemon-client.h"
#include "source/host/kernel.h"
#include "source/proc/proc.h"

#define DOCTOR_OLD_PATH "/tmp/tt_allocation_server.sock"
#define DOCTOR_OLD_QUESTION "QUERY_ALL\n"
#define DOCTOR_OLD_PATIENCE_MS 3000 /* where another server is; systemd may have to start ours */

/* The effective capabilities of a process; all if they cannot be read, to avoid a false report. */
static uint64_t doctor_capabilities(uint32_t pid)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char path[48], line[256];
	uint64_t set;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %" SCNx64, &set) == 1)
			return set;
	}
	return UINT64_MAX;
}

static bool doctor_sees_others(const struct doctor *doctor)
{
	uint64_t set =
		doctor->daemon.is_outside ? UINT64_MAX : doctor_capabilities(doctor->daemon.pid);

	return (set & UINT64_C(1) << CAP_SYS_PTRACE) && (set & UINT64_C(1) << CAP_DAC_READ_SEARCH);
}

/* The history has a finding of its own. Returns its problem; NULL = none. */
static const char *doctor_note_doors(struct doctor *doctor, const struct status_row *status)
{
	const char *problem = NULL;

	for (size_t i = 0; i < status->door_count; i++) {
		const struct status_door *door = &status->doors[i];

		if (door->name && strcmp(door->name, "history") == 0)
			problem = door->problem;
		else if (door->name && !door->is_open)
			doctor_tell(doctor, DOCTOR_DAEMON_DOOR, 0, 0, "ttmemd lacks %s: %s: %s",
				    door->name, door->where ? door->where : "?",
				    door->problem ? door->problem : "not known yet");
	}
	return problem;
}

static void doctor_note_past(struct doctor *doctor, const struct health *health,
			     const char *problem)
{
	if (!health->store_runs)
		doctor_tell(doctor, DOCTOR_DAEMON_FORGETS, 0, 0,
			    "ttmemd (pid %" PRIu32 ") can remember nothing at present%s%s",
			    doctor->daemon.pid, problem ? ": " : "", problem ? problem : "");
	else if (health->store_dropped)
		doctor_tell(doctor, DOCTOR_DAEMON_FORGETS, 0, 0,
			    "ttmemd (pid %" PRIu32 ") lost %" PRIu64 " records of the past",
			    doctor->daemon.pid, health->store_dropped);
}

static void doctor_note_status(struct doctor *doctor, const json_t *document)
{
	struct doctor_daemon *daemon = &doctor->daemon;
	struct status_row status = {0};
	const char *version;

	(void)fields_take(document, status_fields, &status, NULL);
	version = status.health.version;

	daemon->answers = true;
	daemon->is_outside = daemon_client_server(session_remote(doctor->session)) == 0;
	daemon->pid = status.pid;
	daemon->user_id = status.user_id;
	daemon->you_see_all = status.you_see_all;
	text_escape(version ? version : "?", daemon->version, sizeof(daemon->version));
	if (!daemon->you_see_all)
		doctor_tell(doctor, DOCTOR_DAEMON_PARTIAL, 0, 0,
			    "ttmemd (pid %" PRIu32 ") does not show you everything", daemon->pid);
	if (!doctor_sees_others(doctor))
		doctor_tell(doctor, DOCTOR_DAEMON_BLIND, 0, 0,
			    "ttmemd (pid %" PRIu32 ", user %" PRIu32
			    ") runs without the capabilities to look into every process",
			    daemon->pid, daemon->user_id);
	doctor_note_past(doctor, &status.health, doctor_note_doors(doctor, &status));
}

int doctor_look_at_daemon(struct doctor *doctor)
{
	CLEANUP(document_unload) json_t *status = NULL;
	struct daemon_client *remote = session_remote(doctor->session);
	int r = daemon_pages_ask(remote, ANSWERS_STATUS, NULL, &status);

	if (r < 0)
		return r;
	if (status)
		doctor_note_status(doctor, status);
	else if (r == DAEMON_CLIENT_NONE)
		doctor_tell(doctor, DOCTOR_DAEMON_NONE, 0, 0, "%s", daemon_client_reason(remote));
	else if (r == DAEMON_CLIENT_STRANGER)
		doctor_tell(doctor, DOCTOR_DAEMON_STRANGER, 0, 0, "%s",
			    daemon_client_reason(remote));
	else
		doctor_tell(doctor, DOCTOR_DAEMON_SILENT, 0, 0, "%s: %s",
			    daemon_client_path(remote),
			    r == 0 ? "the answer makes no sense" : daemon_client_reason(remote));
	return 0;
}

/*
 * Whether ttmem serves this connection of the old protocol. It is the only server that answers this line, which old
 * scripts send; the original servers ignore it.
 */
static bool doctor_is_answered(int fd)
{
	struct pollfd answer = {.fd = fd, .events = POLLIN};
	char byte;

	return send(fd, DOCTOR_OLD_QUESTION, strlen(DOCTOR_OLD_QUESTION), MSG_NOSIGNAL) > 0 &&
	       poll(&answer, 1, DOCTOR_OLD_PATIENCE_MS) > 0 && recv(fd, &byte, 1, MSG_DONTWAIT) > 0;
}

/* A connection to the old protocol's socket; -1 = there is none. */
static int doctor_connect_old(struct doctor *doctor, const char *path)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return cleanup_steal_fd(&fd);
	if (errno == ECONNREFUSED)
		doctor_tell(doctor, DOCTOR_OLD_SOCKET, 0, 0, "nobody listens at %s", path);
	return -1;
}

static bool doctor_is_ours(const char *comm)
{
	return strcmp(comm, "ttmemd") == 0 || strcmp(comm, "ttmem-legacy") == 0;
}

/*
 * Checks who serves old clients. The kernel names who has called listen(). That may be systemd, a process that has
 * ended, or one outside of our pid namespace (0); then the server itself is asked.
 */
static void doctor_look_at_old_socket(struct doctor *doctor)
{
	const struct proc *proc = &session_scan(doctor->session)->proc;
	const char *path = secure_getenv("TT_ALLOC_SERVER_SOCKET");
	CLEANUP_CLOSE int fd = -1;
	struct ucred server;
	socklen_t size = sizeof(server);
	struct proc_facts facts = {0};

	if (!path || !*path)
		path = DOCTOR_OLD_PATH;
	fd = doctor_connect_old(doctor, path);
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) < 0)
		return;
	if (server.pid == 0 || proc_read(proc, (uint32_t)server.pid, &facts) < 0)
		server.pid = 0;
	/* Another ttmemd than the one that answers us: daemon-none reports it. */
	if (doctor_is_ours(facts.comm) || doctor_is_answered(fd))
		return;
	doctor_tell(doctor, DOCTOR_OLD_SERVER, (uint32_t)server.pid, server.uid,
		    "a server that is not ttmemd listens at %s", path);
}

static void doctor_look_at_clock(struct doctor *doctor)
{
	const char *root = secure_getenv("TTMEM_SYS_ROOT");
	char path[4096], name[64], shown[TEXT_ESCAPE_SIZE(sizeof(name))];

	snprintf(path, sizeof(path),
		 "%s/devices/system/clocksource/clocksource0/current_clocksource",
		 root && *root ? root : "/sys");
	if (small_file_read_line(AT_FDCWD, path, name, sizeof(name)) < 0)
		return;
	if (strcmp(name, "tsc") == 0 || strcmp(name, "arch_sys_counter") == 0)
		return;
	text_escape(name, shown, sizeof(shown));
	doctor_tell(doctor, DOCTOR_CLOCK_SLOW, 0, 0, "the clock source is \"%s\"", shown);
}

/* Processes outside of a container cannot be seen from inside. */
static void doctor_look_at_container(struct doctor *doctor)
{
	char id[PROC_CONTAINER_SIZE];

	proc_container(&session_scan(doctor->session)->proc, (uint32_t)getpid(), id);
	if (*id)
		doctor_tell(doctor, DOCTOR_CONTAINER, 0, 0, "this is container %s", id);
}

static void doctor_tell_share(void *context, const struct kernel_share *share)
{
	struct doctor *doctor = context;
	char name[64] = "", shown[TEXT_ESCAPE_SIZE(sizeof(name))], limit[TEXT_NUMBER_SIZE];

	text_size(share->limit, limit);
	if (share->is_of_all) {
		doctor_tell(
			doctor, DOCTOR_KERNEL_SHARE, 0, 0,
			"the module's memory for books (%s) is used up: new processes keep their "
			"books in a memfd",
			limit);
		return;
	}
	proc_user_name(share->uid, name, sizeof(name));
	text_escape(name, shown, sizeof(shown));
	doctor_tell(doctor, DOCTOR_KERNEL_SHARE, 0, share->uid,
		    "the share of user %s in the module's memory (%s) is used up: new processes of "
		    "%s keep their books in a memfd",
		    shown, limit, shown);
}

static void doctor_look_at_kernel(struct doctor *doctor)
{
	enum kernel_state state = kernel_look(&session_scan(doctor->session)->proc, NULL);

	if (state == KERNEL_READY)
		doctor_tell(doctor, DOCTOR_KERNEL_READY, 0, 0, "%s", kernel_explain(state));
	else if (state != KERNEL_NOT_LOADED)
		doctor_tell(doctor, DOCTOR_KERNEL_NODE, 0, 0, "%s", kernel_explain(state));
	kernel_read_shares(&session_scan(doctor->session)->proc, doctor_tell_share, doctor);
}

void doctor_look_at_machine(struct doctor *doctor)
{
	doctor_look_at_kernel(doctor);
	doctor_look_at_old_socket(doctor);
	doctor_look_at_clock(doctor);
	doctor_look_at_container(doctor);
}
