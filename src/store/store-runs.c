/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the daemon ran. A run that was killed cannot write when it ended: the next one does, with the
 * last point that the killed one has written, if it has written any.
 */

#include "store/store-private.h"

void store_runs_begin(struct store *store)
{
	struct store_db *db = &store->db;
	struct store_now now;
	int r;

	if (store->run_is_written)
		return;
	store_writer_now(store, &now);
	if (!store->start_ns)
		store->start_ns = store->config.start_ns ? store->config.start_ns : now.real_ns;
	r = store_db_ask(db,
			 "UPDATE runs SET state = ?2, end_ns = (SELECT max(t) * 1000000000 FROM"
			 " points_1 WHERE t * 1000000000 BETWEEN start_ns AND ?1)"
			 " WHERE state = 0 AND start_ns <> ?1",
			 STORE_VALUES(STORE_CUT(store->start_ns), STORE_INT(STORE_RUN_LOST)), NULL);
	if (r >= 0)
		r = store_db_ask(db,
				 "INSERT INTO runs(start_ns, state) VALUES(?1, 0)"
				 " ON CONFLICT DO UPDATE SET state = 0, end_ns = NULL",
				 STORE_VALUES(STORE_CUT(store->start_ns)), NULL);
	store->run_is_written = r >= 0;
}

void store_runs_end(struct store *store)
{
	struct store_now now;

	if (!store->run_is_written || !store->db.handle)
		return;
	store_writer_now(store, &now);
	/* If it cannot be written, the next run notices. */
	(void)store_db_ask(&store->db,
			   "UPDATE runs SET state = ?3, end_ns = ?2 WHERE start_ns = ?1",
			   STORE_VALUES(STORE_CUT(store->start_ns), STORE_CUT(now.real_ns),
					STORE_INT(STORE_RUN_ENDED)),
			   NULL);
}
