/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are decoded or refused, within the memory that there is. */

#include <string.h>

#include "base/testing/unit.h"
#include "legacy/debug-log/debug-log-demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct debug_log_demangle state;
	char name[4096] = "_Z";
	const char *text;

	size = size < sizeof(name) - 3 ? size : sizeof(name) - 3;
	memcpy(name + 2, data, size);
	text = debug_log_demangle(&state, name);
	assert(!text || (text >= state.text && strlen(text) < sizeof(state.text)));
	return 0;
}
