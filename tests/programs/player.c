/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program under the control of a test: it reads one call of the library per line from stdin, makes
 * it, and answers "ok", so that the test knows what has happened by then.
 *
 *	alloc DEVICE TYPE ADDRESS SIZE [NAME]	free DEVICE TYPE ADDRESS	failed DEVICE TYPE SIZE FREE
 *	device DEVICE UID ARCH CARD REMOTE DRAM L1 [BANKS]	close DEVICE
 *	window DEVICE TYPE BASE BANK-SIZE BANKS
 *	kernel DEVICE ADDRESS SIZE SORT		hooked DEVICE TYPE SIZE		alias DEVICE ADDRESS SIZE
 *	push NAME	pop	phase NAME	mark NAME	pause	resume	goodbye
 *	many DEVICE TYPE ADDRESS SIZE COUNT	burst DEVICE COUNT	leak DEVICE SIZE EVERY_MS
 *	fork (answers with the child's pid; the child takes over stdin)
 *	hold (a child that only sleeps; answers with its pid)
 *	thread	closefds	exec	hide (from debuggers and us)	setuid UID
 *	leave (the first thread ends, another one goes on with the script)
 *	map PATH (as tt-metal maps its region of a device)	ready (does nothing)
 *
 * Numbers are decimal or 0x; names may hold %XX for any byte. End of input: _exit(0), without goodbye.
 */

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#define WORDS 10

static uint64_t number(const char *text)
{
	return text ? strtoull(text, NULL, 0) : 0;
}

static uint32_t small(const char *text)
{
	return (uint32_t)number(text);
}

/* Decodes %XX in place. NULL stays NULL. */
static const char *bytes(char *text)
{
	char *from = text, *to = text;

	while (from && *from) {
		char hex[3] = {0};

		if (from[0] == '%' && isxdigit((unsigned char)from[1]) &&
		    isxdigit((unsigned char)from[2])) {
			memcpy(hex, from + 1, 2);
			*to++ = (char)strtoul(hex, NULL, 16);
			from += 3;
		} else {
			*to++ = *from++;
		}
	}
	if (to)
		*to = '\0';
	return text;
}

static uint32_t type(const char *text)
{
	static const char *const names[] = {
#define TTMEM_TYPE(number, name, ...) [number] = #name,
#include <ttmem/types.def>
	};

	for (uint32_t i = 0; text && i < TTMEM_TYPE_COUNT; i++) {
		if (strcmp(text, names[i]) == 0)
			return i;
	}
	return TTMEM_ANY;
}

static struct ttmem_device_args declared[16]; /* of the first devices */

static void declare(char **word)
{
	struct ttmem_device_args args = {
		.struct_size = sizeof(args),
		.device = small(word[1]),
		.unique_id = number(word[2]),
		.arch = word[3],
		.card = word[4],
		.remote = small(word[5]),
	};

	args.memory[TTMEM_DRAM].capacity = number(word[6]);
	args.memory[TTMEM_L1].capacity = number(word[7]);
	for (uint32_t i = TTMEM_DRAM; i <= TTMEM_L1; i++) {
		args.memory[i].banks = small(word[8]);
		args.memory[i].bank_size = word[8] ? args.memory[i].capacity / small(word[8]) : 0;
		args.memory[i].alignment = word[8] ? 32 : 0;
	}
	ttmem_device(&args);
	if (args.device < sizeof(declared) / sizeof(*declared)) {
		args.arch = args.card = NULL; /* they are in the line */
		declared[args.device] = args;
	}
}

/* "window DEVICE TYPE BASE BANK-SIZE BANKS": where a memory lies, of a device that was declared */
static void window(char **word)
{
	uint32_t device = small(word[1]) % (sizeof(declared) / sizeof(*declared));
	uint32_t memory = type(word[2]);
	struct ttmem_device_args *args = &declared[device];

	args->struct_size = sizeof(*args);
	args->device = device;
	args->memory[memory < TTMEM_TYPE_COUNT ? memory : 0] = (struct ttmem_memory_facts){
		.capacity = number(word[4]) * small(word[5]),
		.bank_base = number(word[3]),
		.bank_size = number(word[4]),
		.banks = small(word[5]),
		.alignment = 32,
	};
	ttmem_device(args);
}

static void extended(char **word)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.device = small(word[1]),
	};

	if (strcmp(word[0], "kernel") == 0) {
		args.type = TTMEM_KERNEL;
		args.address = number(word[2]);
		args.size = number(word[3]);
		args.kernel_sort = small(word[4]);
	} else if (strcmp(word[0], "alias") == 0) {
		args.type = TTMEM_CB;
		args.flags = TTMEM_FLAG_ALIAS;
		args.address = number(word[2]);
		args.size = number(word[3]);
	} else {
		args.type = type(word[2]);
		args.flags = TTMEM_FLAG_HOOKED;
		args.size = number(word[3]);
	}
	ttmem_alloc_ex(&args);
}

