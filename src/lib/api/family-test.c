/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random families of processes. Each process makes random calls in random threads, forks, vforks,
 * loses its descriptors and dies, and keeps in shared memory a simple model of what its book must
 * contain. After every batch all processes pause, and another process that never communicates with
 * them reads every book, of living and dead processes, and compares it with its model.
 *
 * TTMEM_SEED=N repeats a run. The order of calls in different threads varies, but never on the same
 * keys.
 */

#include <ttmem/ttmem.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/testing/testing-observer.h"
#include "lib/testing/testing-thread-model.h"

#define FAMILY_PROCESSES 24u
#define FAMILY_THREADS 4u
#define FAMILY_OPS 800u
#define FAMILY_BATCHES 10u
#define FAMILY_BUSY 2      /* exit status of the process that compares */
#define FAMILY_BUSY_MAX 3u /* rounds: a lock that is lost for good is in each of them */

static const uint32_t family_device[THREAD_MODEL_DEVICES] = {0, 1, 7, 1023};

struct family_process {
	uint32_t done; /* batches; the fields below are stable while done equals family->batch */
	uint32_t has_ended;
	pid_t pid;
	uint64_t seed;
	uint32_t has_book;
	uint32_t is_closed; /* it called ttmem_goodbye() */
	struct thread_model shares[FAMILY_THREADS];
};

/* Shared by all processes. */
struct family {
	uint32_t batch; /* the batch that may run */
	uint32_t count; /* of processes ever created */
	struct family_process processes[FAMILY_PROCESSES];
};

static struct family *family;
static struct family_process *family_self;

static uint64_t family_address(uint32_t thread, uint32_t key)
{
	return (uint64_t)thread << 20 | (uint64_t)key << 6;
}

static uint64_t family_owner(uint32_t thread, uint32_t owner)
{
	return owner ? 0x1000 + (uint64_t)thread * THREAD_MODEL_OWNERS + owner : 0;
}

/* NULL for 0. Some names repeat often, most occur once. */
static const char *family_name(uint32_t number, char text[32])
{
	snprintf(text, 32, "name %u", number);
	return number ? text : NULL;
}

static void family_alloc(struct thread_model *thread_model, uint32_t thread,
			 const struct thread_model_op *op)
{
	char text[32];
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.device = family_device[op->device],
		.type = op->type,
		.address = family_address(thread, op->key),
		.size = op->size,
		.name = family_name(op->name, text),
		.owner = family_owner(thread, op->owner),
	};

	if (op->owner)
		ttmem_alloc_ex(&args);
	else
		ttmem_alloc(args.device, args.type, args.address, args.size, args.name);
	thread_model_alloc(thread_model, op);
}

static void family_mesh(struct thread_model *thread_model, uint32_t thread,
			const struct thread_model_op *op, bool is_free)
{
	char text[32];
	struct thread_model_op each = *op;

	each.owner = 0;
	if (is_free)
		ttmem_free_mesh(family_device, THREAD_MODEL_DEVICES, op->type,
				family_address(thread, op->key));
	else
		ttmem_alloc_mesh(family_device, THREAD_MODEL_DEVICES, op->type,
				 family_address(thread, op->key), op->size,
				 family_name(op->name, text));
	for (each.device = 0; each.device < THREAD_MODEL_DEVICES; each.device++) {
		if (is_free)
			thread_model_free(thread_model, &each);
		else
			thread_model_alloc(thread_model, &each);
	}
}

static void family_hooked(struct thread_model *thread_model, uint32_t thread,
			  const struct thread_model_op *op)
{
	struct ttmem_free_args args = {.struct_size = sizeof(args),
				       .device = family_device[op->device],
				       .type = op->type,
				       .flags = TTMEM_FLAG_HOOKED};

	ttmem_free_ex(&args);
	thread_model->counters[op->device][op->type].hooked++;
}

