/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The process that holds books. It has slots for books and a few connections to daemons: normally
 * one, briefly two (when one has died and its connection has not been drained yet). Draining
 * matters: a daemon that was killed had sent what its successor wants back.
 *
 * Nothing is queued here. A daemon that takes books has a position in the list of slots, which
 * stays where it is while its socket is full.
 */

#include "daemon/custody/keeper-process.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/threads/loop.h"
#include "daemon/custody/keeper-wire.h"
#include "daemon/custody/keeper.h"

#define LINES_MAX 8u           /* one more replaces the oldest */
#define ROOM_MAX 4096u         /* more messages than a socket can hold */
#define TURN_MAX 64u           /* messages of one connection per turn of the loop */
#define SPARE_FDS 32u          /* connections, the loop, signals */
#define LOOK_S KEEPER_OTHERS_S /* how often a keeper without a daemon checks its socket */
#define RETRY_NS 50000000u     /* after "too many descriptors in flight" */

struct place {
	int fd;          /* -1 = free */
	uint64_t serial; /* of the connection that added it last */
	struct keeper_wire message;
};

struct line {
	struct loop_source source; /* fd -1 = free */
	struct process *process;
	uint64_t serial;
	uint32_t takes; /* the kind that it has asked for: HELD, OTHER or 0 */
	size_t next;    /* slot to be sent next */
};

struct process {
	struct loop *loop;
	struct loop_source listening;
	struct loop_source signals;
	struct loop_timer look, retry;
	uint64_t alone_ns; /* since when there is no daemon */
	uint64_t serials;

	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	dev_t device; /* of the socket's name, to detect its replacement */
	ino_t inode;

	struct place *places; /* never compacted: positions stay valid */
	size_t count, capacity;
	size_t held, held_max;
	uint64_t refused;
	struct line lines[LINES_MAX];
};

static bool is_ours(const struct process *process)
{
	struct stat file;

	return lstat(process->path, &file) == 0 && file.st_dev == process->device &&
	       file.st_ino == process->inode;
}

static bool has_daemon(const struct process *process)
{
	for (size_t i = 0; i < LINES_MAX; i++) {
		if (process->lines[i].source.fd >= 0)
			return true;
	}
	return false;
}

static struct place *place_find(struct process *process, const struct keeper_wire *message)
{
	for (size_t i = 0; i < process->count; i++) {
		struct place *place = &process->places[i];

		if (place->fd >= 0 && place->message.inode == message->inode &&
		    place->message.device == message->device)
			return place;
	}
	return NULL;
}

static struct place *place_new(struct process *process)
{
	struct place *grown;

