/* SPDX-License-Identifier: Apache-2.0 */

/* Connects the search to the registry: books it has found, and processes it should check. */

#include <unistd.h>

#include "daemon/registry/book-search.h"
#include "daemon/registry/registry-private.h"
#include "daemon/registry/tracked.h"

static void registry_search_found(void *context, struct scan_book *book, int pid_fd)
{
	struct registry *registry = context;
	const struct registry_newcomer what = {.book = book, .pid_fd = pid_fd};
	struct registry_entry *entry;
	bool alive = book->alive;
	int r;

	/* Clients of another daemon are none of our concern. */
	if (registry_find(registry, book->id) || registry_was_judged(registry, book->id) ||
	    book->reader.header.source == BOOK_SOURCE_SOCKET) {
		scan_book_free(book);
		if (pid_fd >= 0)
			(void)close(pid_fd); /* nothing was written to it */
		return;
	}
	r = registry_add(registry, &what, &entry);
	if (r < 0) {
		registry_refuse(registry, r);
		return;
	}
	if (!alive)
		registry_end(entry, false);
}

static void registry_search_judged(void *context, struct tracked *tracked,
				   enum book_search_verdict verdict)
{
	struct registry *registry = context;
	struct registry_entry *entry = registry_find(registry, tracked->id);

	if (!entry || entry->tracked != tracked || verdict == BOOK_SEARCH_LIVES)
		return;
	if (verdict == BOOK_SEARCH_EXECED && !registry_is_over(entry))
		registry_end(entry, true);
	else if (entry->pid_fd.fd < 0 || registry_is_over(entry)) /* else the pidfd tells */
		registry_over(entry);
}

static void registry_search_passed(void *context, uint64_t took_ns, size_t refused)
{
	struct registry *registry = context;

	registry->counts.scans++;
	registry->counts.scan_ns = took_ns;
	registry->counts.refused += refused;
	if (registry->counts.scans == 1 && registry->config.first_pass)
		registry->config.first_pass(registry->config.hooks.context);
}

static size_t registry_search_doubtful(void *context, bool all, struct tracked **ret_list,
				       size_t max)
{
	struct registry *registry = context;
	size_t n = 0;

	for (size_t i = 0; i < registry->count && n < max; i++) {
		struct registry_entry *entry = registry->entries[i];

		if ((entry->pid_fd.fd < 0 && !entry->is_over) ||
		    (!registry_is_kept(entry) && (all || entry->connection.fd < 0)))
			ret_list[n++] = tracked_ref(entry->tracked);
	}
	return n;
}

int registry_search(struct registry *registry)
{
	const struct book_search_config config = {
		.loop = registry->config.loop,
		.work = registry->config.search_worker,
		.doubts = registry->config.work,
		.interval_s = registry->config.scan_s,
		.hooks =
			{
				.context = registry,
				.found = registry_search_found,
				.judged = registry_search_judged,
				.passed = registry_search_passed,
				.doubtful = registry_search_doubtful,
			},
	};

	return book_search_new(&registry->search, &config);
}