static void family_call(struct thread_model *thread_model, uint32_t thread, struct testing_rng *rng)
{
	struct thread_model_op op = {
		.device = testing_below(rng, THREAD_MODEL_DEVICES),
		.type = testing_below(rng, BOOK_TYPES),
		.key = testing_below(rng, THREAD_MODEL_KEYS),
		.size = 1 + testing_below(rng, 3),
		.name = testing_below(rng, 3) ? testing_below(rng, 20)
					      : testing_below(rng, 1u << 20),
		.owner = testing_below(rng, 4) ? 0 : testing_below(rng, THREAD_MODEL_OWNERS),
	};

	thread_model->operations++;
	switch (testing_below(rng, 24)) {
	default:
		family_alloc(thread_model, thread, &op);
		return;
	case 10 ... 19:
		if (testing_below(rng, 8) == 0)
			op.type = TTMEM_ANY;
		if (!thread_model_knows_free(thread_model, &op))
			return;
		ttmem_free(family_device[op.device], op.type, family_address(thread, op.key));
		thread_model_free(thread_model, &op);
		return;
	case 20:
		family_mesh(thread_model, thread, &op, false);
		return;
	case 21:
		family_mesh(thread_model, thread, &op, true);
		return;
	case 22:
		family_hooked(thread_model, thread, &op);
		return;
	case 23:
		if (testing_below(rng, 2))
			op.type = TTMEM_ANY;
		op.owner = 1 + testing_below(rng, THREAD_MODEL_OWNERS - 1);
		ttmem_free_all(family_device[op.device], op.type, family_owner(thread, op.owner));
		thread_model_free_all(thread_model, &op);
		return;
	}
}

struct family_thread {
	pthread_t thread;
	uint32_t number;
	struct testing_rng rng;
};

static void *family_run(void *context)
{
	struct family_thread *self = context;
	uint32_t calls = testing_below(&self->rng, FAMILY_OPS);

	for (uint32_t i = 0; i < calls; i++)
		family_call(&family_self->shares[self->number], self->number, &self->rng);
	return NULL;
}

static void family_run_threads(struct testing_rng *rng)
{
	uint32_t count = 1 + testing_below(rng, FAMILY_THREADS);
	struct family_thread threads[FAMILY_THREADS];

	for (uint32_t i = 0; i < count; i++) {
		threads[i] = (struct family_thread){.number = i, .rng = {testing_random(rng)}};
		if (i > 0)
			assert(pthread_create(&threads[i].thread, NULL, family_run, &threads[i]) ==
			       0);
	}
	family_run(&threads[0]);
	for (uint32_t i = 1; i < count; i++)
		assert(pthread_join(threads[i].thread, NULL) == 0);
}

static _Noreturn void family_live(struct family_process *self);

static void family_fork(struct testing_rng *rng)
{
	uint32_t slot = __atomic_fetch_add(&family->count, 1, __ATOMIC_RELAXED);
	struct family_process *child;
	pid_t pid;

	if (slot >= FAMILY_PROCESSES) {
		__atomic_fetch_sub(&family->count, 1, __ATOMIC_RELAXED);
		return;
	}
	child = &family->processes[slot];
	child->seed = testing_random(rng);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		family_live(child);
}

static void family_vfork(struct testing_rng *rng)
{
	pid_t child;

	if (OBSERVER_TSAN) /* TSan turns it into fork() */
		return;
	child = vfork(); /* NOLINT: a call in a vfork child is what is tested */
	if (child == 0) {
		family_call(&family_self->shares[0], 0, rng); /* NOLINT */
		_exit(0);
	}
	assert(waitpid(child, NULL, 0) == child);
}

/* Whether there is a book; once there was one there always is, even if its descriptor is closed. */
static void family_look(struct family_process *self)
{
	if (!self->has_book)
		self->has_book = observer_count(getpid()) != 0;
}

/* Between two batches: actions that affect the whole process. */
static void family_happen(struct testing_rng *rng)
{
	switch (testing_below(rng, 12)) {
	case 0:
	case 1:
	case 2:
		family_fork(rng);
		break;
	case 3:
		family_vfork(rng);
		break;
	case 4:
		ttmem_phase_push("phase");
		break;
	case 5:
		ttmem_phase_pop();
		break;
	case 6:
		ttmem_pause();
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, "not recorded");
		family_self->shares[0].paused++;
		ttmem_resume();
		break;
	case 7:
		/* Only if the reader already holds the book. */
		if (family_self->has_book == 2)
			assert(close_range(3, ~0u, 0) == 0);
		break;
	case 8:
		ttmem_goodbye();
		family_look(family_self);
		family_self->is_closed |= family_self->has_book != 0;
		break;
	default:
		break;
	}
}

/* Reports that the batch is done, and waits for the next. */
static void family_rest(struct family_process *self, uint32_t batch)
{
	family_look(self);
	__atomic_store_n(&self->done, batch + 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&family->batch, __ATOMIC_ACQUIRE) <= batch)
		usleep(300);
}

