/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables, and every statement that the writer prepares.
 *
 *	schema		the version of all this
 *	processes	owners of the rows below; one for each pid, start, user and name
 *	owners		users in other namespaces than the daemon's: see below
 *	sites		what happened, by kind, type, owner, program and call site: its stack, and
 *			only without one its name without numbers, or its phase
 *	seen		how many of a process's incidents its site has already counted; "what" tells
 *			those of one address apart, and is 0 in what version 4 wrote
 *	incidents	a site's newest examples, one per process, with all details
 *	holders, held	for a failed allocation: who held memory there, and which sites
 *	leaks		what a process left when it ended; closed: 1 it said goodbye, 2 it became
 *			another program, 3 both
 *	leak_sites	its sums by call site, with the names and phases of its buffers
 *	leak_chunks	its buffers, packed: see store-rows.h
 *	endings		how a process ended, whether it left something or not; as in leaks
 *	runs		starts and ends of the daemon; state: see enum store_run_state
 *	series		a line of points: a process (0: all of them together), a device, a type
 *	points_1, _10, _60	the points: t is in seconds and a multiple of the step
 *	rolling		the coarser point that is currently being collected, for each step
 *
 * Rows are numbered in order of insertion, which is what "oldest" means wherever the clock must not
 * matter. Points are sorted by time, not by series: each second then touches a page or two at the
 * end of the table instead of one page of every series, and the oldest points are together at the
 * front.
 *
 * The uid of a site or a leak says whose it is. Below 2^32 it is a user in the daemon's namespaces;
 * from there on a row of owners, because users with the same number in two containers are not the
 * same. Rows from before there were owners are the user's in the daemon's namespaces.
 *
 * Integers are signed here: addresses, sizes and unique ids keep their bits, everything else is cut
 * at 2^62-1, so that a sum of two never overflows. An empty text means none.
 */

#include "store/store-schema.h"

#include <stddef.h>

#define POINTS(step)                                                                \
	"CREATE TABLE points_" step "(t INTEGER NOT NULL, series INTEGER NOT NULL," \
	" used INTEGER NOT NULL, used_max INTEGER NOT NULL,"                        \
	" buffers INTEGER NOT NULL, buffers_max INTEGER NOT NULL,"                  \
	" PRIMARY KEY(t, series)) STRICT, WITHOUT ROWID;"

const char store_schema_create[] =
	"CREATE TABLE schema(version INTEGER NOT NULL) STRICT;"

	"CREATE TABLE processes(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL,"
	" ns_pid INTEGER NOT NULL, boot INTEGER NOT NULL, start_ticks INTEGER NOT NULL,"
	" start_ns INTEGER NOT NULL,"
	" uid INTEGER NOT NULL, comm TEXT NOT NULL, user TEXT NOT NULL, container TEXT NOT NULL,"
	" source TEXT NOT NULL) STRICT;"
	"CREATE INDEX processes_pid ON processes(pid, start_ticks);"

	STORE_SCHEMA_OWNERS

	"CREATE TABLE sites(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, type INTEGER NOT NULL,"
	" uid INTEGER NOT NULL, comm TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL,"
	" stack TEXT NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL,"
	" buffers INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,"
	" UNIQUE(kind, type, uid, comm, name, phase, stack)) STRICT;"
	"CREATE INDEX sites_last ON sites(last_ns, id);"

	STORE_SCHEMA_SEEN

	"CREATE TABLE incidents(id INTEGER PRIMARY KEY,"
	" site INTEGER NOT NULL REFERENCES sites ON DELETE CASCADE, process INTEGER NOT NULL,"
	" time_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, device INTEGER NOT NULL,"
	" device_uid INTEGER NOT NULL, address INTEGER, size INTEGER NOT NULL,"
	" largest_free INTEGER, count INTEGER NOT NULL,"
	" first_ns INTEGER, first_thread INTEGER, first_size INTEGER, first_name TEXT,"
	" first_phase TEXT, first_stack TEXT,"
	" second_ns INTEGER, second_thread INTEGER, second_size INTEGER, second_name TEXT,"
	" second_phase TEXT, second_stack TEXT, space INTEGER NOT NULL DEFAULT 0,"
	" size_per_bank INTEGER NOT NULL DEFAULT 0, banks INTEGER NOT NULL DEFAULT 0,"
	" bank_size INTEGER NOT NULL DEFAULT 0, bank_free INTEGER NOT NULL DEFAULT 0,"
	" explanation TEXT NOT NULL DEFAULT '') STRICT;"
	"CREATE INDEX incidents_site ON incidents(site, id);"
	"CREATE INDEX incidents_process ON incidents(process);"

	"CREATE TABLE holders(incident INTEGER NOT NULL REFERENCES incidents ON DELETE CASCADE,"
	" place INTEGER NOT NULL, process INTEGER NOT NULL, type INTEGER NOT NULL,"
	" used INTEGER NOT NULL, buffers INTEGER NOT NULL,"
	" PRIMARY KEY(incident, place)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE held(incident INTEGER NOT NULL REFERENCES incidents ON DELETE CASCADE,"
	" place INTEGER NOT NULL, type INTEGER NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL,"
	" stack TEXT NOT NULL, bytes INTEGER NOT NULL, buffers INTEGER NOT NULL,"
	" name_count INTEGER NOT NULL DEFAULT 0, names TEXT NOT NULL DEFAULT '',"
	" PRIMARY KEY(incident, place)) STRICT, WITHOUT ROWID;"

	"CREATE TABLE leaks(id INTEGER PRIMARY KEY, identity INTEGER NOT NULL UNIQUE,"
	" process INTEGER NOT NULL, uid INTEGER NOT NULL, book INTEGER NOT NULL, ended_ns INTEGER "
	"NOT NULL, closed INTEGER NOT NULL,"
	" exit_code INTEGER, exit_signal INTEGER, bytes INTEGER NOT NULL,"
	" buffers INTEGER NOT NULL) STRICT;"
	"CREATE INDEX leaks_process ON leaks(process);"
	"CREATE TABLE leak_sites(leak INTEGER NOT NULL REFERENCES leaks ON DELETE CASCADE,"
	" site INTEGER NOT NULL REFERENCES sites ON DELETE CASCADE, bytes INTEGER NOT NULL,"
	" buffers INTEGER NOT NULL, oldest_ns INTEGER NOT NULL,"
	" phases TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',"
	" name_count INTEGER NOT NULL DEFAULT 0, names TEXT NOT NULL DEFAULT '',"
	" PRIMARY KEY(leak, site)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX leak_sites_site ON leak_sites(site, leak);" STORE_SCHEMA_CHUNKS
		STORE_SCHEMA_ENDINGS

	"CREATE TABLE series(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,"
	" device INTEGER NOT NULL, device_uid INTEGER NOT NULL, type INTEGER NOT NULL,"
	" last_t INTEGER NOT NULL, UNIQUE(process, device, device_uid, type)) STRICT;" POINTS("1")
		POINTS("10") POINTS("60") "CREATE TABLE rolling(step INTEGER PRIMARY KEY, t "
					  "INTEGER NOT NULL) STRICT;";

