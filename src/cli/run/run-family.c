/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop of `ttmem run`: one poll over the socket, the signals, and the connection and pidfd of
 * every process. A readable pidfd means that the process has ended. If only the connection ends,
 * the process has called exec (its book is no longer mapped) or has closed our descriptors.
 */

#include "cli/run/run-family.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "cli/common/frame-names.h"
#include "cli/run/run-black-box.h"
#include "cli/run/run-children.h"
#include "cli/run/run-record.h"
#include "cli/run/run-spawn.h"
#include "model/snapshot-request.h"
#include "source/books/book-source.h"
#include "source/proc/exit-status.h"

#define FAMILY_TICK_MS 50
#define FAMILY_GRACE_NS 100000000u /* for descendants that end together with the command */

static void family_cleanup(struct family **family)
{
	family_free(*family);
}

/* The folder is private: nobody else can hand us books or replace our socket. */
static int family_listen(struct family *family)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	int r;

	if (!base || strlen(base) > sizeof(family->folder) - sizeof("/ttmem-run-XXXXXX") ||
	    access(base, W_OK) < 0)
		base = "/tmp";
	(void)snprintf(family->folder, sizeof(family->folder), "%s/ttmem-run-XXXXXX", base);
	if (!mkdtemp(family->folder)) {
		family->folder[0] = '\0';
		return -errno;
	}
	(void)snprintf(family->path, sizeof(family->path), "%s/offer", family->folder);
	r = accept_listen(family->path);
	if (r < 0)
		return r;
	family->listening = r;
	return 0;
}

int family_new(struct family **ret_family)
{
	CLEANUP(family_cleanup) struct family *family = calloc(1, sizeof(*family));
	int r;

	if (!family)
		return -ENOMEM;
	family->listening = family->signals = family->proc.root = -1;
	family->ended = snapshot_new(clock_ns(CLOCK_REALTIME));
	if (!family->ended)
		return -ENOMEM;
	r = proc_open(&family->proc);
	if (r == 0)
		r = family_listen(family);
	if (r < 0)
		return r;
	*ret_family = cleanup_steal(family);
	return 0;
}

struct family *family_free(struct family *family)
{
	if (!family)
		return NULL;
	for (size_t i = 0; i < family->peer_count; i++)
		accept_peer_free(family->peers[i]);
	free(family->peers);
	free(family->ends);
	run_children_free(family->run_children);
	snapshot_free(family->ended);
	run_peaks_deinit(&family->peaks);
	run_failed_deinit(&family->failed);
	if (family->proc.root >= 0)
		proc_close(&family->proc);
	if (family->listening >= 0)
		(void)close(family->listening); /* nothing was written to it */
	if (family->signals >= 0)
		(void)close(family->signals); /* as above */
	if (family->folder[0]) {
		/* If removal fails, the files stay in a folder for temporary files. */
		(void)unlink(family->path);
		(void)rmdir(family->folder);
	}
	free(family);
	return NULL;
}

/* The row of a book's owner in the snapshot of ended processes. */
static uint32_t family_row(const struct family *family, const struct scan_book *book)
{
	for (size_t i = family->ended->process_count; i > 0; i--) {
		const struct snapshot_process *process = &family->ended->processes[i - 1];

		if (process_id_equal(process->id, book->owner.id))
			return (uint32_t)(i - 1);
	}
	return 0;
}

/* How a process ended: we have waited for it, or the kernel tells before or after its parent does. */
static void family_read_status(const struct family *family, const struct accept_peer *peer,
			       struct ending *ending)
{
	if (!run_children_status(family->run_children, peer->pid, ending)) /* or it is not known */
		(void)exit_status_read(&family->proc, peer->book->owner.id, peer->pid_fd, ending);
}

