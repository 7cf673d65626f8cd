/* SPDX-License-Identifier: Apache-2.0 */

/* What the linker and the loader know about this library and other loaded files. */

#include "lib/process/linked.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/bits.h"

/* Weak: a static program that does not use them itself must not link them in because of us. */
#pragma weak dlsym
#pragma weak dladdr

/* The start of the file that contains this code. */
extern ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* The section that holds the code of libttmem.a; NULL = this is libttmem.so. */
extern const char __start_ttmem_text[] __attribute__((weak, visibility("hidden")));
extern const char __stop_ttmem_text[] __attribute__((weak, visibility("hidden")));

static bool linked_is_archive(void)
{
	return __start_ttmem_text != NULL;
}

static const ElfW(Phdr) * linked_headers(const ElfW(Ehdr) * image)
{
	return (const void *)((const char *)image + image->e_phoff);
}

/* Addresses in the file begin at 0, or are absolute in a program that is not relocatable. */
static uintptr_t linked_shift(const ElfW(Ehdr) * image)
{
	return image->e_type == ET_EXEC ? 0 : (uintptr_t)image;
}

struct linked_code linked_image(const ElfW(Ehdr) * image)
{
	const ElfW(Phdr) *headers = linked_headers(image);
	uintptr_t base = linked_shift(image);
	uintptr_t high = (uintptr_t)image;

	for (size_t i = 0; i < image->e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD)
			high = bits_max(high, base + headers[i].p_vaddr + headers[i].p_memsz);
	}
	return (struct linked_code){(uintptr_t)image, high};
}

struct linked_code linked_code(void)
{
	if (linked_is_archive())
		return (struct linked_code){(uintptr_t)__start_ttmem_text,
					    (uintptr_t)__stop_ttmem_text};
	return linked_image(&__ehdr_start);
}

/* What the kernel passed; 0 = nothing. */
static uintptr_t linked_passed(unsigned long type)
{
	int saved_errno = errno; /* getauxval() sets ENOENT for missing entries */
	uintptr_t value = getauxval(type);

	errno = saved_errno;
	return value;
}

/* The program headers as passed by the kernel; @ret_count is 0 if it did not pass them. */
static const ElfW(Phdr) * linked_program_headers(size_t *ret_count)
{
	const ElfW(Phdr) *headers = (const void *)linked_passed(AT_PHDR);

	*ret_count = headers ? linked_passed(AT_PHNUM) : 0;
	return headers;
}

bool linked_is_static(void)
{
	const ElfW(Phdr) * headers;
	size_t count;

	if (!linked_is_archive())
		return false;
	headers = linked_program_headers(&count);
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_INTERP)
			return false;
	}
	return true;
}

void linked_program(struct dl_phdr_info *ret_info)
{
	*ret_info = (struct dl_phdr_info){
		.dlpi_addr = __ehdr_start.e_type == ET_EXEC ? 0 : (uintptr_t)&__ehdr_start,
		.dlpi_name = "",
		.dlpi_phdr = linked_headers(&__ehdr_start),
		.dlpi_phnum = __ehdr_start.e_phnum,
	};
}

void *linked_symbol(void *library, const char *name)
{
	return dlsym && !linked_is_static() ? dlsym(library, name) : NULL;
}

/* By name: linkers warn about every static program with a reference to it. */
void *linked_open(const char *path, int flags)
{
	void *found = linked_symbol(RTLD_DEFAULT, "dlopen");
	void *(*open)(const char *path, int flags);

	memcpy(&open, &found, sizeof(found)); /* C has no cast to a function pointer */
	return open ? open(path, flags) : NULL;
}

bool linked_place(const void *address, Dl_info *ret_info)
{
	if (!linked_is_static())
		return dladdr && dladdr(address, ret_info) != 0;
	if ((uintptr_t)address - (uintptr_t)&__ehdr_start >=
	    linked_image(&__ehdr_start).high - (uintptr_t)&__ehdr_start)
		return false;
	*ret_info = (Dl_info){
		.dli_fname = program_invocation_name,
		.dli_fbase = &__ehdr_start,
	};
	return true;
}

#if defined(DLFO_EH_SEGMENT_TYPE)

static int (*linked_ask)(void *address, struct dl_find_object *ret_object);

/*
 * The program and the loader. The kernel maps them, and leaves the gaps between their segments open:
 * _dl_find_object() then reports only the segment of an address. Linkers like that of Ubuntu 22.04 make
 * such programs.
 */
static struct linked_code linked_kernel_files[2];

