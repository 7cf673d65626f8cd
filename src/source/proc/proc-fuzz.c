/* SPDX-License-Identifier: Apache-2.0 */

/* The parsers of /proc over any text: names of processes are chosen by their owners. */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "source/proc/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char container[PROC_CONTAINER_SIZE];
	struct proc_facts facts = {.ns_pid = 1};
	char *text = malloc(size + 1);

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (proc_parse_stat(text, &facts) == 0)
		assert(memchr(facts.comm, '\0', sizeof(facts.comm)));
	if (proc_parse_status(text, &facts) == 0)
		assert(facts.ns_pid > 0 && facts.ns_pid <= INT32_MAX);
	proc_parse_cgroup(text, container);
	assert(memchr(container, '\0', sizeof(container)));
	free(text);
	return 0;
}
