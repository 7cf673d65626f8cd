/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arbitrary bytes as an ELF file. The results must be NUL-terminated texts within their bounds. The
 * libraries below are not made for hostile files, which is why the daemon uses a process that it
 * can lose: an input that crashes inside one of them (see the trace) is not a finding here and does
 * not belong in the corpus.
 *
 * The corpus has small real programs with all sorts of debug information. The last eight bytes of
 * an input are an address to look up; others are taken from the whole range of the file.
 */

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "symbol/resolve.h"

#define FUZZ_ADDRESSES 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* libdw leaks memory when a file contradicts itself; the process that runs it is short-lived. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void check_text(const char *text)
{
	assert(strnlen(text, RESOLVE_TEXT_SIZE) < RESOLVE_TEXT_SIZE);
}

static void check_address(struct resolve *resolve, uint64_t address)
{
	struct resolve_frame frames[RESOLVE_FRAMES_MAX];
	size_t count = resolve_find(resolve, address, frames, RESOLVE_FRAMES_MAX);

	assert(count <= RESOLVE_FRAMES_MAX);
	for (size_t i = 0; i < count; i++) {
		check_text(frames[i].function);
		check_text(frames[i].file);
		assert(frames[i].reserved == 0);
		assert(frames[i].line == 0 || frames[i].file[0]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct resolve_facts facts;
	struct resolve *resolve;
	uint64_t address = 0;

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (resolve_new(&resolve, fd, fd) == 0) {
		resolve_facts(resolve, &facts);
		check_text(facts.link);
		assert(facts.build_id_length <= RESOLVE_BUILD_ID_MAX);
		if (size >= sizeof(address))
			memcpy(&address, data + size - sizeof(address), sizeof(address));
		check_address(resolve, address);
		for (uint64_t i = 0; i < FUZZ_ADDRESSES; i++)
			check_address(resolve, 0x1000 + i * 0x40);
		resolve_free(resolve);
	}
	assert(close(fd) == 0);
	return 0;
}
