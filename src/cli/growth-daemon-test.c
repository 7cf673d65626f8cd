/* SPDX-License-Identifier: Apache-2.0 */

/* Trends from the lines of a fake daemon. */

#include "cli/growth-daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/sites/growth.h"
#include "model/snapshot.h"
#include "source/daemon-client/daemon-client.h"
#include "source/daemon-client/testing/daemon-client-testing.h"

#define NOW (UINT64_C(10000) * NS_PER_S)

static const char *pages[2]; /* rows of each page; NULL = there is no second one */
static unsigned int lines;   /* on devices of their own, in addition to the first page */

static void serve(int fd, const void *packet, size_t length)
{
	static char body[200000], text[200100];
	bool is_young = memmem(packet, length, "pid=8&", 6);
	const char *from = is_young ? "from=9940000000000" : "from=6400000000000";
	const char *step = is_young ? "step=1 " : "step=10 ";
	bool is_second = memmem(packet, length, "cursor=a-1", 10);
	size_t used = (size_t)snprintf(body, sizeof(body), "{\"series\":[%s", pages[is_second]);

	/* The last hour, or since the process lives. */
	assert(memmem(packet, length, from, strlen(from)));
	assert(memmem(packet, length, step, strlen(step)));
	for (unsigned int i = 0; !is_second && i < lines; i++)
		used += (size_t)snprintf(body + used, sizeof(body) - used,
					 "%s{\"device\":%u,\"type\":\"L1\",\"points\":"
					 "[[9000000000000,1,0,0],[9600000000000,2,0,0]]}",
					 i ? "," : "", i);
	(void)snprintf(body + used, sizeof(body) - used, "],\"next\":%s,\"notes\":[]}",
		       pages[1] && !is_second ? "\"a-1\"" : "null");
	(void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		       strlen(body), body);
	daemon_client_testing_send(fd, text);
}

/* The trends of processes 7, which has two sites, and 8. */
static struct growth trends(void)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve);
	static struct growth_site sites[3];
	struct growth growth = {.sites = sites, .count = 3};
	struct snapshot *snapshot = snapshot_new(NOW);
	const struct snapshot_process young = {
		.id = {.pid = 8}, .comm = "young", .alive = true, .start_ns = NOW - 60 * NS_PER_S};
	struct daemon_client *remote;
	uint32_t index;

	sites[0].process.pid = 7;
	sites[1].process.pid = 7;
	sites[2].process.pid = 8;
	assert(snapshot && snapshot_add_process(snapshot, &young, &index) == 0);
	assert(daemon_client_new(&remote) == 0);
	assert(growth_daemon_trends(remote, snapshot, &growth) == 0);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
	snapshot_free(snapshot);
	return growth;
}

UNIT(lines_of_all_devices_and_pages_are_added_up)
{
	struct growth growth;

	pages[0] = "{\"device\":0,\"type\":\"DRAM\",\"points\":[[9000000000000,100,0,0],"
		   "[9100000000000,200,0,0]]},"
		   "{\"device\":1,\"type\":\"DRAM\",\"points\":[[9000000000000,10,0,0],"
		   "[9300000000000,40,0,0]]},{\"device\":0,\"type\":\"OTHER\",\"points\":"
		   "[[1,1000000,0,0],[9900000000000,5000000,0,0]]}";
	pages[1] = "{\"device\":0,\"type\":\"DRAM\",\"points\":[[9200000000000,300,0,0]]}";
	growth = trends();
	assert(growth.trend_count == 2); /* one for each process */
	assert(growth.trends[0].pid == 7 && growth.trends[1].pid == 8);
	assert(growth.trends[0].first_ns == UINT64_C(9000) * NS_PER_S);
	assert(growth.trends[0].last_ns == UINT64_C(9300) * NS_PER_S);
	assert(growth.trends[0].first_bytes == 110 && growth.trends[0].last_bytes == 340);
	/* One byte a second, and a tenth of one. */
	assert(growth.trends[0].per_second > 1.099 && growth.trends[0].per_second < 1.101);
}

UNIT(lines_beyond_the_most_are_left_out)
{
	struct growth growth;

	pages[0] = "";
	lines = 512;
	growth = trends();
	assert(growth.trends[0].first_bytes == 512 && growth.trends[0].last_bytes == 1024);
	lines = 513;
	growth = trends();
	assert(growth.trends[0].first_bytes == 512 && growth.trends[0].last_bytes == 1024);
}