#define CUT "4611686018427387903" /* 2^62-1 */

/* What version 4 has counted is not told apart as well. */
#define SEEN_WHERE                                                        \
	" WHERE process = ?1 AND kind = ?2 AND type = ?3 AND device = ?4" \
	" AND address = ?5 AND size = ?6 AND what IN (?7, 0)"

#define POINT_MERGE                                                                 \
	" ON CONFLICT(t, series) DO UPDATE SET used = excluded.used,"               \
	" used_max = max(used_max, excluded.used_max), buffers = excluded.buffers," \
	" buffers_max = max(buffers_max, excluded.buffers_max)"

/* A bare column beside max(t) takes its value from the row with that maximum: the last value. */
#define ROLL(from, to)                                                                          \
	"INSERT INTO points_" to "(t, series, used, used_max, buffers, buffers_max)"            \
	" SELECT ?1, last.series, last.used, most.used, last.buffers, most.buffers FROM"        \
	" (SELECT series, max(t), used, buffers FROM points_" from                              \
	"  WHERE t >= ?1 AND t < ?1 + " to " GROUP BY series) AS last JOIN"                     \
	" (SELECT series, max(used_max) AS used, max(buffers_max) AS buffers FROM points_" from \
	"  WHERE t >= ?1 AND t < ?1 + " to " GROUP BY series) AS most"                          \
	" ON most.series = last.series WHERE true" POINT_MERGE

