/* SPDX-License-Identifier: Apache-2.0 */

/* Books, random numbers and operations for tests. */

#include "book/testing/book-testing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit.h"
#include "book/write/intern.h"

/* Line buffering: output before an abort must be seen, and output before a fork only once. */
__attribute__((constructor)) static void testing_print_lines(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

struct testing_rng testing_rng_new(void)
{
	const char *text = secure_getenv("TTMEM_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : clock_ns(CLOCK_MONOTONIC);

	printf("TTMEM_SEED=%" PRIu64 "\n", seed);
	return (struct testing_rng){seed};
}

/* splitmix64: any seed will do, even 0. */
uint64_t testing_random(struct testing_rng *rng)
{
	uint64_t z = rng->state += HASH_K0;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t testing_below(struct testing_rng *rng, uint32_t limit)
{
	return (uint32_t)((testing_random(rng) >> 32) * limit >> 32);
}

bool testing_soak(void)
{
	const char *text = secure_getenv("TTMEM_SOAK");

	return text && *text && strcmp(text, "0") != 0;
}

bool testing_quick(void)
{
	return secure_getenv("TTMEM_TEST_QUICK") != NULL;
}

const char *testing_corpus(void)
{
	const char *text = secure_getenv("TTMEM_TEST_CORPUS");

	return text ? text : TESTING_CORPUS;
}

static int testing_reserve(void *context, uint64_t offset, uint64_t length)
{
	struct testing_book *book = context;

	assert(offset % BOOK_PAGE == 0 && length % BOOK_PAGE == 0 && length > 0);
	assert(offset + length <= book->size);
	if (book->reserve_limit < length)
		return -ENOSPC;
	if (book->reserve_limit != UINT64_MAX)
		book->reserve_limit -= length;
	return fallocate(book->fd, 0, (off_t)offset, (off_t)length) < 0 ? -errno : 0;
}

void testing_book_init(struct testing_book *book, uint64_t size, uint32_t ring_events)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

	*book = (struct testing_book){
		.size = size,
		.room = size,
		.ring_events = ring_events,
		.clock = book_clock_choose(),
		.reserve_limit = UINT64_MAX,
	};
	book->fd = memfd_create("ttmem-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert(book->fd >= 0);
	assert(ftruncate(book->fd, (off_t)size) == 0);
	book->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, book->fd, 0);
	assert(book->base != MAP_FAILED);
	assert(fcntl(book->fd, F_ADD_SEALS, seals) == 0);
}

void testing_book_write(struct testing_book *book)
{
	const struct writer_identity identity = {
		.pid = (uint32_t)getpid(),
		.uid = (uint32_t)getuid(),
		.euid = (uint32_t)geteuid(),
		.source = BOOK_SOURCE_LIBRARY,
		.start_ticks = 1,
		.comm = "test",
		.cmdline = "test\0of a book",
		.cmdline_length = sizeof("test\0of a book"),
		.library = "0",
	};
	const struct writer_config config = {
		.base = book->base,
		.size = book->size,
		.room = book->room,
		.ring_events = book->ring_events,
		.clock = book->clock,
		.reserve = testing_reserve,
		.context = book,
		.identity = &identity,
	};

	assert(writer_new(&book->writer, &config) == 0);
}

void testing_book_read(struct testing_book *book)
{
	assert(file_fd_init(&book->file, book->fd) == 0);
	assert(reader_init(&book->reader, &book->file.file) == 0);
	book->has_reader = true;
}

void testing_book_open(struct testing_book *book)
{
	testing_book_init(book, TESTING_SIZE, BOOK_RING_MIN);
	testing_book_write(book);
	testing_book_read(book);
}

void testing_book_deinit(struct testing_book *book)
{
	if (book->has_reader)
		reader_deinit(&book->reader);
	writer_free(book->writer);
	assert(munmap(book->base, book->size) == 0);
	close(book->fd);
	*book = (struct testing_book){.fd = -1};
}

const char *testing_text(uint32_t number)
{
	static const char *const texts[TESTING_TEXTS] = {
		NULL,
		"weights",
		"kv_cache/layer 3",
		"a",
		"\xc3\xa4\xf0\x9f\xa6\x8a",
		"1234567",
		"12345678",
		"12345678901234567890123456789012345678901234567890",
	};

	assert(number < TESTING_TEXTS);
	return texts[number];
}

static void testing_op_mesh(struct writer *writer, const struct testing_op *op,
			    const struct shard_buffer *buffer)
{
	uint32_t devices[32];
	size_t n = 0;

	for (uint32_t device = 0; device < 32; device++) {
		if (op->mesh >> device & 1)
			devices[n++] = device;
	}
	if (op->kind == TESTING_ALLOC)
		writer_alloc_mesh(writer, devices, n, buffer, op->owner);
	else
		writer_free_mesh(writer, devices, n, buffer);
}

void testing_op_do(struct writer *writer, const struct testing_op *op)
{
	struct shard_buffer buffer = op->buffer;

	buffer.name = intern_string(writer, testing_text(buffer.name), BOOK_NAME_MAX);
	if (op->mesh) {
		testing_op_mesh(writer, op, &buffer);
		return;
	}
	switch (op->kind) {
	case TESTING_ALLOC:
		writer_alloc(writer, op->device, &buffer, op->owner);
		break;
	case TESTING_FREE:
		writer_free_buffer(writer, op->device, &buffer);
		break;
	case TESTING_FREE_ALL:
		writer_free_all(writer, op->device, op->owner, &buffer);
		break;
	case TESTING_END_SPACE:
		(void)writer_end_space(writer, op->device, &buffer);
		break;
	case TESTING_HOOKED:
		writer_hooked(writer, op->device, &buffer);
		break;
	case TESTING_FAILED:
		writer_failed(writer, op->device, &buffer,
			      &(struct writer_lack){.largest_free = UINT64_MAX});
		break;
	case TESTING_RESET_PEAK:
		writer_reset_peak(writer, op->device, buffer.type, buffer.thread);
		break;
	case TESTING_KINDS:
	default:
		abort();
	}
}

void testing_op_print(const struct testing_op *op)
{
	static const char *const kinds[] = {"ALLOC",  "FREE",       "FREE_ALL", "HOOKED",
					    "FAILED", "RESET_PEAK", "END_SPACE"};
	const struct shard_buffer *b = &op->buffer;

	printf("\t{TESTING_%s, .device = %u, .mesh = %#x, .owner = %" PRIu64 ",\n"
	       "\t .buffer = {.address = %#" PRIx64 ", .size = %" PRIu64 ", .type = %#x,"
	       " .flags = %#x, .name = %u, .phase = %u, .thread = %u, .stack = %u, .shape = %u,"
	       " .space = %u}},\n",
	       kinds[op->kind], op->device, op->mesh, op->owner, b->address, b->size, b->type,
	       b->flags, b->name, b->phase, b->thread, b->stack, b->shape, b->space);
}

uint32_t testing_op_device(const struct testing_op *op)
{
	return op->mesh ? (uint32_t)__builtin_ctz(op->mesh) : op->device;
}

struct testing_facts testing_facts_of(struct writer *writer, const struct testing_op *op)
{
	const struct shard *first = writer->shards[testing_op_device(op)];
	struct testing_facts facts = {.lost = false};

	for (uint32_t device = 0; device < TESTING_DEVICES; device++) {
		const struct shard *shard = writer->shards[device];

		for (uint32_t type = 0; shard && type < BOOK_TYPES; type++)
			facts.last[device][type] = shard->hot[type].last;
	}
	facts.lost = first && (first->ring[first->head & first->ring_mask].op_slot &
			       BOOK_OP_MASK) == BOOK_OP_LOST_ALLOC;
	return facts;
}

struct shard_buffer testing_buffer(uint32_t type, uint64_t address, uint64_t size)
{
	return (struct shard_buffer){.address = address, .size = size, .type = type, .thread = 7};
}

uint32_t testing_interleaved(struct writer *writer, uint64_t size_per_bank)
{
	const struct book_shape shape = {
		.size_per_bank = size_per_bank, .banks = 8, .flags = BOOK_SHAPE_INTERLEAVED};

	return intern_shape(writer, &shape);
}

static uint64_t testing_mix(uint64_t digest, const void *data, size_t length)
{
	return hash_fold(digest ^ hash_bytes(data, length), HASH_K0) + HASH_K1;
}

uint64_t testing_digest(const struct view *view)
{
	uint64_t digest = hash_u64(view->number);

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		digest = testing_mix(digest, &view->hot[type], offsetof(struct book_hot, number));
		digest = testing_mix(digest, &view->cold[type], offsetof(struct book_cold, number));
		digest = testing_mix(digest, &view->warm[type], offsetof(struct book_warm, number));
	}
	for (uint32_t i = 0; i < view->segment_count; i++) {
		const struct view_segment *segment = &view->segments[i];

		for (uint32_t k = 0; k < segment->count; k++) {
			uint64_t slot = (uint64_t)i << 32 | k;

			if (!view_is_live(&segment->records[k]))
				continue;
			digest = testing_mix(digest ^ slot, &segment->records[k],
					     sizeof(struct book_record));
		}
	}
	return digest;
}