static _Noreturn void family_live(struct family_process *self)
{
	struct testing_rng rng = {self->seed};
	uint32_t batch = __atomic_load_n(&family->batch, __ATOMIC_ACQUIRE);

	self->pid = getpid();
	family_self = self;
	for (;; batch++) {
		family_run_threads(&rng);
		family_happen(&rng);
		family_rest(self, batch);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (self != &family->processes[0] && testing_below(&rng, 8) == 0)
			break;
	}
	/* From here on the book must keep its content; the model stays. */
	__atomic_store_n(&self->has_ended, 1, __ATOMIC_RELEASE);
	kill(getpid(), SIGKILL);
	abort();
}

static bool family_differs(const struct family_process *process, const char *what, uint32_t device,
			   uint32_t type, uint64_t is, uint64_t should)
{
	if (is == should)
		return false;
	printf("process %d (%s), device %u, type %u: %s is %" PRIu64 ", should be %" PRIu64 "\n",
	       (int)(process - family->processes), process->has_ended ? "dead" : "alive", device,
	       type, what, is, should);
	return true;
}

static struct thread_model_counters family_sum(const struct family_process *process,
					       uint32_t device, uint32_t type)
{
	struct thread_model_counters sum = {0};

	for (uint32_t i = 0; i < FAMILY_THREADS; i++) {
		const struct thread_model_counters *counters =
			&process->shares[i].counters[device][type];
		const uint64_t *from = &counters->bytes;
		uint64_t *to = &sum.bytes;

		for (size_t k = 0; k < sizeof(sum) / sizeof(*to); k++)
			to[k] += from[k];
	}
	return sum;
}

static bool family_type_is(const struct family_process *process, const struct view *view,
			   uint32_t device, uint32_t type)
{
	struct thread_model_counters sum = family_sum(process, device, type);
	const struct book_cold *cold = &view->cold[type];
	const struct book_hot *hot = &view->hot[type];
	bool differs = false;

#define FAMILY_SAME(is, member) \
	differs |= family_differs(process, #member, device, type, is, sum.member)
	FAMILY_SAME(hot->bytes, bytes);
	FAMILY_SAME(hot->buffers, buffers);
	FAMILY_SAME(hot->allocs, allocs);
	FAMILY_SAME(hot->frees, frees);
	FAMILY_SAME(cold->unknown_frees + cold->double_frees, no_frees);
	FAMILY_SAME(cold->size_changes, size_changes);
	FAMILY_SAME(cold->realloc_live, realloc_live);
	FAMILY_SAME(cold->ambiguous_frees, ambiguous_frees);
	FAMILY_SAME(cold->hooked, hooked);
#undef FAMILY_SAME
	return !differs && hot->peak >= hot->bytes;
}

/* Every row of the view is in the model; the sums have shown that none is missing. */
static bool family_rows_are(const struct family_process *process, struct observer *w,
			    uint32_t device)
{
	struct view_iterator it = {0};
	char text[32];

	while (view_next(&w->view, &it)) {
		uint32_t type = book_meta_type(it.record->meta);
		uint32_t thread = (uint32_t)(it.record->address >> 20);
		uint32_t key = (uint32_t)(it.record->address >> 6) & 0x3fff;
		const struct thread_model_row *row;
		const char *name;

		if (thread >= FAMILY_THREADS || key >= THREAD_MODEL_KEYS)
			return !family_differs(process, "address", device, type, it.record->address,
					       0);
		row = &process->shares[thread].rows[device][type][key];
		name = family_name(row->name, text);
		if (family_differs(process, "size", device, type, it.record->size, row->size) ||
		    family_differs(process, "refs", device, type, book_meta_refs(it.record->meta),
				   row->refs) ||
		    strcmp(observer_text(w, it.record->name), name ? name : "") != 0)
			return false;
	}
	return true;
}

static bool family_device_is(const struct family_process *process, struct observer *w,
			     uint32_t device, enum view_owner owner)
{
	bool same = true;

	if (!observer_look(w, family_device[device], owner))
		w->view = VIEW_NULL; /* never had an event: all 0 */
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		same = family_type_is(process, &w->view, device, type) && same;
	same = !family_differs(process, "inexact", device, 0, w->view.inexact, 0) && same;
	return family_rows_are(process, w, device) && same;
}

/* In a process of its own. A lock's holder without a processor for two seconds costs others events. */
static bool family_process_is(const struct family_process *process, int fd, bool *ret_was_busy)
{
	struct observer w;
	bool same = true;
	uint64_t paused = 0;

	observer_open_fd(&w, fd);
	if (observer_header(&w)->rejected.lock > 0) {
		*ret_was_busy = true;
		observer_close(&w);
		return true;
	}
	for (uint32_t device = 0; device < THREAD_MODEL_DEVICES; device++) {
		same = family_device_is(process, &w, device, VIEW_DEAD) && same;
		if (!process->has_ended)
			same = family_device_is(process, &w, device, VIEW_LIVING) && same;
	}
	for (uint32_t i = 0; i < FAMILY_THREADS; i++)
		paused += process->shares[i].paused;
	same = !family_differs(process, "paused", 0, 0, observer_header(&w)->rejected.paused,
			       paused) &&
	       same;
	same = !family_differs(process, "state", 0, 0, observer_header(&w)->state,
			       process->is_closed ? BOOK_STATE_CLOSED : BOOK_STATE_OPEN) &&
	       same;
	same = !family_differs(process, "pid", 0, 0, observer_header(&w)->pid,
			       (uint64_t)process->pid) &&
	       same;
	if (!same)
		printf("turned away: %u for room\n",
		       (unsigned int)observer_header(&w)->rejected.room);
	observer_close(&w);
	return same;
}

/* Compares all processes ever created with their books, if they had one. False: too busy for that. */
static bool family_compare(int fds[FAMILY_PROCESSES])
{
	uint32_t count = family->count;
	int status;
	pid_t reader;

	for (uint32_t i = 0; i < count; i++) {
		struct family_process *process = &family->processes[i];
		struct observer w;

		if (fds[i] >= 0 || !process->has_book || process->has_ended)
			continue;
		assert(observer_open(&w, process->pid));
		fds[i] = fcntl(w.fd, F_DUPFD_CLOEXEC, 0);
		observer_close(&w);
		process->has_book = 2;
	}
	reader = fork();
	assert(reader >= 0);
	if (reader == 0) {
		bool same = true, was_busy = false;

		for (uint32_t i = 0; i < count; i++) {
			if (fds[i] >= 0)
				same = family_process_is(&family->processes[i], fds[i],
							 &was_busy) &&
				       same;
		}
		(void)fflush(stdout); /* best effort: the differences */
		_exit(!same ? 1 : was_busy ? FAMILY_BUSY : 0);
	}
	assert(waitpid(reader, &status, 0) == reader && WIFEXITED(status));
	assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FAMILY_BUSY);
	return WEXITSTATUS(status) == 0;
}

