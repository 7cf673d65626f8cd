/* SPDX-License-Identifier: Apache-2.0 */

/* The order of what waits, and its limit. */

#include "daemon/link/link-queue.h"

#include <errno.h>
#include <string.h>

#include "base/quota.h"
#include "base/testing/unit.h"

UNIT(a_queue_keeps_its_order_while_it_grows)
{
	struct link_queue queue = {0};
	struct link_item item;
	uint64_t in = 0, out = 0;

	/* Three in, two out: it begins anywhere when it grows. */
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 3; k++) {
			item = (struct link_item){.kind = LINK_SYNCED, .number = in++};
			assert(link_queue_put(&queue, &item) == 0);
		}
		for (int k = 0; k < 2; k++)
			assert(link_queue_take(&queue, &item) == 0 && item.number == out++);
	}
	while (link_queue_take(&queue, &item) == 0)
		assert(item.number == out++);
	assert(in == out && queue.text == 0);
	for (size_t i = 0; i < LINK_QUEUE_MAX; i++)
		assert(link_queue_put(&queue, &item) == 0);
	item.text = strdup("taken");
	item.length = 5;
	assert(link_queue_put(&queue, &item) == -ENOBUFS && queue.text == 0);
	link_queue_deinit(&queue);
}
