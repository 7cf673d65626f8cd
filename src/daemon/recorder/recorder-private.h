/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the recorder; private to it. */

#include <pthread.h>

#include "base/process-id.h"
#include "base/quota.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/recorder/exit-queue.h"
#include "daemon/recorder/recorder.h"
#include "model/last-hour.h"
#include "model/sites/leak-sites.h"
#include "model/snapshot.h"
#include "source/proc/namespaces.h"

struct view;

/*
 * To find out who held what when an allocation failed, the books of all processes are read,
 * whatever that costs. So the failures of one user take at most a tenth of our time: after a
 * reading there is none for ten times as long.
 */
#define RECORDER_FAILURE_REST 10u

#define RECORDER_REGIONS_REST_NS (NS_PER_S / 10)

/*
 * To know what was live at a peak, a whole book is read. The books of one user get one in so many parts
 * of a core for it, and a burst.
 */
#define RECORDER_PEAK_SHARE 50u
#define RECORDER_PEAK_ALL_SHARE 20u /* of all users together */
#define RECORDER_PEAK_BURST_NS (NS_PER_S / 2)

/* Records ever used of a device: of more nothing is told, because all would have to be in memory. */
#define RECORDER_PEAK_SLOTS_MAX (UINT32_C(1) << 18)

/* Ended processes whose peaks are kept, and their bytes in memory. */
#define RECORDER_PEAKS_MAX 1000u
#define RECORDER_PEAKS_BYTES_MAX (UINT64_C(8) << 20)

/* An ended process's peaks. */
struct recorder_ended {
	struct snapshot *snapshot; /* owned */
	uint32_t maker;            /* who may see them, and where that counts: */
	char namespaces[NAMESPACES_SIZE];
	size_t bytes;
};

/* Two processes that overlap, the one with the older buffer first. */
struct recorder_overlap {
	struct process_id processes[2];
	uint64_t address;
	uint64_t key; /* of the incident: what the store takes for the same */
	bool is_told; /* two searches have shown it */
	bool is_seen; /* in the last one */
};

/* A job about one book. */
struct recorder_task {
	struct worker_job job;
	struct recorder *recorder;
	struct tracked *tracked;
	uint64_t left; /* bytes that it has left; of one that is judged by its totals */
};

struct recorder {
	struct recorder_config config;
	struct loop_timer timer;
	struct worker_job sample;
	uint64_t since_ns; /* CLOCK_REALTIME when it was created */
	uint64_t passes;
	struct region_watch *regions;
	struct worker_job regions_job;
	struct loop_timer regions_timer;
	uint64_t regions_after; /* CLOCK_MONOTONIC: no look before; loop only, like the next two */
	bool is_waking;         /* the job is due, queued or running */
	bool is_woken;          /* and must run once more */

	/* Of the loop: books of processes that have ended; those in the queue have a reference. */
	struct exit_queue exits;
	bool is_judging;

	/* Used only by the job @sample. */
	struct recorder_overlap *overlaps; /* owned; of live processes */
	size_t overlap_count, overlap_capacity;
	uint64_t overlaps_signature; /* of what was compared last */
	bool overlaps_again;         /* compare it once more */
	uint64_t overlaps_after;     /* CLOCK_MONOTONIC: no search before */

	/*
	 * Protects the members below. Held only briefly, because the loop takes it as well; never
	 * while a book is read.
	 */
	pthread_mutex_t lock;
	struct quota_rate failures; /* time for reading because of them */
	struct notice *notice;      /* to be reported, the latest first */
	uint64_t incidents[TYPES_INCIDENTS];
	uint64_t leaked;
	struct leak_sites leak_sites;
	struct last_hour hour;
	uint64_t hour_bytes; /* in use, at the last sample */
	struct tally *ended; /* of all ended processes */
	struct quota_rate peaks,
		all_peaks; /* time for reading them: of each user, of all together */
	struct recorder_ended *ended_peaks; /* owned; the oldest first */
	size_t ended_count, ended_capacity;
	struct quota ended_bytes; /* of users */
};

struct recorder_task *recorder_task_new(struct recorder *recorder, struct tracked *tracked);
void recorder_task_done(struct worker_job *job);

/* Nothing more is judged. */
void recorder_judge_close(struct recorder *recorder);

/* In the sampling job: if the process has a new peak, keeps what is live at it. */
void recorder_peaks_look(struct recorder *recorder, struct tracked *tracked, struct view *view,
			 const struct snapshot_process *process);

/* Of a book whose owner has ended. */
void recorder_peaks_judge(struct recorder *recorder, struct tracked *tracked, struct view *view);
void recorder_peaks_free(struct recorder *recorder);

/* Counts and takes @notice, which may be NULL. Called without the lock. */
void recorder_add_news(struct recorder *recorder, uint32_t kind, uint64_t count,
		       struct notice *notice);

/* In the loop's thread: reports what is new. */
void recorder_tell(struct recorder *recorder);

/*
 * Searches one book for incidents that were not reported yet. The caller holds its incident_lock.
 */
void recorder_look_into(struct recorder *recorder, struct tracked *tracked, struct view *view);

/* Which chips the devices of a process are, as the last look at the whole machine found them. */
void recorder_join(struct recorder *recorder, struct snapshot *snapshot);

/* Adds what the first process of a snapshot has left to recorder_leak_sites(). */
void recorder_count_leak(struct recorder *recorder, const struct snapshot *snapshot);

/* In the sampling job: takes the totals for recorder_last_hour(). */
void recorder_hour_put(struct recorder *recorder, const struct snapshot *snapshot);

/* Compares the buffers of processes that share devices, if they have changed. */
void recorder_find_overlaps(struct recorder *recorder, const struct snapshot *totals);

/* A snapshot of one book. @symbols may be NULL. NULL: it cannot be read, or there is no memory. */
struct snapshot *recorder_read(struct tracked *tracked, bool buffers, struct view *view,
			       struct symbols *symbols);

/* The same with its peaks. */
struct snapshot *recorder_read_peaks(struct tracked *tracked, struct view *view,
				     struct symbols *symbols);