/* "place DEVICE TYPE ADDRESS SIZE SPACE SIZE_PER_BANK BANKS" */
static void place(char **word)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args),
		.device = small(word[1]),
		.type = type(word[2]),
		.address = number(word[3]),
		.size = number(word[4]),
		.space = small(word[5]),
		.size_per_bank = number(word[6]),
		.banks = small(word[7]),
	};

	ttmem_alloc_ex(&args);
}

/* "take DEVICE TYPE ADDRESS SPACE" */
static void take(char **word)
{
	struct ttmem_free_args args = {
		.struct_size = sizeof(args),
		.device = small(word[1]),
		.type = type(word[2]),
		.flags = TTMEM_FREE_IN_SPACE,
		.address = number(word[3]),
		.space = small(word[4]),
	};

	ttmem_free_ex(&args);
}

/* "clash DEVICE TYPE ADDRESS SPACE WANTED-ADDRESS WANTED-SIZE [NAME]" */
static void clash(char **word)
{
	struct ttmem_clash_args args = {
		.struct_size = sizeof(args),
		.device = small(word[1]),
		.type = type(word[2]),
		.address = number(word[3]),
		.space = small(word[4]),
		.wanted_address = number(word[5]),
		.wanted_size = number(word[6]),
		.name = word[7],
	};

	ttmem_clash(&args);
}

static void many(char **word)
{
	uint64_t size = number(word[4]);

	for (uint64_t i = 0; i < number(word[5]); i++)
		ttmem_alloc(small(word[1]), type(word[2]), number(word[3]) + i * size, size,
			    "many");
}

/* Allocates and frees one buffer as fast as possible. */
static void burst(char **word)
{
	for (uint64_t i = 0; i < number(word[2]); i++) {
		ttmem_alloc(small(word[1]), TTMEM_L1, 0x5000, 64, "burst");
		ttmem_free(small(word[1]), TTMEM_L1, 0x5000);
	}
}

static void *leak(void *argument)
{
	char **word = argument;
	uint64_t size = number(word[2]);

	for (uint64_t i = 0;; i++) {
		ttmem_alloc(small(word[1]), TTMEM_DRAM, 0x100000 + i * size, size, "leaked");
		usleep(small(word[3]) * 1000);
	}
	return NULL;
}

/* The leak goes on while other calls are made. */
static void start_leak(char **word)
{
	static char *copies[WORDS];
	pthread_t thread;

	for (int i = 0; word[i]; i++)
		copies[i] = strdup(word[i]);
	pthread_create(&thread, NULL, leak, copies);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, 0);
	return pid;
}

static void *alloc_in_thread(void *argument)
{
	(void)argument;
	ttmem_alloc(0, TTMEM_DRAM, 0x7000, 4096, "thread");
	return NULL;
}

/* Stays mapped until the end. */
static bool map(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	bool is_mapped = fd >= 0 &&
			 mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;

	if (fd >= 0)
		close(fd);
	return is_mapped;
}

static void *play(void *argument);

