/* SPDX-License-Identifier: Apache-2.0 */

/* Commands for incidents, with a real shell: their input, their number and their time limit. */

#include "daemon/notify/incident-hook.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"

#define TEXT_MAX (UINT32_C(2) << 20)
#define INCIDENT "{\"kind\":\"leak\",\"pid\":7}\n"

static struct loop *loop;
static struct incident_hook *alarms;
static char text[TEXT_MAX];

static void begin(const char *format)
{
	char command[4096];

	(void)snprintf(command, sizeof(command), "D='%s'; %s", unit_dir(), format);
	assert(loop_new(&loop) == 0);
	assert(incident_hook_new(&alarms, loop, command) == 0);
}

static void end(void)
{
	alarms = incident_hook_free(alarms);
	loop = loop_free(loop);
	/* All children have been reaped. */
	assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static struct incident_hook_counts counts(void)
{
	struct incident_hook_counts now;

	incident_hook_counts(alarms, &now);
	return now;
}

/* One user alone has half of what all have. */
#define PER_USER (INCIDENT_HOOK_PER_MINUTE / 2)

static int raise_of(uint32_t uid)
{
	return incident_hook_raise(alarms, uid, "leak", INCIDENT, strlen(INCIDENT));
}

static int raise_one(void)
{
	return raise_of(7);
}

/* Runs the loop until no command runs; the test runner's limit is the deadline. */
static void settle(void)
{
	while (counts().running + counts().waiting > 0)
		assert(loop_turn(loop, 100) >= 0);
}

/* The file that a command wrote, "" if there is none. */
static const char *left(const char *name)
{
	char path[4096];
	CLEANUP_FCLOSE FILE *file = NULL;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[n] = '\0';
	return text;
}

UNIT(command_gets_the_incident)
{
	begin("cat >$D/input; env >$D/environment; pwd >$D/folder; ls /proc/self/fd >$D/fds");
	assert(raise_one() == 0);
	settle();
	assert(strcmp(left("input"), "{\"suppressed\":0,\"kind\":\"leak\",\"pid\":7}\n") == 0);
	assert(strcmp(left("folder"), "/\n") == 0);
	assert(strstr(left("environment"), "TTMEM_INCIDENT_KIND=leak\n"));
	assert(strstr(text, "PATH=/") && !strstr(text, "TMPDIR="));
	/* 0, 1, 2 and the directory that ls reads. */
	assert(strcmp(left("fds"), "0\n1\n2\n3\n") == 0);
	assert(counts().started == 1 && counts().failed == 0);
	end();
}

/* Our descriptors may lack O_CLOEXEC, and 0 to 2 may be closed. */
UNIT(hooks_inherit_no_descriptors)
{
	int stray, saved[3];

	begin("cat >$D/input; ls /proc/self/fd >$D/fds");
	stray = fcntl(STDIN_FILENO, F_DUPFD, 20); /* NOLINT(android-cloexec-*): on purpose */
	assert(stray >= 20);
	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 40);
		assert(saved[i] >= 0 && close(i) == 0);
	}
	assert(raise_one() == 0);
	settle();
	for (int i = 0; i < 3; i++)
		assert(dup2(saved[i], i) == i && close(saved[i]) == 0);
	assert(strcmp(left("input"), "{\"suppressed\":0,\"kind\":\"leak\",\"pid\":7}\n") == 0);
	left("fds");
	assert(!strstr(text, "20\n") && !strstr(text, "40\n"));
	assert(close(stray) == 0);
	end();
}

UNIT(largest_input_arrives_whole)
{
	char *json = malloc(INCIDENT_HOOK_INPUT_MAX + 1);

	begin("cat >$D/input");
	assert(json);
	memset(json, 'x', INCIDENT_HOOK_INPUT_MAX + 1);
	memcpy(json, "{\"a\":\"", 6);
	memcpy(json + INCIDENT_HOOK_INPUT_MAX - 2, "\"}", 2);
	assert(incident_hook_raise(alarms, 7, "leak", json, INCIDENT_HOOK_INPUT_MAX + 1) ==
	       -EMSGSIZE);
	assert(incident_hook_raise(alarms, 7, "leak", json, INCIDENT_HOOK_INPUT_MAX) == 0);
	settle();
	left("input");
	assert(strlen(text) == INCIDENT_HOOK_INPUT_MAX + strlen("\"suppressed\":0,"));
	json[INCIDENT_HOOK_INPUT_MAX] = '\0';
	assert(strcmp(text + strlen("{\"suppressed\":0,"), json + 1) == 0);
	free(json);
	end();
}

