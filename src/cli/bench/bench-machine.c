/* SPDX-License-Identifier: Apache-2.0 */

/* Looks at the machine: /proc/cpuinfo, uname(), sysconf() and /sys. */

#include "cli/bench/bench-machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/emit.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "book/format/book-clock.h"

#define BENCH_MACHINE_HUGE "/sys/kernel/mm/transparent_hugepage/"
#define BENCH_MACHINE_CLOCK "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* "model name : AMD EPYC"; aarch64 has no such line. */
static void bench_machine_processor(struct bench_machine *machine)
{
	FILE *file = small_file_stream(AT_FDCWD, "/proc/cpuinfo");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		const char *value = strstr(line, ": ");

		if (!value || strncmp(line, "model name", strlen("model name")) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(machine->processor, sizeof(machine->processor), "%s", value + 2);
		break;
	}
	if (file)
		(void)fclose(file); /* only read from */
}

/* The word in brackets: "always [madvise] never". */
static void bench_machine_chosen(const char *path, char *ret_word, size_t size)
{
	char line[128];
	char *from, *to;

	*ret_word = '\0';
	if (small_file_read_line(AT_FDCWD, path, line, sizeof(line)) < 0)
		return;
	from = strchr(line, '[');
	to = from ? strchr(from, ']') : NULL;
	if (!to)
		return;
	*to = '\0';
	(void)snprintf(ret_word, size, "%s", from + 1);
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
	struct bench_machine machine = {
		.processors = bench_machine_number(_SC_NPROCESSORS_ONLN),
		.cache_l2 = bench_machine_number(_SC_LEVEL2_CACHE_SIZE),
		.cache_l3 = bench_machine_number(_SC_LEVEL3_CACHE_SIZE),
		.clock = bench_machine_book_clock(),
		.page = bench_machine_number(_SC_PAGESIZE),
	};
	struct utsname name;

	bench_machine_processor(&machine);
	if (uname(&name) == 0)
		(void)snprintf(machine.kernel, sizeof(machine.kernel), "%.60s %.30s", name.release,
			       name.machine);
	if (small_file_read_line(AT_FDCWD, BENCH_MACHINE_CLOCK, machine.clock_source,
				 sizeof(machine.clock_source)) < 0)
		machine.clock_source[0] = '\0';
	bench_machine_chosen(BENCH_MACHINE_HUGE "enabled", machine.huge_pages,
			     sizeof(machine.huge_pages));
	bench_machine_chosen(BENCH_MACHINE_HUGE "shmem_enabled", machine.huge_pages_shared,
			     sizeof(machine.huge_pages_shared));
	*ret_machine = machine;
}

static const char *bench_machine_word(const char *word)
{
	return *word ? word : "unknown";
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

static void bench_machine_json_word(struct emit *json, const char *key, const char *word)
{
	emit_string(json, key, *word ? word : NULL);
}

void bench_machine_json(const struct bench_machine *machine, struct emit *json)
{
	emit_open_object(json, "machine");
	bench_machine_json_word(json, "processor", machine->processor);
	emit_u64(json, "processors", machine->processors);
	emit_u64(json, "cache_l2_bytes", machine->cache_l2);
	emit_u64(json, "cache_l3_bytes", machine->cache_l3);
	bench_machine_json_word(json, "kernel", machine->kernel);
	emit_string(json, "clock", machine->clock);
	bench_machine_json_word(json, "clock_source", machine->clock_source);
	emit_u64(json, "page_bytes", machine->page);
	bench_machine_json_word(json, "huge_pages", machine->huge_pages);
	bench_machine_json_word(json, "huge_pages_shared", machine->huge_pages_shared);
	emit_close_object(json);
}
