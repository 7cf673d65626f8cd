/* SPDX-License-Identifier: Apache-2.0 */

/* Checks whether a file can be preloaded on this machine, before anything is started. */

#include "cli/run/run-shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"

#define SHIM_NAME "libttmem-metal.so"
#define SHIM_HEADERS_MAX 128 /* libraries have about ten */

#if defined(__x86_64__)
#define SHIM_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define SHIM_MACHINE EM_AARCH64
#elif defined(__i386__)
#define SHIM_MACHINE EM_386
#else
#define SHIM_MACHINE EM_NONE
#endif

static const char *shim_judge_headers(int fd, const ElfW(Ehdr) * header)
{
	ElfW(Phdr) programs[SHIM_HEADERS_MAX];
	size_t size = header->e_phnum * sizeof(programs[0]);

	if (header->e_phentsize != sizeof(programs[0]) || header->e_phnum > SHIM_HEADERS_MAX ||
	    pread(fd, programs, size, (off_t)header->e_phoff) != (ssize_t)size)
		return "is damaged";
	for (size_t i = 0; i < header->e_phnum; i++)
		if (programs[i].p_type == PT_INTERP)
			return "is a program, not a shared library";
	return NULL;
}

/* NULL if it can be preloaded. */
static const char *shim_judge(int fd)
{
	ElfW(Ehdr) header;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "is not a file";
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return "is not a shared library";
	if (header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    header.e_machine != SHIM_MACHINE)
		return "is for another kind of machine";
	if (header.e_type != ET_DYN)
		return "is not a shared library";
	return shim_judge_headers(fd, &header);
}

int shim_find(const char *path, char **ret_path, const char **ret_reason)
{
	CLEANUP_FREE char *whole = NULL;
	CLEANUP_CLOSE int fd = -1;
	const char *reason;
	int r;

	whole = realpath(path, NULL);
	if (whole)
		fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		r = -errno;
		*ret_reason = strerrordesc_np(-r);
		return r;
	}
	/* The dynamic linker splits at these characters and has no quoting. */
	reason = strpbrk(whole, ": \t\n") ? "has a blank or a colon in its path: copy it elsewhere"
					  : shim_judge(fd);
	if (reason) {
		*ret_reason = reason;
		return -EINVAL;
	}
	*ret_path = cleanup_steal(whole);
	return 0;
}

/* @folder/@name, seen from the folder of libttmem.so. -ENAMETOOLONG. */
static int shim_beside(const char *folder, const char *name, char *ret_path)
{
	const char *slash;
	Dl_info library;
	void *version;
	int length;

	memcpy(&version, &(const char *(*)(void)){ttmem_version}, sizeof(version));
	if (!dladdr(version, &library) || !library.dli_fname)
		return -ENOENT;
	slash = strrchr(library.dli_fname, '/');
	length = slash ? (int)(slash + 1 - library.dli_fname) : 0;
	return snprintf(ret_path, PATH_MAX, "%.*s%s%s", length, library.dli_fname, folder, name) >=
			       PATH_MAX
		       ? -ENAMETOOLONG
		       : 0;
}

int shim_find_installed(char **ret_path, const char **ret_name, const char **ret_reason)
{
	/* Installed, from Debian's packages, in a build. */
	static const char *const places[] = {"", "ttmem/", "../metal/"};
	static char name[PATH_MAX] = SHIM_NAME;
	int r = -ENOENT;

	*ret_name = name;
	*ret_reason = strerrordesc_np(ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(places) && r == -ENOENT; i++) {
		r = shim_beside(places[i], SHIM_NAME, name);
		if (r == 0)
			r = shim_find(name, ret_path, ret_reason);
	}
	return r;
}

/* @first in front of what the variable has. -ENAMETOOLONG if it is too long. */
static int shim_put_first(const char *variable, const char *first, char *value, size_t size)
{
	const char *before = getenv(variable);
	int length = snprintf(value, size, "%s%s%s", first, before && *before ? ":" : "",
			      before ? before : "");

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

int shim_preload(const char *shim, char *value, size_t size)
{
	return shim_put_first("LD_PRELOAD", shim, value, size);
}

int shim_python(char *value, size_t size)
{
	/* Installed, in a wheel, from Debian's packages, in a build. */
	static const char *const places[] = {"python/ttmem/", "", "../python3/dist-packages/ttmem/",
					     "../../python/ttmem/"};
	char name[PATH_MAX], folder[PATH_MAX];
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(places) && r == -ENOENT; i++) {
		r = shim_beside(places[i], "_run", name);
		if (r == 0 && !realpath(name, folder))
			r = -errno;
	}
	if (r < 0)
		return r;
	return strchr(folder, ':') ? -EINVAL : shim_put_first("PYTHONPATH", folder, value, size);
}
