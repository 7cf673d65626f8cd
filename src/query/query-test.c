/* SPDX-License-Identifier: Apache-2.0 */

/* What a caller may do wrong; examples/monitor is tested with processes that hold something. */

#include <ttmem/query.h>

#include <errno.h>
#include <sys/resource.h>

#include "base/testing/unit.h"

static void new_query(struct ttmem_query **ret_query)
{
	assert(ttmem_query_new(NULL) == -EINVAL);
	assert(ttmem_query_new(ret_query) == 0);
}

UNIT(a_query_that_cannot_be_made_may_be_freed)
{
	struct rlimit before;
	struct ttmem_query *query = (void *)&before; /* as on a stack */

	assert(getrlimit(RLIMIT_NOFILE, &before) == 0);
	assert(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max}) == 0);
	assert(ttmem_query_new(&query) == -EMFILE);
	assert(setrlimit(RLIMIT_NOFILE, &before) == 0);
	assert(!query);
	ttmem_query_free(query);
}

UNIT(there_are_no_rows_before_a_refresh)
{
	struct ttmem_query_process process = {.struct_size = sizeof(process)};
	struct ttmem_query_device device = {.struct_size = sizeof(device)};
	struct ttmem_query_share share = {.struct_size = sizeof(share)};
	struct ttmem_query *query = NULL;

	new_query(&query);
	assert(ttmem_query_device(query, 0, &device) == -ENOENT);
	assert(ttmem_query_process(query, 0, &process) == -ENOENT);
	assert(ttmem_query_share(query, 0, 0, &share) == -ENOENT);
	ttmem_query_free(query);
	ttmem_query_free(NULL);
}

UNIT(indexes_beyond_the_end_are_refused)
{
	struct ttmem_query_process process = {.struct_size = sizeof(process)};
	struct ttmem_query_device device = {.struct_size = sizeof(device)};
	struct ttmem_query_share share = {.struct_size = sizeof(share)};
	struct ttmem_query *query = NULL;

	new_query(&query);
	assert(ttmem_query_refresh(NULL) == -EINVAL);
	assert(ttmem_query_refresh(query) == 0 && ttmem_query_refresh(query) == 0);
	assert(ttmem_query_device(query, SIZE_MAX, &device) == -ENOENT);
	assert(ttmem_query_process(query, SIZE_MAX, &process) == -ENOENT);
	assert(ttmem_query_share(query, SIZE_MAX, 0, &share) == -ENOENT);
	ttmem_query_free(query);
}
