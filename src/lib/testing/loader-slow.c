/* SPDX-License-Identifier: Apache-2.0 */

/* A library for lib/stack/loader-test.c whose constructor reports that it runs and waits. */

#include <stdlib.h>
#include <unistd.h>

static __attribute__((constructor)) void loader_slow(void)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): set before there were threads */
	const char *descriptors = getenv("TTMEM_TEST_LOADER");
	char *rest = NULL;
	char byte = 0;
	long said = descriptors ? strtol(descriptors, &rest, 10) : -1;

	/* If nobody listens, do not wait. */
	if (said >= 0 && write((int)said, &byte, 1) == 1)
		(void)!read((int)strtol(rest, NULL, 10), &byte, 1);
}
