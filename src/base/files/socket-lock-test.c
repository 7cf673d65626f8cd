/* SPDX-License-Identifier: Apache-2.0 */

/* Who gets the path of a socket. */

#include "base/files/socket-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

static const char *place(void)
{
	static char path[108];

	(void)snprintf(path, sizeof(path), "%s/socket", unit_dir());
	return path;
}

UNIT(takes_a_free_place_and_leaves_it_free)
{
	struct socket_lock socket_lock;
	struct stat st;
	struct socket_lock_holder holder;

	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == 0);
	assert(stat(place(), &st) == 0 && (st.st_mode & 0777) == 0666);
	socket_lock_close(&socket_lock);
	assert(stat(place(), &st) < 0 && errno == ENOENT);
	assert(rmdir(unit_dir()) == 0 && mkdir(unit_dir(), 0700) == 0); /* nothing is left */
}

UNIT(a_taken_socket_names_its_holder)
{
	struct socket_lock first, second;
	struct socket_lock_holder holder = {0};
	struct stat st;

	assert(socket_lock_open(&first, place(), SOCK_SEQPACKET, &holder) == 0);
	assert(socket_lock_open(&second, place(), SOCK_SEQPACKET, &holder) == -EADDRINUSE);
	assert(holder.kind == SOCKET_LOCK_LIVE && holder.pid == (uint32_t)getpid());
	assert(holder.uid == geteuid() && stat(place(), &st) == 0);
	socket_lock_close(&second);
	assert(stat(place(), &st) == 0);
	socket_lock_close(&first);
}

/* An old server uses no locks. */
UNIT(a_living_socket_without_a_lock_is_left_alone)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct socket_lock socket_lock;
	struct socket_lock_holder holder = {0};
	struct stat st;

	memcpy(address.sun_path, place(), strlen(place()));
	assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0);
	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == -EADDRINUSE);
	assert(holder.pid == (uint32_t)getpid() && stat(place(), &st) == 0);
	/* One of another type is in use all the same, and who has it is known. */
	holder.pid = 0;
	assert(socket_lock_open(&socket_lock, place(), SOCK_SEQPACKET, &holder) == -EADDRINUSE);
	assert(holder.kind == SOCKET_LOCK_LIVE && holder.pid == (uint32_t)getpid());
	close(fd);
}

UNIT(the_socket_of_a_killed_daemon_is_taken_over)
{
	struct socket_lock socket_lock;
	struct socket_lock_holder holder;
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) < 0)
			_exit(1);
		raise(SIGKILL);
	}
	assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	assert(access(place(), F_OK) == 0);
	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == 0);
	socket_lock_close(&socket_lock);
}

/* What is at the path is still there, and its kind is known. */
static void check_in_the_way(enum socket_lock_kind kind)
{
	struct socket_lock socket_lock;
	struct socket_lock_holder holder;
	struct stat before, after;

	assert(lstat(place(), &before) == 0);
	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == -EEXIST);
	assert(holder.kind == kind && holder.uid == geteuid() && holder.pid == 0);
	assert(lstat(place(), &after) == 0 && after.st_ino == before.st_ino);
}

UNIT(no_other_file_is_removed)
{
	int fd = open(place(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert(fd >= 0 && close(fd) == 0);
	check_in_the_way(SOCKET_LOCK_FILE);
	assert(unlink(place()) == 0 && mkdir(place(), 0700) == 0);
	check_in_the_way(SOCKET_LOCK_FOLDER);
	assert(rmdir(place()) == 0 && symlink("elsewhere", place()) == 0);
	check_in_the_way(SOCKET_LOCK_LINK);
	assert(unlink(place()) == 0);
}

/* Anybody could create a lock there, and hold it. */
UNIT(a_lock_in_a_shared_folder_holds_up_nobody)
{
	struct socket_lock socket_lock;
	struct socket_lock_holder holder;
	char lock[128];
	int fd;

	(void)snprintf(lock, sizeof(lock), "%s.lock", place());
	assert(chmod(unit_dir(), 01777) == 0);
	fd = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
	assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == 0);
	assert(socket_lock.lock_fd == -1);
	socket_lock_close(&socket_lock);
	assert(access(lock, F_OK) == 0); /* not ours */
	close(fd);
}

UNIT(a_dead_socket_that_may_not_be_removed_is_named)
{
	struct socket_lock socket_lock;
	struct socket_lock_holder holder;
	int status;
	pid_t child;

	if (geteuid() != 0)
		unit_skip("only root can become another user");
	assert(chmod(unit_dir(), 01777) == 0);
	child = fork();
	if (child == 0) {
		if (socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) < 0)
			_exit(1);
		raise(SIGKILL);
	}
	assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
	    access(unit_dir(), X_OK) < 0)
		unit_skip("cannot become another user, or its folder is out of reach");
	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == -EPERM);
	assert(holder.kind == SOCKET_LOCK_DEAD && holder.uid == 0 && holder.pid == 0);
}

UNIT(a_removed_socket_is_noticed)
{
	struct socket_lock socket_lock;
	struct socket_lock_holder holder;

	assert(socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder) == 0);
	assert(socket_lock_is_there(&socket_lock));
	assert(unlink(place()) == 0 && !socket_lock_is_there(&socket_lock));
	assert(mkdir(place(), 0700) == 0 && !socket_lock_is_there(&socket_lock));
	assert(rmdir(place()) == 0);
	socket_lock_close(&socket_lock);
}