static void family_await(uint32_t done)
{
	double deadline = observer_now() + 200;
	uint32_t i = 0;

	while (i < __atomic_load_n(&family->count, __ATOMIC_ACQUIRE)) {
		const struct family_process *process = &family->processes[i];

		if (__atomic_load_n(&process->done, __ATOMIC_ACQUIRE) == done ||
		    __atomic_load_n(&process->has_ended, __ATOMIC_ACQUIRE)) {
			i++;
			continue;
		}
		if (observer_now() > deadline)
			printf("process %u does not come to rest\n", i);
		assert(observer_now() < deadline);
		usleep(300);
	}
}

/* False: the machine was too busy for its result to count. */
static bool family_round(struct testing_rng *rng)
{
	int fds[FAMILY_PROCESSES];
	bool counts = true;
	pid_t first;

	memset(family, 0, sizeof(*family));
	memset(fds, -1, sizeof(fds));
	family->count = 1;
	family->processes[0].seed = testing_random(rng);
	first = fork();
	assert(first >= 0);
	if (first == 0)
		family_live(&family->processes[0]);
	for (uint32_t batch = 0; batch < FAMILY_BATCHES; batch++) {
		__atomic_store_n(&family->batch, batch, __ATOMIC_RELEASE);
		family_await(batch + 1);
		counts = family_compare(fds) && counts;
	}
	/* All processes are paused. */
	for (uint32_t i = 0; i < family->count; i++) {
		if (!family->processes[i].has_ended)
			kill(family->processes[i].pid, SIGKILL);
		if (fds[i] >= 0)
			close(fds[i]);
	}
	assert(waitpid(first, NULL, 0) == first);
	return counts;
}

UNIT_LONG(every_kind_of_descendant_has_an_exact_book, 300)
{
	struct testing_rng rng = testing_rng_new();
	uint32_t rounds = testing_soak() ? 300 : testing_quick() ? 2 : 16;

	family = mmap(NULL, sizeof(*family), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert(family != MAP_FAILED);
	observer_track();
	unit_expect_fds(0);
	for (uint32_t i = 0, busy = 0; i < rounds + busy; i++) {
		busy += !family_round(&rng);
		assert(busy <= FAMILY_BUSY_MAX);
	}
}