/* Calls that end or split the process. False: not one of these. */
static bool life(char **word)
{
	pthread_t thread;
	pid_t pid;

	if (strcmp(word[0], "fork") == 0) {
		pid = child();
		if (pid > 0)
			pause(); /* the child goes on with the script */
		printf("%d\n", (int)getpid());
	} else if (strcmp(word[0], "hold") == 0) {
		pid = child();
		if (pid == 0) {
			close(0);
			close(1);
			sleep(600);
			_exit(0);
		}
		printf("%d\n", (int)pid);
	} else if (strcmp(word[0], "thread") == 0) {
		pthread_create(&thread, NULL, alloc_in_thread, NULL);
		pthread_join(thread, NULL);
	} else if (strcmp(word[0], "hide") == 0) {
		prctl(PR_SET_DUMPABLE, 0);
	} else if (strcmp(word[0], "closefds") == 0) {
		closefrom(3);
	} else if (strcmp(word[0], "setuid") == 0) {
		return setuid(small(word[1])) == 0;
	} else if (strcmp(word[0], "map") == 0) {
		return map(word[1]);
	} else if (strcmp(word[0], "leave") == 0) {
		pthread_create(&thread, NULL, play, NULL);
		pthread_exit(NULL);
	} else if (strcmp(word[0], "exec") == 0) {
		execlp("sleep", "sleep", "600", NULL);
	} else {
		return false;
	}
	return true;
}

static bool call(char **word)
{
	if (strcmp(word[0], "alloc") == 0)
		ttmem_alloc(small(word[1]), type(word[2]), number(word[3]), number(word[4]),
			    bytes(word[5]));
	else if (strcmp(word[0], "free") == 0)
		ttmem_free(small(word[1]), type(word[2]), number(word[3]));
	else if (strcmp(word[0], "failed") == 0)
		ttmem_alloc_failed(small(word[1]), type(word[2]), number(word[3]), number(word[4]));
	else if (strcmp(word[0], "device") == 0)
		declare(word);
	else if (strcmp(word[0], "window") == 0)
		window(word);
	else if (strcmp(word[0], "close") == 0)
		ttmem_device_close(small(word[1]));
	else if (strcmp(word[0], "kernel") == 0 || strcmp(word[0], "hooked") == 0 ||
		 strcmp(word[0], "alias") == 0)
		extended(word);
	else if (strcmp(word[0], "place") == 0)
		place(word);
	else if (strcmp(word[0], "take") == 0)
		take(word);
	else if (strcmp(word[0], "clash") == 0)
		clash(word);
	else if (strcmp(word[0], "end") == 0)
		(void)ttmem_end_space(small(word[1]), small(word[2]));
	else if (strcmp(word[0], "many") == 0)
		many(word);
	else if (strcmp(word[0], "burst") == 0)
		burst(word);
	else if (strcmp(word[0], "leak") == 0)
		start_leak(word);
	else
		return false;
	return true;
}

static bool label(char **word)
{
	if (strcmp(word[0], "push") == 0)
		ttmem_phase_push(bytes(word[1]));
	else if (strcmp(word[0], "pop") == 0)
		ttmem_phase_pop();
	else if (strcmp(word[0], "phase") == 0)
		ttmem_phase_process(bytes(word[1]));
	else if (strcmp(word[0], "mark") == 0)
		ttmem_mark(bytes(word[1]));
	else if (strcmp(word[0], "pause") == 0)
		ttmem_pause();
	else if (strcmp(word[0], "resume") == 0)
		ttmem_resume();
	else if (strcmp(word[0], "goodbye") == 0)
		ttmem_goodbye();
	else
		return false;
	return true;
}

static void *play(void *argument)
{
	char line[16384];

	if (!argument) /* replaces a thread that has ended without an answer */
		puts("ok");
	while (fgets(line, sizeof(line), stdin)) {
		char *word[WORDS + 1] = {0}, *rest = line;
		bool known;

		for (int i = 0; i < WORDS && (word[i] = strsep(&rest, " \n")) && *word[i]; i++)
			;
		for (int i = 0; i < WORDS; i++) {
			if (word[i] && !*word[i])
				word[i] = NULL;
		}
		if (!word[0])
			continue;
		known = strcmp(word[0], "ready") == 0 || call(word) || label(word) || life(word);
		puts(known ? "ok" : "unknown");
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	(void)argc;
	/* A test that dies takes its programs with it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setlinebuf(stdout);
	play(argv);
}