/* Reads the final state of a book whose owner has ended or called exec. */
static int family_judge(struct family *family, struct accept_peer *peer, bool execed)
{
	struct snapshot_request everything = {
		.buffers = true, .incidents = true, .held_at_close = family->strict_close};
	struct ending ending = {
		.ended_ns = clock_ns(CLOCK_REALTIME), /* symbolizing takes time */
		.execed = execed,
	};
	struct frame_names *names = NULL;
	struct family_end *end;
	struct view *view;
	size_t had;
	int r;

	if (!execed)
		family_read_status(family, peer, &ending);
	end = array_grow(family->ends, &family->end_capacity, family->end_count + 1, sizeof(*end));
	if (!end)
		return -ENOMEM;
	family->ends = end;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	peer->book->alive = false;
	/* Freed after this one book: the processes it starts would count as the command's. */
	if (frame_names_new(&names) == 0)
		everything.namer = frame_names_namer(names);
	run_record_book_ended(family->record, peer->book, &ending, everything.namer);
	had = family->ended->buffer_count;
	r = book_collect(peer->book, &everything, view, family->ended);
	run_black_box_ended(family->black_box, peer->book, &ending,
			    r == 0 && family->ended->buffer_count > had, everything.namer);
	if (r == 0)
		r = run_peaks_add(&family->peaks, peer->book, view, everything.namer);
	if (r == 0)
		run_failed_add(&family->failed, peer->book, view, everything.namer,
			       ending.has_status && ending.status == 0);
	frame_names_free(names);
	view_deinit(view);
	free(view);
	if (r < 0)
		return r;
	ending.closed = peer->book->reader.header.state == BOOK_STATE_CLOSED;
	end = &family->ends[family->end_count++];
	*end = (struct family_end){
		.process = family_row(family, peer->book),
		.pid = peer->pid,
		.ending = ending,
	};
	return 0;
}

static void family_drop(struct family *family, size_t i)
{
	accept_peer_free(family->peers[i]);
	family->peers[i] = family->peers[--family->peer_count];
	family->crowded = false;
}

static bool family_is_over(const struct family *family, const struct accept_peer *peer)
{
	struct pollfd end = {.fd = peer->pid_fd, .events = POLLIN};
	struct proc_facts facts;

	if (peer->pid_fd >= 0)
		return poll(&end, 1, 0) > 0;
	/* It has already ended, or pidfds are not available: use /proc instead. */
	return proc_read(&family->proc, peer->pid, &facts) < 0 ||
	       !process_id_equal(facts.id, peer->book->owner.id) ||
	       proc_is_over(&family->proc, &facts);
}

/* Whether the process behind a lost connection no longer has its book mapped. */
static bool family_has_execed(const struct family *family, const struct accept_peer *peer)
{
	const struct proc_file file = {.device = peer->book->id.device,
				       .inode = peer->book->id.inode};

	return proc_has_mapped(&family->proc, peer->pid, &file, MAPS_BUDGET_ONE, NULL) == 0;
}

/* Receives a book, or something invalid. True: the peer stays. */
static bool family_receive(struct family *family, struct accept_peer *peer)
{
	int r = accept_receive(peer, &family->proc);

	if (r == -EAGAIN)
		return true;
	if (r != 0) {
		family->refused++;
		family->refused_reason = accept_strerror(r);
		return false;
	}
	run_children_has_book(family->run_children, peer->pid);
	run_record_add(family->record, peer->book);
	run_black_box_add(family->black_box, peer->book);
	return true;
}

/* Handles one peer; @connection: something happened on its socket. */
static int family_attend(struct family *family, size_t i, bool connection)
{
	struct accept_peer *peer = family->peers[i];
	bool execed;
	int r;

	if (!peer->book) {
		if (!family_receive(family, peer))
			family_drop(family, i);
		else if (peer->book && family_is_over(family, peer))
			return family_attend(family, i, false);
		return 0;
	}
	if (family_is_over(family, peer)) {
		r = family_judge(family, peer, false);
		family_drop(family, i);
		return r;
	}
	if (!connection || peer->fd < 0)
		return 0;
	/* Nothing more is ever sent, so the connection has ended. */
	execed = family_has_execed(family, peer) && !family_is_over(family, peer);
	(void)close(cleanup_steal_fd(&peer->fd)); /* nothing was written to it */
	if (!execed)
		return 0;
	r = family_judge(family, peer, true);
	family_drop(family, i);
	return r;
}