UNIT(hook_input_must_be_a_json_object)
{
	begin("cat >$D/input");
	assert(incident_hook_raise(alarms, 7, "leak", "", 0) == -EINVAL);
	assert(incident_hook_raise(alarms, 7, "leak", "{", 1) == -EINVAL);
	assert(incident_hook_raise(alarms, 7, "leak", "[]", 2) == -EINVAL);
	assert(incident_hook_raise(alarms, 7, "leak", "{\0}", 3) == -EINVAL);
	assert(counts().started == 0 && counts().failed == 0);
	assert(incident_hook_raise(alarms, 7, "leak", "{ }", 3) == 0);
	settle();
	assert(strcmp(left("input"), "{\"suppressed\":0}") == 0);
	end();
}

UNIT(hooks_are_limited_per_minute)
{
	int let_in = 0;

	begin("cat >>$D/input");
	for (int i = 0; i < 1000; i++) {
		int r = raise_one();

		assert(r == 0 || r == -EAGAIN);
		let_in += r == 0;
		assert(counts().running <= INCIDENT_HOOK_RUNNING_MAX);
		assert(counts().waiting <= PER_USER);
	}
	assert(let_in == PER_USER);
	settle();
	assert(counts().started == PER_USER && quota_counted(QUOTA_HOOK_SUPPRESSED) == 990);
	left("input");
	for (unsigned int i = 0; i < PER_USER; i++) {
		const char *line = text;

		for (unsigned int skip = 0; skip < i; skip++)
			line = strchr(line, '\n') + 1;
		assert(strncmp(line, "{\"suppressed\":0,", 16) == 0);
	}
	end();
}

/* After a minute (here: a second) one is accepted and has the number of suppressed ones. */
UNIT(the_next_hook_tells_how_many_were_left_out)
{
	int r;

	begin("cat >$D/last");
	incident_hook_set_times(alarms, 60000000000, 1000000000);
	for (int i = 0; i < 17; i++)
		(void)raise_one(); /* ten accepted, seven suppressed */
	settle();
	while ((r = raise_one()) == -EAGAIN)
		assert(loop_turn(loop, 100) >= 0);
	assert(r == 0);
	settle();
	left("last");
	assert(strncmp(text, "{\"suppressed\":", 14) == 0);
	assert(strtoull(text + 14, NULL, 10) == quota_counted(QUOTA_HOOK_SUPPRESSED) &&
	       quota_counted(QUOTA_HOOK_SUPPRESSED) >= 7);
	end();
}

