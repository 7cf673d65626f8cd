/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process that forbids itself system calls, by seccomp, is killed by the next one. So it tells libttmem
 * before, with ttmem_freeze(), and from then on nothing here makes any: what needs one fails, as if memory
 * had run out. Set once; forked children inherit it, as they inherit the filter. In other programs it is
 * never set.
 */

#include <stdbool.h>

extern bool freeze_flag;

static inline bool freeze_is_on(void)
{
	return __atomic_load_n(&freeze_flag, __ATOMIC_RELAXED);
}

static inline void freeze_set(void)
{
	__atomic_store_n(&freeze_flag, true, __ATOMIC_RELAXED);
}