	if (process->held >= process->held_max)
		return NULL;
	for (size_t i = 0; process->held < process->count; i++) {
		if (process->places[i].fd < 0)
			return &process->places[i];
	}
	grown = array_grow(process->places, &process->capacity, process->count + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	process->places = grown;
	grown[process->count].fd = -1;
	return &grown[process->count++];
}

static void place_free(struct process *process, struct place *place)
{
	(void)close(place->fd); /* nothing was written to it */
	place->fd = -1;
	process->held--;
}

/* Takes the descriptor in any case. */
static void add_consume(struct line *line, const struct keeper_wire *message, int fd)
{
	struct process *process = line->process;
	struct place *place = place_find(process, message);
	bool is_known = place;

	if (!keeper_wire_fits(message, fd) || (!place && !(place = place_new(process)))) {
		process->refused++;
		(void)close(fd); /* refused */
		return;
	}
	/*
	 * Keep the descriptor that is there, but update the owner, which may be known better now.
	 */
	if (is_known) {
		(void)close(fd); /* a duplicate */
	} else {
		place->fd = fd;
		process->held++;
	}
	place->message = *message;
	place->message.kind =
		message->kind == KEEPER_WIRE_ADD ? KEEPER_WIRE_HELD : KEEPER_WIRE_OTHER;
	place->serial = line->serial;
}

static void sweep(struct process *process, uint64_t serial)
{
	for (size_t i = 0; i < process->count; i++) {
		if (process->places[i].fd >= 0 && process->places[i].serial != serial)
			place_free(process, &process->places[i]);
	}
}

/* Whoever is at their other ends waits for a daemon, and must not wait for one that does not come. */
static void drop_others(struct process *process)
{
	for (size_t i = 0; i < process->count; i++) {
		if (process->places[i].fd >= 0 &&
		    process->places[i].message.kind == KEEPER_WIRE_OTHER)
			place_free(process, &process->places[i]);
	}
}

static void settle(struct process *process);

static void line_close(struct line *line)
{
	loop_remove(line->process->loop, &line->source);
	(void)close(line->source.fd); /* the daemon has exited or sent garbage */
	line->source.fd = -1;
}

/*
 * Sends what is due. A daemon that has died meanwhile is detected by reading, not here: it may have
 * sent something before.
 */
static void line_give(struct line *line)
{
	struct process *process = line->process;
	struct keeper_wire end = KEEPER_WIRE_INIT(KEEPER_WIRE_END);
	int r = 0;

	for (unsigned int i = 0; i < TURN_MAX && line->takes && r == 0; i++) {
		const struct place *place = process->places;

		if (line->next == process->count) {
			end.held = process->held;
			end.refused = process->refused;
			r = keeper_wire_send(line->source.fd, &end, -1);
			line->takes = r < 0 ? line->takes : 0;
		} else if (place[line->next].fd >= 0 &&
			   place[line->next].message.kind == line->takes) {
			r = keeper_wire_send(line->source.fd, &place[line->next].message,
					     place[line->next].fd);
		}
		line->next += r == 0;
	}
	/* Too many in flight: the socket has room, so epoll would wake us at once, for nothing. */
	if (r == -ETOOMANYREFS &&
	    loop_set(process->loop, &process->retry, loop_now(process->loop) + RETRY_NS) == 0)
		r = 0;
	else if (r == 0 || r == -EAGAIN)
		r = line->takes ? 1 : 0;
	else
		line->takes = 0;
	/* Cannot fail: the source is registered. */
	(void)loop_change(process->loop, &line->source, r > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Return: 0, or a negative errno if the connection must be closed. */
static int line_hear(struct line *line, const struct keeper_wire *message, int fd)
{
	struct process *process = line->process;
	struct place *place;

	switch (message->kind) {
	case KEEPER_WIRE_ADD:
	case KEEPER_WIRE_HOLD:
		add_consume(line, message, fd);
		return 0;
	case KEEPER_WIRE_REMOVE:
		place = place_find(process, message);
		if (place)
			place_free(process, place);
		return 0;
	case KEEPER_WIRE_TAKE:
	case KEEPER_WIRE_FETCH:
		line->takes =
			message->kind == KEEPER_WIRE_TAKE ? KEEPER_WIRE_HELD : KEEPER_WIRE_OTHER;
		line->next = 0;
		return 0;
	case KEEPER_WIRE_SWEEP:
		sweep(process, line->serial);
		return 0;
	case KEEPER_WIRE_QUIT:
		sweep(process, UINT64_MAX);
		loop_stop(process->loop);
		return 0;
	default:
		if (fd >= 0)
			(void)close(fd); /* the daemon must not send this kind */
		return -EBADMSG;
	}
}

/* Handles up to @max messages; closes the connection at its end or after an invalid message. */
static void line_read(struct line *line, unsigned int max)
{
	int r = 0;

	while (max-- > 0 && r == 0) {
		struct keeper_wire message;
		int fd;

		r = keeper_wire_receive(line->source.fd, &message, &fd);
		if (r == 0)
			r = line_hear(line, &message, fd);
		if (r == -EMFILE) {
			line->process->refused++;
			r = 0;
		}
	}
	if (r < 0 && r != -EAGAIN)
		line_close(line);
}

/* Reads what all others sent before this moment, including daemons that have died. */
static void line_read_others(const struct line *line)
{
	for (size_t i = 0; i < LINES_MAX; i++) {
		struct line *other = &line->process->lines[i];

		if (other != line && other->source.fd >= 0)
			line_read(other, ROOM_MAX);
	}
}

static void line_ready(struct loop_source *source, uint32_t events)
{
	struct line *line = container_of(source, struct line, source);

	if (events & ~(uint32_t)EPOLLOUT)
		line_read(line, TURN_MAX);
	if (source->fd < 0) {
		settle(line->process);
		return;
	}
	if (!line->takes)
		return;
	/* A successor wants the books of the daemon that was killed a moment ago. */
	if (line->next == 0)
		line_read_others(line);
	line_give(line);
}

static void retry(struct loop_timer *timer)
{
	struct process *process = container_of(timer, struct process, retry);

	for (size_t i = 0; i < LINES_MAX; i++) {
		if (process->lines[i].source.fd >= 0 && process->lines[i].takes)
			line_give(&process->lines[i]);
	}
}

/* A free connection, or the oldest one: its daemon must be dead or stuck. */
static struct line *line_choose(struct process *process)
{
	struct line *oldest = &process->lines[0];

	for (size_t i = 0; i < LINES_MAX; i++) {
		struct line *line = &process->lines[i];

		if (line->source.fd < 0)
			return line;
		if (line->serial < oldest->serial)
			oldest = line;
	}
	line_read(oldest, ROOM_MAX);
	if (oldest->source.fd >= 0)
		line_close(oldest);
	return oldest;
}

/* Accepts waiting connections. */
static void admit(struct process *process)
{
	for (unsigned int i = 0; i < LINES_MAX; i++) {
		int fd = accept4(process->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct line *line;

		if (fd < 0)
			return;
		if (!keeper_wire_is_friend(fd)) {
			(void)close(fd); /* another user */
			continue;
		}
		line = line_choose(process);
		line->takes = 0;
		line->serial = ++process->serials;
		line->source = (struct loop_source){.fd = fd, .ready = line_ready};
		if (loop_add(process->loop, &line->source, EPOLLIN) < 0) {
			(void)close(fd); /* no memory: the daemon will reconnect */
			line->source.fd = -1;
			continue;
		}
		loop_cancel(process->loop, &process->look);
	}
}

static void listening_ready(struct loop_source *source, uint32_t events)
{
	struct process *process = container_of(source, struct process, listening);

	settle(process);
}

/* Accepts waiting connections, and decides what a keeper without a daemon does. */
static void settle(struct process *process)
{
	admit(process);
	if (has_daemon(process))
		return;
	/* Nobody will connect: nothing is held, or another keeper has replaced our socket. */
	if (process->held == 0 || !is_ours(process)) {
		loop_stop(process->loop);
		return;
	}
	if (process->look.place == 0) {
		process->alone_ns = loop_now(process->loop);
		if (loop_set(process->loop, &process->look, process->alone_ns + LOOK_S * NS_PER_S) <
		    0)
			loop_stop(process->loop); /* no memory: exit rather than stay forever */
	}
}

static void look(struct loop_timer *timer)
{
	struct process *process = container_of(timer, struct process, look);
	uint64_t now = loop_now(process->loop);

	drop_others(process);
	if (process->held == 0 || !is_ours(process) ||
	    now - process->alone_ns >= KEEPER_PROCESS_ALONE_S * NS_PER_S ||
	    loop_set(process->loop, timer, now + LOOK_S * NS_PER_S) < 0)
		loop_stop(process->loop);
}

static void signals_ready(struct loop_source *source, uint32_t events)
{
	struct process *process = container_of(source, struct process, signals);

	loop_stop(process->loop);
}

static int signals_add(struct process *process)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	process->signals.ready = signals_ready;
	process->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (process->signals.fd < 0)
		return -errno;
	return loop_add(process->loop, &process->signals, EPOLLIN);
}

/* Raises the descriptor limit for the books, then drops all capabilities: holding needs none. */
static void limit(struct process *process)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	const rlim_t wanted = KEEPER_BOOKS_MAX + SPARE_FDS;
	struct rlimit files = {.rlim_cur = wanted, .rlim_max = wanted};

	if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;        /* the hard limit needs no privilege */
		(void)setrlimit(RLIMIT_NOFILE, &files); /* the result is read below */
	}
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur <= SPARE_FDS)
		files.rlim_cur = SPARE_FDS + 1;
	process->held_max = (size_t)bits_min(files.rlim_cur - SPARE_FDS, KEEPER_BOOKS_MAX);
	/* Hardening only; the keeper works without it. */
	(void)syscall(SYS_capset, &header, none);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int process_init(struct process *process, int listening)
{
	struct sockaddr_un address = {0};
	socklen_t length = sizeof(address);
	struct stat file;
	int r;

	for (size_t i = 0; i < LINES_MAX; i++)
		process->lines[i] = (struct line){.source = LOOP_SOURCE_NULL, .process = process};
	process->look.fire = look;
	process->retry.fire = retry;
	process->listening = (struct loop_source){.fd = listening, .ready = listening_ready};
	if (getsockname(listening, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	memcpy(process->path, address.sun_path, sizeof(address.sun_path));
	if (lstat(process->path, &file) < 0)
		return -errno;
	process->device = file.st_dev;
	process->inode = file.st_ino;
	limit(process);
	r = loop_new(&process->loop);
	if (r == 0)
		r = signals_add(process);
	if (r == 0)
		r = loop_add(process->loop, &process->listening, EPOLLIN);
	return r;
}

bool keeper_process_is_meant(int argc, char *const *argv)
{
	return argc == 3 && strcmp(argv[1], KEEPER_PROCESS_ARGUMENT) == 0;
}

int keeper_process_main(int argc, char *const *argv)
{
	static struct process process;
	uint64_t listening;
	pid_t pid;

	if (argc != 3 || text_parse_u64(argv[2], &listening) < 0 || listening > INT32_MAX)
		return EXIT_FAILURE;
	/* Detached from the daemon, and not a session leader that could acquire a terminal. */
	pid = fork();
	if (pid != 0)
		_exit(pid < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	if (process_init(&process, (int)listening) < 0)
		return EXIT_FAILURE;
	(void)prctl(PR_SET_NAME, KEEPER_PROCESS_NAME); /* for people only */
	settle(&process);
	(void)loop_run(process.loop); /* the keeper exits either way */
	if (is_ours(&process))
		(void)unlink(process.path); /* otherwise the next daemon removes it */
	return EXIT_SUCCESS;
}