static int family_accept(struct family *family)
{
	for (;;) {
		struct accept_peer *peer;
		struct accept_peer **peers;
		int r = accept_peer_new(family->listening, &peer);

		if (r == -EAGAIN)
			return 0;
		if (r == -ECONNABORTED || r == -EINTR)
			continue;
		if (r == -EMFILE || r == -ENFILE) {
			family->crowded = true; /* it waits until a process ends */
			return 0;
		}
		if (r < 0)
			return r;
		peers = array_grow(family->peers, &family->peer_capacity, family->peer_count + 1,
				   sizeof(struct accept_peer *));
		if (!peers) {
			accept_peer_free(peer);
			return -ENOMEM;
		}
		family->peers = peers;
		peers[family->peer_count++] = peer;
	}
}

static void family_reap(struct family *family)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == family->child)
			ending_set(&family->command, status);
		run_children_ended(family->run_children, (uint32_t)pid, status);
		for (size_t i = family->end_count; i > 0; i--) {
			struct family_end *end = &family->ends[i - 1];

			if (end->pid == (uint32_t)pid && !end->ending.execed &&
			    !end->ending.has_status) {
				ending_set(&end->ending, status);
				break;
			}
		}
	}
}

static void family_signals(struct family *family)
{
	struct signalfd_siginfo info;

	while (read(family->signals, &info, sizeof(info)) == sizeof(info)) {
		/* The terminal has already sent its signals to the command as well. */
		if (info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL)
			(void)kill(family->child, (int)info.ssi_signo); /* it may have exited */
	}
	family_reap(family);
}

/* Adds up what all processes in @snapshot hold, per device and type. */
static void family_add_up(const struct snapshot *snapshot, uint64_t sums[BOOK_DEVICES][BOOK_TYPES])
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				sums[part->device][type] += part->memory[type].used;
		}
	}
}

/* Samples the most that all live processes hold together. */
static int family_sample(struct family *family)
{
	static const struct snapshot_request totals = {0};
	struct snapshot *now = snapshot_new(clock_ns(CLOCK_REALTIME));
	uint64_t(*sums)[BOOK_TYPES] = calloc(BOOK_DEVICES, sizeof(*sums));
	int r = now && sums ? family_collect(family, &totals, now) : -ENOMEM;

	if (r == 0) {
		family_add_up(now, sums);
		for (uint32_t device = 0; device < BOOK_DEVICES; device++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				family->peak[device][type].bytes = bits_max(
					family->peak[device][type].bytes, sums[device][type]);
		}
	}
	free(sums);
	snapshot_free(now);
	return r;
}

/*
 * The peak of one process is exact. Those of several may not coincide: then the sampled peak is
 * kept and marked as such.
 */
static void family_settle_peaks(struct family *family)
{
	for (size_t i = 0; i < family->ended->process_count; i++) {
		const struct snapshot_process *process = &family->ended->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				struct family_peak *peak = &family->peak[part->device][type];

				if (part->memory[type].allocs == 0)
					continue;
				peak->sampled = peak->processes++ > 0;
				peak->is_bound |= part->memory[type].bound != SNAPSHOT_EXACT;
				peak->bytes = bits_max(peak->bytes, part->memory[type].peak);
			}
		}
	}
}