static struct linked_code linked_program_code(void)
{
	struct linked_code code = {.low = UINTPTR_MAX};
	uintptr_t page = linked_passed(AT_PAGESZ);
	uintptr_t base = 0;
	size_t count;
	const ElfW(Phdr) *headers = linked_program_headers(&count);

	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_PHDR) /* comes first */
			base = (uintptr_t)headers - headers[i].p_vaddr;
		if (headers[i].p_type != PT_LOAD)
			continue;
		code.low = bits_min(code.low, base + (headers[i].p_vaddr & -page));
		code.high = bits_max(code.high, base + headers[i].p_vaddr + headers[i].p_memsz);
	}
	return code;
}

static void linked_find_kernel_files(void)
{
	const ElfW(Ehdr) *loader = (const void *)linked_passed(AT_BASE);

	linked_kernel_files[0] = linked_program_code();
	if (loader)
		linked_kernel_files[1] = linked_image(loader);
}

/* From one segment to the whole file. */
static void linked_widen(struct linked_file *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(linked_kernel_files); i++) {
		struct linked_code whole = linked_kernel_files[i];

		if (file->low >= whole.low && file->low < whole.high) {
			file->low = whole.low;
			file->high = whole.high;
		}
	}
}

/* By name, because older libcs lack it; at load time, because later the loader may be blocked. */
static __attribute__((constructor(101))) void linked_find_ask(void)
{
	void *found = linked_symbol(RTLD_DEFAULT, "_dl_find_object");

	memcpy(&linked_ask, &found, sizeof(found)); /* C has no cast to a function pointer */
	linked_find_kernel_files();
}

bool linked_can_find(void)
{
	return linked_ask != NULL;
}

/* Without a loader: our own headers are the program's. */
static bool linked_find_static(uintptr_t address, struct linked_file *ret_file)
{
	const ElfW(Phdr) *headers = linked_headers(&__ehdr_start);
	struct linked_code image = linked_image(&__ehdr_start);

	if (!linked_is_static() || address <= image.low || address > image.high)
		return false;
	*ret_file = (struct linked_file){.low = image.low, .high = image.high};
	for (size_t i = 0; i < __ehdr_start.e_phnum; i++) {
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			ret_file->tables =
				(const char *)linked_shift(&__ehdr_start) + headers[i].p_vaddr;
	}
	return true;
}

bool linked_find(uintptr_t address, struct linked_file *ret_file)
{
	struct dl_find_object object;

	if (!linked_ask)
		return linked_find_static(address, ret_file);
	/* A call may be the last instruction of its function: look up the call itself. */
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the API takes a pointer */
	if (linked_ask((void *)(address - 1), &object) != 0)
		return false;
	*ret_file = (struct linked_file){
		.low = (uintptr_t)object.dlfo_map_start,
		.high = (uintptr_t)object.dlfo_map_end,
		.map = object.dlfo_link_map,
		.tables = object.dlfo_eh_frame,
	};
	linked_widen(ret_file);
	return true;
}

#else

bool linked_can_find(void)
{
	return false;
}

bool linked_find(uintptr_t address, struct linked_file *ret_file)
{
	(void)address;
	(void)ret_file;
	return false;
}

#endif

/* Records are created and freed under the loader's lock, which a sanitizer does not know. */
#define LINKED_READS __attribute__((no_sanitize("thread")))

LINKED_READS uintptr_t linked_base(const struct linked_file *file)
{
	return file->map ? file->map->l_addr : linked_shift(&__ehdr_start);
}

LINKED_READS const char *linked_path(const struct linked_file *file)
{
	return file->map ? file->map->l_name : "";
}

/* Byte by byte: a sanitizer intercepts libc's own functions. */
LINKED_READS size_t linked_copy(const char *name, char *ret_copy, size_t size)
{
	size_t n = 0;

	for (; n + 1 < size && name && name[n]; n++)
		ret_copy[n] = name[n];
	ret_copy[n] = '\0';
	return n;
}

/*
 * A library that contains us must not be unloaded, just as libttmem.so is not: thread destructors
 * and the book outlive a dlclose(). A constructor may call the loader freely.
 */
static __attribute__((constructor(101))) void linked_stay(void)
{
	size_t count;
	Dl_info info;

	if (!linked_is_archive() || linked_program_headers(&count) == linked_headers(&__ehdr_start))
		return;
	if (linked_place(&__ehdr_start, &info))
		(void)linked_open(info.dli_fname,
				  RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE); /* best effort */
}
