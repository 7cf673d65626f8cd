/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines as people quote them in reports and guides, without pid, device or address. What they lack is taken from
 * the buffers that are known: a free without an address is that of the newest live buffer of its size, one
 * without a device is on the device that has the address.
 */

#include "legacy/analyze/log-analysis-private.h"

#define BRIEF_LOOKS 65536u /* buffers that a free without an address is compared with */

static int brief_find_address(struct log_analysis *analysis, struct log_reader_event *event)
{
	uint32_t row, at;
	int r = log_analysis_rows_process(analysis, event, &row);

	if (r < 0 || row == LOG_ANALYSIS_NONE)
		return r;
	at = analysis->processes[row].live;
	for (uint32_t i = 0; i < BRIEF_LOOKS && at != LOG_ANALYSIS_NONE; i++) {
		const struct log_analysis_node *node = &analysis->nodes[at];

		if (node->size == event->size) {
			event->address = node->address;
			event->device = node->device;
			event->type = node->type;
			break;
		}
		at = node->older;
	}
	return 0;
}

static int brief_find_device(struct log_analysis *analysis, struct log_reader_event *event)
{
	struct log_analysis_key key = {.address = event->address, .type = LOG_READER_NO_TYPE};
	int r = log_analysis_rows_process(analysis, event, &key.process);

	for (size_t i = 0; r == 0 && i < analysis->seen_device_count; i++) {
		key.device = analysis->seen_devices[i];
		if (log_analysis_nodes_find(analysis, &key)) {
			event->device = key.device;
			break;
		}
	}
	return r;
}

int log_analysis_brief_complete(struct log_analysis *analysis, struct log_reader_event *event)
{
	return event->lacks_address ? brief_find_address(analysis, event)
				    : brief_find_device(analysis, event);
}
