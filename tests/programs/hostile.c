/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that starts with a valid book from the library and then writes into its own mapping
 * what no library would. Prints its pid once it has begun, and goes on until it is killed.
 *
 *	slow DEVICES		event numbers run ahead of the reader
 *	incidents		every entry is a new incident at each reading
 *	failed			the same for failed allocations, and floods the socket with notices
 *	books COUNT		hands over this many copies of the book
 *	source			hands over a copy that claims to be kept by a daemon
 *	descriptors COUNT CHILDREN	this many open files, in this many processes
 *	module FROM TO		says that its code is in another file
 *	devices COUNT SEED	declares this many devices with ids and sizes that no card has
 *	busy-devices COUNT SEED	the same, and then declares, allocates and frees all the time
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "book/format/layout.h"
#include "wire/offer.h"

static uint8_t *base; /* the book, all of it writable */
static size_t length;

static void ready(void)
{
	printf("%d\n", (int)getpid());
	fflush(stdout);
}

/* The library maps its book without access and makes pages accessible as the book grows. */
static void find_book(void)
{
	uint64_t start, end, first = 0, last = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/memfd:ttmem") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			continue;
		first = first ? first : start;
		last = end;
	}
	if (maps)
		(void)fclose(maps); /* only read */
	base = (uint8_t *)(uintptr_t)first;
	length = (size_t)(last - first);
	if (!base || mprotect(base, length, PROT_READ | PROT_WRITE) < 0) {
		perror("hostile: no book");
		exit(1);
	}
}

static struct book_shard *shard(uint32_t device)
{
	return (struct book_shard *)(void *)(base + book_shard_offset(device));
}

static void slow(uint32_t devices)
{
	ready();
	for (;;) {
		for (uint32_t i = 0; i < devices; i++) {
			struct book_shard *page = shard(i);

			/* As much to read as possible, and never the same. */
			page->checkpoint[0].number = page->head;
			__atomic_store_n(&page->head, page->head + page->ring_events - 1,
					 __ATOMIC_RELEASE);
		}
	}
}

static void fill_incidents(uint32_t kind, uint64_t round)
{
	struct book_header *header = (struct book_header *)(void *)base;

	for (uint32_t i = 0; i < BOOK_INCIDENTS_PER_KIND; i++) {
		struct book_incident *entry =
			(struct book_incident *)(void *)(base + book_incident_offset(kind, i));

		*entry = (struct book_incident){
			.commit = 1,
			.count = 1,
			.address = round * BOOK_INCIDENTS_PER_KIND + i,
			.size = 1 + round * BOOK_INCIDENTS_PER_KIND + i,
			.largest_free = UINT64_MAX,
		};
	}
	header->incident_count[kind] = BOOK_INCIDENTS_PER_KIND;
}

/* The library's counters tell readers that there is something new. */
static void incidents(void)
{
	ready();
	for (uint64_t round = 0;; round++) {
		for (uint32_t kind = 0; kind < BOOK_INCIDENT_ALLOC_FAILED; kind++)
			fill_incidents(kind, round);
		ttmem_free(0, TTMEM_DRAM, 0x700000 + round);
		usleep(10000);
	}
}

static int offer_of_library(void)
{
	for (int fd = 3; fd < 65536; fd++) {
		struct sockaddr_un peer;
		socklen_t size = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
		    peer.sun_family == AF_UNIX)
			return fd;
	}
	return -1;
}

static void failed(void)
{
	static const struct offer_notice notice = {
		.magic = OFFER_NOTICE_MAGIC,
		.version = OFFER_VERSION,
		.size = sizeof(notice),
		.what = OFFER_NOTICE_FAILED,
	};
	int fd = offer_of_library();

	ready();
	for (uint64_t round = 0;; round++) {
		fill_incidents(BOOK_INCIDENT_ALLOC_FAILED, round);
		(void)send(fd, &notice, sizeof(notice), MSG_NOSIGNAL | MSG_DONTWAIT); /* may fail */
		usleep(11000); /* within the daemon's limit */
	}
}

static int connect_to_daemon(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", getenv("TTMEM_SOCKET"));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		perror("hostile: connect");
		exit(1);
	}
	return fd;
}

