/* SPDX-License-Identifier: Apache-2.0 */

/* Finds what is preloaded, before anything is started. */

#include "cli/run/run-shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"

#define SHIM_NAME "libttmem-metal.so"

static int shim_try(const char *path, char **ret_path, const char **ret_reason)
{
	CLEANUP_FREE char *whole = realpath(path, NULL);
	int r;

	if (!whole || access(whole, R_OK) < 0) {
		r = -errno;
		*ret_reason = strerrordesc_np(-r);
		return r;
	}
	/* The dynamic linker splits at these characters and has no quoting. */
	if (strpbrk(whole, ": \t\n")) {
		*ret_reason = "has a blank or a colon in its path: install ttmem elsewhere";
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

int shim_find(char **ret_path, const char **ret_name, const char **ret_reason)
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
			r = shim_try(name, ret_path, ret_reason);
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
