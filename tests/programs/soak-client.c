/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that allocates and frees at random, and writes down what it holds where a checker finds it even
 * after its death: the truth that the daemon's answers are compared with.
 *
 *	soak-client native TRUTH DEVICE RATE
 *	soak-client old TRUTH DEVICE RATE SOCKET	the old protocol
 *
 * Runs until it is killed. An old one whose connection ends says so in its truth, and ends too.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "legacy/wire/legacy-encode.h"

#define SOAK_SLOTS 256u
#define SOAK_BATCHES 50u /* per second */

/* tests/load/soak_mixed.py reads it. Between the words of an event @turn is odd: it may count or not. */
struct soak_truth {
	uint64_t turn;
	uint64_t events;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t next_bytes;
	uint64_t next_buffers;
	uint64_t is_cut; /* the connection ended */
	uint64_t reserved;
};

struct soak {
	struct soak_truth *truth;
	uint32_t device;
	int fd; /* -1 = native */
	uint64_t size[SOAK_SLOTS];
	uint64_t seed;
};

static uint64_t soak_random(struct soak *soak)
{
	soak->seed ^= soak->seed << 13;
	soak->seed ^= soak->seed >> 7;
	soak->seed ^= soak->seed << 17;
	return soak->seed;
}

static void soak_store(uint64_t *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_SEQ_CST);
}

/* One whole message, as the original client sends it. */
static void soak_send(struct soak *soak, const struct legacy_message *message)
{
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t size;

	if (legacy_encode_request(LEGACY_W72, message, bytes, &size) < 0)
		_exit(1);
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(soak->fd, bytes + sent, size - sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			soak_store(&soak->truth->is_cut, 1);
			_exit(0);
		}
		sent += (size_t)n;
	}
}

static void soak_tell(struct soak *soak, uint64_t address, uint64_t size, bool is_free)
{
	if (soak->fd >= 0)
		soak_send(soak, &(struct legacy_message){
					.type = is_free ? LEGACY_FREE : LEGACY_ALLOC,
					.pid = getpid(),
					.device = (int32_t)soak->device,
					.id = address,
					.size = is_free ? 0 : size,
					.timestamp = is_free ? 0 : 1700000000,
					.name = "",
					.stack = "",
				});
	else if (is_free)
		ttmem_free(soak->device, TTMEM_DRAM, address);
	else
		ttmem_alloc(soak->device, TTMEM_DRAM, address, size, "soak");
}

static void soak_event(struct soak *soak)
{
	struct soak_truth *truth = soak->truth;
	uint32_t slot = (uint32_t)(soak_random(soak) % SOAK_SLOTS);
	uint64_t size = soak->size[slot];
	bool is_free = size != 0;

	if (!is_free)
		size = 1 + soak_random(soak) % 1000000;
	soak_store(&truth->next_bytes, truth->bytes + (is_free ? -size : size));
	soak_store(&truth->next_buffers, truth->buffers + (is_free ? UINT64_MAX : 1));
	soak_store(&truth->turn, truth->turn + 1);
	soak_tell(soak, (slot + 1) * UINT64_C(0x100000), size, is_free);
	soak->size[slot] = is_free ? 0 : size;
	soak_store(&truth->bytes, truth->next_bytes);
	soak_store(&truth->buffers, truth->next_buffers);
	soak_store(&truth->events, truth->events + 1);
	soak_store(&truth->turn, truth->turn + 1);
}

static int soak_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	while (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		(void)usleep(20000); /* the daemon is being started */
	return fd;
}

static struct soak_truth *soak_open_truth(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *memory;

	if (fd < 0 || ftruncate(fd, sizeof(struct soak_truth)) < 0)
		return NULL;
	memory = mmap(NULL, sizeof(struct soak_truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

int main(int argc, char **argv)
{
	struct soak soak = {.fd = -1};
	struct timespec pause = {.tv_nsec = 1000000000 / SOAK_BATCHES};
	unsigned long rate;

	if (argc < 5 || (strcmp(argv[1], "old") == 0 && argc < 6))
		return 2;
	prctl(PR_SET_PDEATHSIG, 9);
	soak.truth = soak_open_truth(argv[2]);
	soak.device = (uint32_t)strtoul(argv[3], NULL, 10);
	rate = strtoul(argv[4], NULL, 10);
	soak.seed = (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15) | 1;
	if (!soak.truth)
		return 1;
	if (strcmp(argv[1], "old") == 0) {
		soak.fd = soak_connect(argv[5]);
		if (soak.fd < 0)
			return 1;
	}
	for (;;) {
		for (unsigned long i = 0; i < rate / SOAK_BATCHES + 1; i++)
			soak_event(&soak);
		(void)nanosleep(&pause, NULL);
	}
}
