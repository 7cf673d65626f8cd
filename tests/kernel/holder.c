/* SPDX-License-Identifier: Apache-2.0 */

/* holder DEVICE TYPE SIZE...: allocates, says "ready", and holds it until its input ends. */

#include <stdio.h>
#include <stdlib.h>

#include <ttmem/ttmem.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (int i = 3; i < argc; i++)
		ttmem_alloc((uint32_t)strtoul(argv[1], NULL, 0),
			    (uint32_t)strtoul(argv[2], NULL, 0), (uint64_t)i * 0x10000,
			    strtoull(argv[i], NULL, 0), "held");
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