UNIT(slow_command_is_killed_with_its_children)
{
	int status;
	char *stop;
	pid_t pid;

	/* So that we can reap the orphan. */
	assert(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	begin("sleep 1000 & echo $! >$D/pid; echo >$D/done; wait");
	incident_hook_set_times(alarms, 2000000000, 60000000000);
	assert(raise_one() == 0);
	settle();
	assert(quota_counted(QUOTA_HOOK_KILLED) == 1 && counts().failed == 1);
	assert(strcmp(left("done"), "\n") == 0);
	pid = (pid_t)strtol(left("pid"), &stop, 10);
	assert(pid > 1 && *stop == '\n');
	assert(waitpid(pid, &status, 0) == pid);
	assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	end();
}

UNIT(a_hook_may_ignore_its_input)
{
	begin("exec <&-; echo >$D/done");
	for (int i = 0; i < 3; i++)
		assert(raise_one() == 0);
	settle();
	assert(strcmp(left("done"), "\n") == 0);
	assert(counts().started == 3 && counts().failed == 0);
	end();
}

UNIT(failures_are_counted)
{
	struct rlimit limit, before;

	begin("no-such-command-anywhere 2>/dev/null");
	assert(raise_one() == 0);
	settle();
	assert(counts().started == 1 && counts().failed == 1);

	/* Without a free descriptor the call fails, and the next one works. */
	assert(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = before;
	limit.rlim_cur = 3;
	assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	assert(raise_one() == -EMFILE);
	assert(setrlimit(RLIMIT_NOFILE, &before) == 0);
	assert(counts().failed == 2 && counts().running == 0);
	assert(raise_one() == 0);
	settle();
	assert(counts().started == 2 && counts().failed == 3);
	end();
}

UNIT(daemon_stops_while_hooks_run)
{
	begin("read -r line; echo \"$line\" >$D/input");
	for (unsigned int i = 0; i < PER_USER; i++)
		assert(raise_one() == 0);
	assert(counts().running == INCIDENT_HOOK_RUNNING_MAX);
	alarms = incident_hook_free(alarms);
	loop = loop_free(loop);
	/* They run on without us. */
	for (unsigned int i = 0; i < INCIDENT_HOOK_RUNNING_MAX; i++) {
		int status;

		assert(waitpid(-1, &status, 0) > 0 && status == 0);
	}
	assert(strncmp(left("input"), "{\"suppressed\":0,", 16) == 0);
}

/*
 * As systemd starts the daemon: an ordinary user with an ambient capability, which exec passes on.
 */
static void become_daemon_user(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {{0}};

	rights[0].permitted = rights[0].inheritable = rights[0].effective = 1u << CAP_SYS_PTRACE;
	assert(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	assert(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	assert(syscall(SYS_capset, &header, rights) == 0);
	assert(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) == 0);
}

UNIT(hooks_do_not_inherit_capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];

	if (geteuid() != 0)
		unit_skip("only root can become somebody else with rights");
	assert(chmod(unit_dir(), 0777) == 0);
	become_daemon_user();
	begin("grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status >$D/rights");
	assert(raise_one() == 0);
	settle();
	left("rights");
	assert(strstr(text, "CapPrm:\t0000000000000000\n"));
	assert(strstr(text, "CapEff:\t0000000000000000\n"));
	assert(strstr(text, "CapAmb:\t0000000000000000\n"));
	/* And we still have ours. */
	assert(syscall(SYS_capget, &header, rights) == 0);
	assert(rights[0].effective == 1u << CAP_SYS_PTRACE);
	end();
}

UNIT(one_users_storm_leaves_commands_for_others)
{
	begin("cat >/dev/null");
	for (uint32_t i = 0; i < 1000; i++)
		(void)raise_of(7); /* most are suppressed */
	assert(quota_counted(QUOTA_HOOK_SUPPRESSED) == 1000 - PER_USER);
	assert(raise_of(8) == 0 && raise_of(8) == 0 && raise_of(9) == 0);
	settle();
	assert(counts().started == PER_USER + 3);
	end();
}

static size_t lines_left(const char *name)
{
	size_t count = 0;

	for (const char *at = left(name); (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

UNIT(of_those_that_wait_the_user_with_the_fewest_running_is_next)
{
	static const char quick[] = "{\"quick\":1}", other[] = "{\"of\":8}";
	char path[4096];
	int fd;

	begin("read x; echo \"$x\" >>$D/order; case \"$x\" in *quick*) exit;; esac; "
	      "while [ ! -e $D/go ]; do sleep 0.01; done");
	assert(incident_hook_raise(alarms, 7, "leak", quick, strlen(quick)) == 0);
	for (uint32_t i = 0; i < 5; i++)
		assert(raise_of(7) == 0);
	assert(incident_hook_raise(alarms, 8, "leak", other, strlen(other)) == 0);
	assert(counts().running == INCIDENT_HOOK_RUNNING_MAX && counts().waiting == 3);
	while (lines_left("order") < INCIDENT_HOOK_RUNNING_MAX)
		usleep(1000); /* until all have begun; none is reaped before the loop turns */
	while (counts().started == INCIDENT_HOOK_RUNNING_MAX)
		assert(loop_turn(loop, 100) >= 0);
	while (lines_left("order") == INCIDENT_HOOK_RUNNING_MAX)
		usleep(1000);
	assert(strstr(left("order"), "\"of\":8"));
	(void)snprintf(path, sizeof(path), "%s/go", unit_dir());
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && close(fd) == 0);
	settle();
	end();
}
