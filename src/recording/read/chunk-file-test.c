/* SPDX-License-Identifier: Apache-2.0 */

/* Files that are whole, torn, damaged, or no recordings at all. */

#include "recording/read/chunk-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/testing/unit.h"

#define TEST_PATH_SIZE 256
#define TEST_CHUNKS 40

/* Writes chunks byte by byte as docs/recording-format.md has them, not with the code of write/. */
struct test_file {
	char path[TEST_PATH_SIZE];
	int fd;
	uint64_t end, index;
	struct recording_entry since[TEST_CHUNKS]; /* the last index */
	size_t since_count;
	uint16_t major;
	bool has_bad_index;
};

static void test_init(struct test_file *test)
{
	*test = (struct test_file){.major = RECORDING_MAJOR};
	snprintf(test->path, sizeof(test->path), "%s/test.ttmem", getenv("TMPDIR"));
	test->fd = open(test->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(test->fd >= 0);
}

static void test_deinit(struct test_file *test)
{
	close(test->fd);
}

static void test_put(struct test_file *test, const void *bytes, size_t length)
{
	assert(pwrite(test->fd, bytes, length, (off_t)test->end) == (ssize_t)length);
	test->end += length;
}

static void test_chunk(struct test_file *test, struct recording_entry entry, const void *contents)
{
	const uint32_t frame[2] = {RECORDING_FRAME, sizeof(struct recording_chunk)};
	size_t bound = ZSTD_compressBound(entry.size);
	CLEANUP_FREE uint8_t *packed = malloc(bound);
	struct recording_chunk chunk = {
		.magic = RECORDING_MAGIC,
		.major = test->major,
		.index = test->index,
	};

	if (entry.size)
		entry.length = (uint32_t)ZSTD_compress(packed, bound, contents, entry.size, 1);
	entry.offset = test->end;
	chunk.entry = entry;
	chunk.contents_hash = hash_bytes(packed, entry.length);
	chunk.hash = hash_bytes(&chunk, offsetof(struct recording_chunk, hash));
	test_put(test, frame, sizeof(frame));
	test_put(test, &chunk, sizeof(chunk));
	test_put(test, packed, entry.length);
	test->since[test->since_count++] = entry;
}

static void test_head(struct test_file *test)
{
	test_chunk(
		test,
		(struct recording_entry){.kind = RECORDING_HEAD, .book = RECORDING_NONE, .size = 2},
		"{}");
}

static void test_bytes(struct test_file *test, uint32_t number)
{
	uint8_t contents[100];

	memset(contents, (int)number, sizeof(contents));
	test_chunk(test,
		   (struct recording_entry){.kind = RECORDING_BYTES,
					    .device = RECORDING_NONE,
					    .size = sizeof(contents),
					    .count = number},
		   contents);
}

static void test_index(struct test_file *test)
{
	uint64_t at = test->end;

	if (test->has_bad_index)
		test->since[0].offset++;
	test_chunk(test,
		   (struct recording_entry){
			   .kind = RECORDING_INDEX,
			   .book = RECORDING_NONE,
			   .size = (uint32_t)(test->since_count * sizeof(test->since[0]))},
		   test->since);
	test->index = at;
	test->since_count = 0;
}

/* A head, and three times ten chunks with an index, and five more. */
static void test_fill(struct test_file *test)
{
	test_head(test);
	for (uint32_t i = 1; i <= 35; i++) {
		test_bytes(test, i);
		if (i % 10 == 0)
			test_index(test);
	}
}

/* Opens it; the chunks that are there must be the first @count. */
static void test_expect(const struct test_file *test, size_t count, uint64_t end)
{
	CLEANUP(chunk_bytes_deinit) struct chunk_bytes contents = CHUNK_BYTES_NULL;
	char why[CHUNK_FILE_WHY_SIZE];
	struct chunk_file file;

	assert(chunk_file_open(&file, test->path, why) == 0);
	assert(file.count == count + 1);
	assert(file.end == end);
	for (size_t i = 1; i <= count; i++) {
		assert(file.entries[i].kind == RECORDING_BYTES && file.entries[i].count == i);
		assert(chunk_file_read(&file, &file.entries[i], &contents) == 0);
		assert(contents.size == 100 && contents.bytes[0] == i && contents.bytes[99] == i);
	}
	chunk_file_close(&file);
}

static void test_refused(const struct test_file *test, int result, const char *text)
{
	char why[CHUNK_FILE_WHY_SIZE] = "";
	struct chunk_file file;

	assert(chunk_file_open(&file, test->path, why) == result);
	assert(strstr(why, text) && !strchr(why, '\n'));
}

UNIT(has_the_chunks_of_indexes_and_those_after_the_last_one)
{
	CLEANUP(test_deinit) struct test_file test;

	test_init(&test);
	test_fill(&test);
	test_expect(&test, 35, test.end);
}

UNIT(reads_headers_if_an_index_is_wrong)
{
	CLEANUP(test_deinit) struct test_file test;

	test_init(&test);
	test.has_bad_index = true;
	test_fill(&test);
	test_expect(&test, 35, test.end);
}

UNIT(counts_everything_before_a_torn_end_wherever_it_is_torn)
{
	CLEANUP(test_deinit) struct test_file test;
	/* Where whole chunks end, and how many of those that are listed are before it. */
	struct {
		uint64_t end;
		size_t count;
	} whole[10];
	size_t last = 0;

	test_init(&test);
	test_head(&test);
	whole[0].end = test.end;
	whole[0].count = 0;
	for (uint32_t i = 1; i <= 5; i++) {
		test_bytes(&test, i);
		whole[++last].end = test.end;
		whole[last].count = i;
		if (i == 3) {
			test_index(&test);
			whole[++last].end = test.end;
			whole[last].count = i;
		}
	}
	while (test.end > whole[0].end) {
		test.end--;
		assert(ftruncate(test.fd, (off_t)test.end) == 0);
		while (whole[last].end > test.end)
			last--;
		test_expect(&test, whole[last].count, whole[last].end);
	}
}

UNIT(drops_a_last_chunk_whose_contents_are_not_what_was_written)
{
	CLEANUP(test_deinit) struct test_file test;
	uint64_t before;

	test_init(&test);
	test_fill(&test);
	before = test.end;
	test_bytes(&test, 36);
	assert(pwrite(test.fd, "x", 1, (off_t)test.end - 1) == 1);
	test_expect(&test, 35, before);
}

UNIT(says_so_when_contents_in_the_middle_are_damaged)
{
	CLEANUP(chunk_bytes_deinit) struct chunk_bytes contents = CHUNK_BYTES_NULL;
	CLEANUP(test_deinit) struct test_file test;
	char why[CHUNK_FILE_WHY_SIZE];
	struct chunk_file file;

	test_init(&test);
	test_fill(&test);
	assert(chunk_file_open(&file, test.path, why) == 0);
	assert(pwrite(test.fd, "x", 1, (off_t)file.entries[6].offset - 1) == 1);
	assert(chunk_file_read(&file, &file.entries[5], &contents) == -EBADMSG);
	assert(chunk_file_read(&file, &file.entries[6], &contents) == 0);
	chunk_file_close(&file);
}

UNIT(does_not_use_a_chunk_that_contradicts_itself)
{
	CLEANUP(test_deinit) struct test_file test;
	char why[CHUNK_FILE_WHY_SIZE];
	struct chunk_file file;
	struct recording_entry wrong[] = {
		{.kind = RECORDING_EVENTS, .first = 1, .last = 3, .count = 2, .stamp_last = 1},
		{.kind = RECORDING_EVENTS, .first = 0, .last = 1, .count = 2, .stamp_last = 1},
		{.kind = RECORDING_EVENTS, .first = 1, .last = 1, .count = 1, .stamp_first = 1},
		{.kind = RECORDING_EVENTS,
		 .first = 1,
		 .last = 1,
		 .count = 1,
		 .device = BOOK_DEVICES},
		{.kind = RECORDING_KEYFRAME, .last = UINT64_MAX},
		{.kind = RECORDING_BYTES, .book = RECORDING_BOOKS_MAX},
		{.kind = RECORDING_GAP, .first = 2, .last = 1},
	};

	test_init(&test);
	test_head(&test);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		test_chunk(&test, wrong[i], NULL);
	assert(chunk_file_open(&file, test.path, why) == 0);
	assert(file.count == 1 + sizeof(wrong) / sizeof(wrong[0]));
	for (size_t i = 1; i < file.count; i++)
		assert(file.entries[i].kind == 0);
	chunk_file_close(&file);
}

UNIT(refuses_what_is_no_recording)
{
	CLEANUP(test_deinit) struct test_file test;

	test_init(&test);
	test_refused(&test, -EBADMSG, "not a recording");
	test_put(&test, "hello", 5);
	test_refused(&test, -EBADMSG, "not a recording");
	unlink(test.path);
	test_refused(&test, -ENOENT, "No such file");
	assert(mkdir(test.path, 0700) == 0);
	test_refused(&test, -EBADMSG, "not a file");
}

UNIT(refuses_a_later_version_and_says_which)
{
	CLEANUP(test_deinit) struct test_file test;

	test_init(&test);
	test.major = RECORDING_MAJOR + 1;
	test_head(&test);
	test_refused(&test, -EPROTONOSUPPORT, "update ttmem");
}

/* Its recorder was killed before the first chunk was whole. */
UNIT(refuses_half_of_a_first_chunk)
{
	CLEANUP(test_deinit) struct test_file test;
	const uint64_t header = 8 + sizeof(struct recording_chunk);

	test_init(&test);
	test_head(&test);
	assert(test.end > header);
	while (test.end > 0) {
		test.end--;
		assert(ftruncate(test.fd, (off_t)test.end) == 0);
		test_refused(&test, -EBADMSG, test.end < header ? "not a recording" : "cut off");
	}
}

UNIT(refuses_a_damaged_beginning)
{
	CLEANUP(test_deinit) struct test_file test;

	test_init(&test);
	test_fill(&test);
	assert(pwrite(test.fd, "x", 1, 100) == 1);
	test_refused(&test, -EBADMSG, "beginning is damaged");
}