const char *const store_schema_sql[STORE_SQL_COUNT] = {
	[STORE_SQL_BEGIN] = "BEGIN IMMEDIATE",
	[STORE_SQL_COMMIT] = "COMMIT",
	[STORE_SQL_ROLLBACK] = "ROLLBACK",
	[STORE_SQL_ITEM_BEGIN] = "SAVEPOINT item",
	[STORE_SQL_ITEM_COMMIT] = "RELEASE item",
	[STORE_SQL_ITEM_ROLLBACK] = "ROLLBACK TO item",

	/* After a reboot the same pid may have the same ticks; and the time of day may be set. */
	[STORE_SQL_PROCESS_FIND] =
		"SELECT id FROM processes WHERE pid = ?1 AND start_ticks = ?2 AND uid = ?3"
		" AND comm = ?4 AND boot = ?5 ORDER BY id DESC LIMIT 1",
	[STORE_SQL_PROCESS_ADD] =
		"INSERT INTO processes(pid, start_ticks, uid, comm, boot, start_ns, ns_pid, user,"
		" container, source) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id",

	[STORE_SQL_OWNER] = "INSERT INTO owners(id, uid, namespaces) VALUES("
			    "(SELECT max(ifnull(max(id), 0), 4294967295) + 1 FROM owners), ?1, ?2)"
			    " ON CONFLICT(uid, namespaces) DO UPDATE SET uid = uid RETURNING id",
	[STORE_SQL_SITE] =
		"INSERT INTO sites(kind, type, uid, comm, name, phase, stack, count, bytes, "
		"buffers,"
		" first_ns, last_ns) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
		" ON CONFLICT(kind, type, uid, comm, name, phase, stack) DO UPDATE SET"
		" count = min(count + excluded.count, " CUT "),"
		" bytes = min(bytes + excluded.bytes, " CUT "),"
		" buffers = min(buffers + excluded.buffers, " CUT "),"
		" first_ns = min(first_ns, excluded.first_ns),"
		" last_ns = max(last_ns, excluded.last_ns) RETURNING id",
	[STORE_SQL_SITE_COUNT] = "UPDATE sites SET count = min(count + ?2, " CUT "),"
				 " last_ns = max(last_ns, ?3) WHERE id = ?1",
	[STORE_SQL_SEEN_SITE] = "SELECT site FROM seen" SEEN_WHERE,
	[STORE_SQL_SEEN_COUNT] = "SELECT count FROM seen" SEEN_WHERE,
	[STORE_SQL_SEEN_FORGET] = "DELETE FROM seen" SEEN_WHERE,
	[STORE_SQL_SEEN_SET] =
		"INSERT INTO seen(process, kind, type, device, address, size, what, site, count)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[STORE_SQL_EXAMPLE_DROP] = "DELETE FROM incidents WHERE site = ?1 AND process = ?2"
				   " RETURNING time_ns",
	[STORE_SQL_EXAMPLE_ADD] =
		"INSERT INTO incidents(site, process, time_ns, last_ns, device, device_uid, "
		"address,"
		" size, largest_free, count, first_ns, first_thread, first_size, first_name,"
		" first_phase, first_stack, second_ns, second_thread, second_size, second_name,"
		" second_phase, second_stack, space, size_per_bank, banks, bank_size, bank_free,"
		" explanation)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
		" ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28) RETURNING id",
	[STORE_SQL_EXAMPLE_TRIM] =
		"DELETE FROM incidents WHERE site = ?1 AND id NOT IN"
		" (SELECT id FROM incidents WHERE site = ?1 ORDER BY id DESC LIMIT ?2)",
	[STORE_SQL_HOLDER_ADD] =
		"INSERT INTO holders(incident, place, process, type, used, buffers)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[STORE_SQL_HELD_ADD] =
		"INSERT INTO held(incident, place, type, name, phase, bytes, buffers, stack,"
		" name_count, names) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",

	/* A book is reported once, however often the daemon was killed in between. */
	[STORE_SQL_LEAK_ADD] =
		"INSERT INTO leaks(process, uid, book, ended_ns, closed, exit_code, exit_signal,"
		" bytes, buffers, identity) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
		" ON CONFLICT DO NOTHING RETURNING id",
	[STORE_SQL_LEAK_SITE_ADD] =
		"INSERT INTO leak_sites(leak, site, bytes, buffers, oldest_ns, phases, name,"
		" name_count, names) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO "
		"UPDATE SET"
		" bytes = min(bytes + excluded.bytes, " CUT "),"
		" buffers = min(buffers + excluded.buffers, " CUT ")",
	[STORE_SQL_LEAK_CHUNK_ADD] = "INSERT INTO leak_chunks(leak, first, rows, bytes, data)"
				     " VALUES(?1, ?2, ?3, length(?4), ?4)",
	[STORE_SQL_ENDING_ADD] =
		"INSERT INTO endings(process, uid, ended_ns, closed, exit_code, exit_signal,"
		" identity) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",

	[STORE_SQL_SERIES_FIND] = "SELECT id FROM series WHERE process = ?1 AND device = ?2"
				  " AND device_uid = ?3 AND type = ?4",
	[STORE_SQL_SERIES_ADD] = "INSERT INTO series(process, device, device_uid, type, last_t)"
				 " VALUES(?1, ?2, ?3, ?4, ?5) RETURNING id",
	[STORE_SQL_SERIES_TOUCH] = "UPDATE series SET last_t = max(last_t, ?1 + 60) WHERE id IN"
				   " (SELECT series FROM points_60 WHERE t = ?1)",
	[STORE_SQL_POINT_ADD] =
		"INSERT INTO points_1(t, series, used, used_max, buffers, buffers_max)"
		" VALUES(?1, ?2, ?3, ?3, ?4, ?4)" POINT_MERGE,
	[STORE_SQL_ROLL_10] = ROLL("1", "10"),
	[STORE_SQL_ROLL_60] = ROLL("10", "60"),
	[STORE_SQL_ROLLING_GET] = "SELECT t FROM rolling WHERE step = ?1",
	[STORE_SQL_ROLLING_SET] = "INSERT INTO rolling(step, t) VALUES(?1, ?2)"
				  " ON CONFLICT DO UPDATE SET t = excluded.t",
};