/* Another file with the same identity. */
static int copy_book(uint32_t source)
{
	int fd = memfd_create("ttmem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct book_header header;

	memcpy(&header, base, sizeof(header));
	header.source = source;
	if (ftruncate(fd, (off_t)header.file_size) < 0 ||
	    pwrite(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0) {
		perror("hostile: copy");
		exit(1);
	}
	return fd;
}

/* The connection stays open. */
static void hand_over(int book)
{
	struct offer offer = {
		.magic = OFFER_MAGIC, .version = OFFER_VERSION, .size = sizeof(offer)};
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec vector = {.iov_base = &offer, .iov_len = sizeof(offer)};
	struct msghdr message = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = connect_to_daemon();

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &book, sizeof(int));
	while (sendmsg(fd, &message, MSG_NOSIGNAL) < 0) {
		if (errno != ETOOMANYREFS && errno != EINTR) {
			perror("hostile: offer");
			exit(1);
		}
		usleep(1000);
	}
}

static void books(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int fd = copy_book(BOOK_SOURCE_LIBRARY);

		/* A book that is not mapped counts as left behind by exec. */
		if (mmap(NULL, BOOK_PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) {
			perror("hostile: map");
			exit(1);
		}
		hand_over(fd);
		(void)close(fd); /* the daemon has it */
	}
	ready();
	for (;;)
		pause();
}

static void descriptors(uint32_t count, uint32_t children)
{
	for (uint32_t i = 0; i < count; i++) {
		if (fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) < 0) {
			perror("hostile: dup");
			exit(1);
		}
	}
	for (uint32_t i = 0; i < children; i++) {
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* SIGKILL is valid */
			for (;;)
				pause();
		}
	}
	ready();
	for (;;)
		pause();
}

/* Ids that no card has; those of two seeds differ. */
static void declare(uint32_t count, uint32_t seed)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ttmem_device_args args = {
			.struct_size = sizeof(args),
			.device = i,
			.unique_id = (uint64_t)(seed + 1) << 32 | (i + 1),
			.card = "evilcard",
		};

		args.memory[TTMEM_DRAM].capacity = UINT64_C(1) << 63;
		ttmem_device(&args);
		/* Memory on all would take more room than a book has. */
		if (i % 64 == 0)
			ttmem_alloc(i, TTMEM_DRAM, 0x2000, 16, NULL);
	}
}

static void devices(uint32_t count, uint32_t seed)
{
	declare(count, seed);
	ready();
	for (;;)
		pause();
}

/* Never the same twice. */
static void busy_devices(uint32_t count, uint32_t seed)
{
	const struct timespec rest = {.tv_nsec = 10000000};

	declare(count, seed);
	ready();
	for (;;) {
		for (uint32_t i = 0; i < count; i += 64) {
			ttmem_alloc(i, TTMEM_DRAM, 0x4000, 16, NULL);
			ttmem_free(i, TTMEM_DRAM, 0x4000);
		}
		declare(1, seed);
		(void)nanosleep(&rest, NULL); /* a shorter rest is no harm */
	}
}

/* In the book the code of this program is in another file, whose path has the same length. */
static void module(const char *from, const char *to)
{
	size_t size = from ? strlen(from) : 0, count = 0;
	uint8_t *at = base;

	while (size && to && strlen(to) == size &&
	       (at = memmem(at, length - (size_t)(at - base), from, size))) {
		memcpy(at, to, size);
		count++;
	}
	if (count == 0) {
		fputs("hostile: no such module\n", stderr);
		exit(1);
	}
	ready();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uint32_t number = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;
	uint32_t other = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 1;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* on failure some modes do less */
	}
	for (uint32_t i = 0; i < (strcmp(mode, "slow") == 0 ? number : 1); i++)
		ttmem_alloc(i, TTMEM_DRAM, 0x1000, 64, "hostile");
	find_book();
	if (strcmp(mode, "slow") == 0)
		slow(number);
	if (strcmp(mode, "incidents") == 0)
		incidents();
	if (strcmp(mode, "failed") == 0)
		failed();
	if (strcmp(mode, "books") == 0)
		books(number);
	if (strcmp(mode, "source") == 0) {
		hand_over(copy_book(BOOK_SOURCE_SOCKET));
		ready();
		for (;;)
			pause();
	}
	if (strcmp(mode, "descriptors") == 0)
		descriptors(number, other);
	if (strcmp(mode, "devices") == 0)
		devices(number, other);
	if (strcmp(mode, "busy-devices") == 0)
		busy_devices(number, other);
	if (strcmp(mode, "module") == 0 && argc > 3)
		module(argv[2], argv[3]);
	return 2;
}