int family_step(struct family *family, int timeout_ms)
{
	size_t count = family->peer_count;
	CLEANUP_FREE struct pollfd *fds = calloc(2 + 2 * count, sizeof(*fds));
	int r;

	if (!fds)
		return -ENOMEM;
	timeout_ms = run_record_round(family->record, timeout_ms);
	timeout_ms = run_black_box_round(family->black_box, timeout_ms);
	fds[0] = (struct pollfd){.fd = family->crowded ? -1 : family->listening, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = family->signals, .events = POLLIN};
	for (size_t i = 0; i < count; i++) {
		fds[2 + 2 * i] = (struct pollfd){.fd = family->peers[i]->fd, .events = POLLIN};
		fds[3 + 2 * i] = (struct pollfd){.fd = family->peers[i]->pid_fd, .events = POLLIN};
	}
	if (poll(fds, 2 + 2 * count, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	family_signals(family); /* first: how a process ended is known when its book is judged */
	/* Backwards, because dropping a peer moves the last one into its slot. */
	for (size_t i = count; i > 0; i--) {
		bool connection = fds[2 * i].revents != 0;

		if (!connection && !fds[2 * i + 1].revents)
			continue;
		r = family_attend(family, i - 1, connection);
		if (r < 0)
			return r;
	}
	return family_accept(family);
}

int family_finish(struct family *family)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + FAMILY_GRACE_NS;
	int r;

	do {
		r = family_step(family, 1);
		for (size_t i = family->peer_count; r == 0 && i > 0; i--)
			r = family_attend(family, i - 1, false);
	} while (r == 0 && family->peer_count > 0 && clock_ns(CLOCK_MONOTONIC) < deadline);
	for (size_t i = 0; i < family->peer_count; i++)
		family->still_running += family->peers[i]->book != NULL;
	family->without_book = run_children_without_book(family->run_children);
	family->untracked = run_children_untracked(family->run_children);
	family_settle_peaks(family);
	snapshot_drop_empty(family->ended);
	return r == 0 ? snapshot_finish(family->ended) : r;
}

static int family_watch_signals(struct family *family, sigset_t *ret_before)
{
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGCHLD);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGQUIT);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &mine, ret_before) < 0)
		return -errno;
	family->signals = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	return family->signals < 0 ? -errno : 0;
}

int family_open(struct family *family, sigset_t *ret_before)
{
	int r = family_watch_signals(family, ret_before);

	if (r < 0)
		return r;
	/* Orphans become our children, so that we learn how they end. On failure we do not. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* Three descriptors per live process; children get the old limit. */
	if (getrlimit(RLIMIT_NOFILE, &family->files) == 0) {
		struct rlimit more = {family->files.rlim_max, family->files.rlim_max};

		(void)setrlimit(RLIMIT_NOFILE,
				&more); /* on failure fewer fit; refused books are reported */
	}
	family->run_children = run_children_new();
	return family->run_children ? 0 : -ENOMEM;
}

int family_collect(struct family *family, const struct snapshot_request *request,
		   struct snapshot *snapshot)
{
	struct view *view = calloc(1, sizeof(*view));
	int r = view ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < family->peer_count; i++) {
		if (family->peers[i]->book)
			r = book_collect(family->peers[i]->book, request, view, snapshot);
	}
	if (view)
		view_deinit(view);
	free(view);
	return r;
}

int family_run(struct family *family, const char *const *argv)
{
	sigset_t before;
	int r;

	r = family_open(family, &before);
	if (r < 0)
		return r;
	family->child = spawn_tracked(argv, family->path, family->shim, &before, &family->files);
	if (family->child < 0)
		return (int)family->child;
	while (r == 0 && !family->command.has_status) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (now - family->sampled_ns >= FAMILY_TICK_MS * NS_PER_MS) {
			family->sampled_ns = now;
			run_children_look(family->run_children, &family->proc, (uint32_t)getpid());
			r = family_sample(family);
			if (r < 0)
				break;
			run_peaks_look(&family->peaks, family->peers, family->peer_count);
		}
		r = family_step(family, FAMILY_TICK_MS);
	}
	/* Whatever fails on our side, the command is not abandoned. */
	if (r < 0 && !family->command.has_status &&
	    waitpid(family->child, &family->command.status, 0) > 0)
		family->command.has_status = true;
	family->trouble = r;
	r = family_finish(family);
	if (r < 0)
		family->trouble = r;
	return 0;
}
