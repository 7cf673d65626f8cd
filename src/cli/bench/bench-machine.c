/* SPDX-License-Identifier: Apache-2.0 */

/* Looks at the machine: /proc/cpuinfo, uname(), sysconf() and /sys. */

#include "cli/bench/bench-machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "answers/fields.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "book/format/book-clock.h"
#include "cli/common/must.h"

#define BENCH_MACHINE_HUGE "/sys/kernel/mm/transparent_hugepage/"
#define BENCH_MACHINE_CLOCK "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* "model name : AMD EPYC"; aarch64 has no such line. */
static const char *bench_machine_processor(void)
{
	const char *processor = NULL;
	FILE *file = small_file_stream(AT_FDCWD, "/proc/cpuinfo");
	char line[256];

	while (file && !processor && fgets(line, sizeof(line), file)) {
		const char *value = strstr(line, ": ");

		line[strcspn(line, "\n")] = '\0';
		if (value && strncmp(line, "model name", strlen("model name")) == 0)
			processor = must_copy(value + 2);
	}
	if (file)
		(void)fclose(file); /* only read from */
	return processor;
}

static const char *bench_machine_line(const char *path)
{
	char line[128];

	return small_file_read_line(AT_FDCWD, path, line, sizeof(line)) < 0 ? NULL
									    : must_copy(line);
}

/* The word in brackets: "always [madvise] never". */
static const char *bench_machine_chosen(const char *path)
{
	char line[128];
	char *from, *to;

	if (small_file_read_line(AT_FDCWD, path, line, sizeof(line)) < 0)
		return NULL;
	from = strchr(line, '[');
	to = from ? strchr(from, ']') : NULL;
	if (!to)
		return NULL;
	*to = '\0';
	return must_copy(from + 1);
}

static const char *bench_machine_book_clock(void)
{
	switch (book_clock_choose()) {
	case BOOK_CLOCK_TSC:
		return "tsc";
	case BOOK_CLOCK_CNTVCT:
		return "cntvct";
	default:
		return "monotonic";
	}
}

/* sysconf() says 0 or -1 where it does not know. */
static uint64_t bench_machine_number(int name)
{
	long value = sysconf(name);

	return value > 0 ? (uint64_t)value : 0;
}

void bench_machine_look(struct bench_machine *ret_machine)
{
	struct utsname name;
	char kernel[96];

	*ret_machine = (struct bench_machine){
		.processor = bench_machine_processor(),
		.processors = bench_machine_number(_SC_NPROCESSORS_ONLN),
		.cache_l2 = bench_machine_number(_SC_LEVEL2_CACHE_SIZE),
		.cache_l3 = bench_machine_number(_SC_LEVEL3_CACHE_SIZE),
		.clock = bench_machine_book_clock(),
		.clock_source = bench_machine_line(BENCH_MACHINE_CLOCK),
		.page = bench_machine_number(_SC_PAGESIZE),
		.huge_pages = bench_machine_chosen(BENCH_MACHINE_HUGE "enabled"),
		.huge_pages_shared = bench_machine_chosen(BENCH_MACHINE_HUGE "shmem_enabled"),
	};
	if (uname(&name) < 0)
		return;
	(void)snprintf(kernel, sizeof(kernel), "%.60s %.30s", name.release, name.machine);
	ret_machine->kernel = must_copy(kernel);
}

static const char *bench_machine_word(const char *word)
{
	return word ? word : "unknown";
}

void bench_machine_text(const struct bench_machine *machine, FILE *out)
{
	char l2[TEXT_NUMBER_SIZE], l3[TEXT_NUMBER_SIZE], page[TEXT_NUMBER_SIZE];

	fprintf(out, "processor  %" PRIu64 " x ", machine->processors);
	text_put(out, bench_machine_word(machine->processor));
	fprintf(out, ", L2 %s, L3 %s\n", text_size(machine->cache_l2, l2),
		text_size(machine->cache_l3, l3));
	fputs("kernel     ", out);
	text_put(out, bench_machine_word(machine->kernel));
	fprintf(out, "\nclock      %s for events, the kernel's is ", machine->clock);
	text_put(out, bench_machine_word(machine->clock_source));
	fprintf(out, "\npages      %s, huge ones: ", text_size(machine->page, page));
	text_put(out, bench_machine_word(machine->huge_pages));
	fputs(", for shared memory: ", out);
	text_put(out, bench_machine_word(machine->huge_pages_shared));
	fputc('\n', out);
}

#define ROW struct bench_machine

const struct field bench_machine_fields[] = {
	FIELD_OR_NULL("processor", TEXT, processor),
	FIELD("processors", NUMBER, processors),
	FIELD("cache_l2_bytes", BYTES, cache_l2),
	FIELD("cache_l3_bytes", BYTES, cache_l3),
	FIELD_OR_NULL("kernel", TEXT, kernel),
	FIELD("clock", TEXT, clock),
	FIELD_OR_NULL("clock_source", TEXT, clock_source),
	FIELD("page_bytes", BYTES, page),
	FIELD_OR_NULL("huge_pages", TEXT, huge_pages),
	FIELD_OR_NULL("huge_pages_shared", TEXT, huge_pages_shared),
	FIELD_END,
};
