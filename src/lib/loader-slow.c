/* SPDX-License-Identifier: Apache-2.0 */

/* A library for lib/loader-test.c whose constructor says that it runs, and waits until it may end. */

#include <stdlib.h>
#include <unistd.h>

static __attribute__((constructor)) void loader_slow(void)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): set before there were threads */
	const char *descriptors = getenv("TTMEM_TEST_LOADER");
	char *rest = NULL;
	char byte = 0;
	long said = descriptors ? strtol(descriptors, &rest, 10) : -1;

	/* Nobody there: then it is no slow one. */
	if (said >= 0 && write((int)said, &byte, 1) == 1)
		(void)!read((int)strtol(rest, NULL, 10), &byte, 1);
}
