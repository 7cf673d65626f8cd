/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the driver keeps in the kernel for each process: pinned pages, DMA buffers and TLB windows,
 * from its file "mappings" in debugfs, which root may read. The driver says there that its format
 * may change, so this is best effort: the whole file must look exactly as it does today, down to
 * the last line, or nothing of that card is known.
 */

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

/* Far more than a driver has to say; beyond it nothing is known. */
#define DRIVER_MEMORY_TEXT_MAX (4u << 20)

/*
 * Adds what is known about each card; to be called after the cards were added. @ret_closed: whether
 * there is something that we may not read; the daemon may (daemon_client_driver_memory()). Returns 0
 * or -ENOMEM.
 */
int driver_memory_collect(struct snapshot *snapshot, bool *ret_closed);

/*
 * Parses the text of one card. Returns 0 and a row for each process, sorted by pid, which the caller
 * frees; -EBADMSG if anything is not as expected; or -ENOMEM. Processes outside our pid namespace,
 * and those of which the driver could not tell everything at that moment, have no row.
 */
int driver_memory_parse(const char *text, size_t length, struct snapshot_driver_memory **ret_rows,
			size_t *ret_count);