/* Somebody replaced our socket by their own: it stays. */
UNIT(only_our_own_is_removed)
{
	struct socket_lock first, second;
	char lock[128];
	struct socket_lock_holder holder;

	(void)snprintf(lock, sizeof(lock), "%s.lock", place());
	assert(socket_lock_open(&first, place(), SOCK_STREAM, &holder) == 0);
	assert(unlink(place()) == 0 && unlink(lock) == 0);
	assert(socket_lock_open(&second, place(), SOCK_STREAM, &holder) == 0);
	socket_lock_close(&first);
	assert(access(place(), F_OK) == 0 && access(lock, F_OK) == 0);
	socket_lock_close(&second);
}

UNIT(one_of_many_claims_at_once_wins)
{
	int over[2], status;
	char byte;

	assert(pipe2(over, O_CLOEXEC) == 0);
	for (int i = 0; i < 16; i++) {
		pid_t child = fork();

		if (child == 0) {
			struct socket_lock socket_lock;
			struct socket_lock_holder holder;
			int r = socket_lock_open(&socket_lock, place(), SOCK_STREAM, &holder);

			/* The holder keeps it until all others have tried. */
			close(over[1]);
			if (r == 0)
				assert(read(over[0], &byte, 1) == 0);
			_exit(r == 0 ? 0 : r == -EADDRINUSE ? 1 : 2);
		}
	}
	for (int i = 0; i < 15; i++)
		assert(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1);
	close(over[1]);
	assert(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(over[0]);
}

UNIT(a_path_too_long)
{
	struct socket_lock socket_lock;
	struct socket_lock_holder holder;
	char path[200];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert(socket_lock_open(&socket_lock, path, SOCK_STREAM, &holder) == -ENAMETOOLONG);
	assert(socket_lock_open(&socket_lock, "", SOCK_STREAM, &holder) == -ENAMETOOLONG);
}

/* @kept stays as it was, and so does what is at the path. */
static void check_not_adopted(const char *path, int kept, const struct socket_lock *left,
			      int expected)
{
	struct socket_lock socket_lock;

	assert(socket_lock_adopt(&socket_lock, path, kept, left->device, left->inode) == expected);
	socket_lock_close(&socket_lock);
	assert(fcntl(kept, F_GETFD) >= 0);
}

UNIT(only_the_socket_at_the_path_is_adopted)
{
	struct socket_lock left, other, wrong;
	struct socket_lock_holder holder;
	char elsewhere[120];
	int kept, fd;

	(void)snprintf(elsewhere, sizeof(elsewhere), "%.100s/other", unit_dir());
	assert(socket_lock_open(&left, place(), SOCK_STREAM, &holder) == 0);
	assert(socket_lock_open(&other, elsewhere, SOCK_STREAM, &holder) == 0);
	kept = fcntl(left.fd, F_DUPFD_CLOEXEC, 0);
	wrong = left;
	socket_lock_leave(&left);
	left = wrong;

	/* Not a socket; a live one that is bound elsewhere; another file. */
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	check_not_adopted(place(), fd, &left, -ENOTSOCK);
	assert(close(fd) == 0);
	check_not_adopted(elsewhere, kept, &other, -EADDRNOTAVAIL);
	wrong.device++;
	check_not_adopted(place(), kept, &wrong, -ENOENT);
	wrong = left;
	wrong.inode++;
	check_not_adopted(place(), kept, &wrong, -ENOENT);
	assert(access(place(), F_OK) == 0);

	/* Something else is there now, and it is not known what was. */
	wrong.inode = 0;
	assert(unlink(place()) == 0);
	check_not_adopted(place(), kept, &wrong, -ENOENT);
	assert(mkdir(place(), 0700) == 0);
	check_not_adopted(place(), kept, &wrong, -ENOENT);
	assert(rmdir(place()) == 0 && close(kept) == 0);
	socket_lock_close(&other);
}

/* It may come from a process that waited in accept(). */
UNIT(an_adopted_socket_does_not_block)
{
	struct socket_lock left, socket_lock;
	struct socket_lock_holder holder;
	int kept;

	assert(socket_lock_open(&left, place(), SOCK_STREAM, &holder) == 0);
	kept = fcntl(left.fd, F_DUPFD_CLOEXEC, 0);
	assert(fcntl(kept, F_SETFL, 0) == 0);
	socket_lock_leave(&left);
	assert(socket_lock_adopt(&socket_lock, place(), kept, 0, 0) == 0);
	assert(fcntl(socket_lock.fd, F_GETFL) & O_NONBLOCK);
	socket_lock_close(&socket_lock);
}

UNIT(a_socket_that_was_left_is_adopted_with_those_who_wait)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct socket_lock first, second;
	struct socket_lock_holder holder;
	int kept, client, fd;

	assert(socket_lock_open(&first, place(), SOCK_STREAM, &holder) == 0);
	kept = fcntl(first.fd, F_DUPFD_CLOEXEC, 0);
	/* As long as the lock is held, it is somebody's. */
	assert(socket_lock_adopt(&second, place(), kept, first.device, first.inode) == -EADDRINUSE);
	second = first;
	socket_lock_leave(&first);
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", place()); /* fits */
	assert(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	/* Another path, another file. */
	assert(socket_lock_adopt(&first, "/nowhere", kept, second.device, second.inode) ==
	       -EADDRNOTAVAIL);
	assert(socket_lock_adopt(&first, place(), kept, second.device, second.inode + 1) ==
	       -ENOENT);
	assert(socket_lock_adopt(&first, place(), kept, second.device, second.inode) == 0);
	fd = accept4(first.fd, NULL, NULL, SOCK_CLOEXEC);
	assert(fd >= 0);
	close(fd);
	close(client);
	socket_lock_close(&first);
	assert(access(place(), F_OK) < 0 && errno == ENOENT);
}
