/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * nvtop: the devices of ttmem, as a vendor of its own. All figures come from libttmem-query, so they are those of
 * `ttmem smi`: used and total DRAM of each device, and what each process holds of it. ttmem.cmake adds this file
 * to a build of nvtop.
 */

#include "nvtop/extract_gpuinfo_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ttmem/query.h>

#define REFRESH_NS 500000000 /* nvtop asks for each device in turn: one look at the machine serves them all */
#define CARD_LENGTH 11       /* of "wormhole_b0"; nvtop's lines grow with the longest name, beyond the terminal */
#define NO_ROW UINT32_MAX    /* as a share has it */
#define MOST_TIMES 100       /* how often a device's capacity its memory is shown; nvtop's percentage is an unsigned */

struct gpu_info_ttmem {
  struct gpu_info base;
  struct ttmem_query_device device; /* of the last refresh in which it was there */
};

static struct ttmem_query *query;
static struct gpu_info_ttmem *infos;
static struct timespec refreshed;
static bool is_refreshed; /* else the rows of the query are of an earlier time */
static const char *last_error = "no error";

static bool ttmem_refresh(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  long long age = (now.tv_sec - refreshed.tv_sec) * 1000000000LL + (now.tv_nsec - refreshed.tv_nsec);
  if (refreshed.tv_sec && age < REFRESH_NS)
    return is_refreshed;
  int r = ttmem_query_refresh(query);
  if (r < 0)
    last_error = strerror(-r);
  is_refreshed = r == 0;
  refreshed = now;
  return is_refreshed;
}

static bool gpuinfo_ttmem_init(void) {
  int r = ttmem_query_new(&query);
  if (r < 0)
    last_error = strerror(-r);
  return r == 0;
}

static void gpuinfo_ttmem_shutdown(void) {
  ttmem_query_free(query);
  query = NULL;
  free(infos);
  infos = NULL;
}

static const char *gpuinfo_ttmem_last_error_string(void) { return last_error; }

static struct gpu_vendor gpu_vendor_ttmem;

/* nvtop asks once: a device that appears later, with its first process, is seen after a restart. */
static bool gpuinfo_ttmem_get_device_handles(struct list_head *devices, unsigned *count) {
  struct ttmem_query_device device = {.struct_size = sizeof(device)};
  unsigned n = 0;

  *count = 0;
  if (!ttmem_refresh())
    return false;
  while (ttmem_query_device(query, n, &device) == 0)
    n++;
  infos = calloc(n + 1, sizeof(*infos));
  if (!infos)
    return false;
  for (unsigned i = 0; i < n; i++) {
    infos[i].base.vendor = &gpu_vendor_ttmem;
    infos[i].device.struct_size = sizeof(infos[i].device);
    (void)ttmem_query_device(query, i, &infos[i].device);
    snprintf(infos[i].base.pdev, PDEV_LEN, "ttmem %u", infos[i].device.device);
    list_add_tail(&infos[i].base.list, devices);
  }
  *count = n;
  return true;
}

/* With ttmem's number: nvtop counts the devices that it shows, of all vendors. */
static void gpuinfo_ttmem_populate_static_info(struct gpu_info *gpu_info) {
  struct gpu_info_ttmem *info = container_of(gpu_info, struct gpu_info_ttmem, base);
  struct gpuinfo_static_info *static_info = &gpu_info->static_info;
  const char *card = info->device.card[0] ? info->device.card : info->device.arch;

  RESET_ALL(static_info->valid);
  snprintf(static_info->device_name, sizeof(static_info->device_name), "Tenstorrent %.*s%s#%u", CARD_LENGTH, card,
           card[0] ? " " : "", info->device.device);
  /* A process declared the card: nothing of it may move nvtop's cursor, or end a string of its JSON. */
  for (char *c = static_info->device_name; *c; c++)
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') /* char may be unsigned */
      *c = '?';
  SET_VALID(gpuinfo_device_name_valid, static_info->valid);
}

/*
 * The row that a device has now, NO_ROW if it is gone: others may have come or gone. A device without an id is known
 * by its number, until a process declares the id.
 */
static uint32_t ttmem_find(const struct gpu_info_ttmem *info) {
  struct ttmem_query_device device = {.struct_size = sizeof(device)};
  uint32_t found = NO_ROW;

  for (uint32_t i = 0; ttmem_query_device(query, i, &device) == 0; i++) {
    bool has_number = device.device == info->device.device;

    if (device.unique_id == info->device.unique_id && (device.unique_id || has_number))
      return i;
    if (found == NO_ROW && has_number && !info->device.unique_id)
      found = i;
  }
  return found;
}

static void gpuinfo_ttmem_refresh_dynamic_info(struct gpu_info *gpu_info) {
  struct gpu_info_ttmem *info = container_of(gpu_info, struct gpu_info_ttmem, base);
  struct gpuinfo_dynamic_info *dynamic_info = &gpu_info->dynamic_info;
  struct ttmem_query_memory *dram = &info->device.memory[TTMEM_DRAM];

  RESET_ALL(dynamic_info->valid);
  if (!ttmem_refresh())
    return;
  if (ttmem_query_device(query, ttmem_find(info), &info->device) < 0)
    dram->bytes = 0; /* it was there, and nobody uses it now */
  if (!dram->capacity || dram->bytes / dram->capacity < MOST_TIMES)
    SET_GPUINFO_DYNAMIC(dynamic_info, used_memory, dram->bytes);
  if (dram->capacity) {
    /* Processes that contradict each other can use more than there is. */
    uint64_t bytes = dram->bytes < dram->capacity ? dram->bytes : dram->capacity;

    SET_GPUINFO_DYNAMIC(dynamic_info, total_memory, dram->capacity);
    SET_GPUINFO_DYNAMIC(dynamic_info, free_memory, dram->capacity - bytes);
    SET_GPUINFO_DYNAMIC(dynamic_info, mem_util_rate, (unsigned)(bytes * 100.0 / dram->capacity));
  }
}

static bool ttmem_add_process(struct gpu_info *gpu_info, const struct ttmem_query_process *held, uint64_t bytes) {
  struct gpu_process *process;

  if (held->pid == 0 || held->pid > INT_MAX)
    return true; /* outside of our pid namespace; nvtop's F9 would end a group of processes */
  if (gpu_info->processes_count == gpu_info->processes_array_size) {
    unsigned size = gpu_info->processes_array_size + 16;
    process = realloc(gpu_info->processes, size * sizeof(*process));
    if (!process)
      return false;
    gpu_info->processes = process;
    gpu_info->processes_array_size = size;
  }
  process = &gpu_info->processes[gpu_info->processes_count++];
  memset(process, 0, sizeof(*process));
  process->type = gpu_process_compute;
  process->pid = (pid_t)held->pid;
  if (held->is_tracked)
    SET_GPUINFO_PROCESS(process, gpu_memory_usage, bytes);
  return true;
}

static void gpuinfo_ttmem_get_running_processes(struct gpu_info *gpu_info) {
  struct gpu_info_ttmem *info = container_of(gpu_info, struct gpu_info_ttmem, base);
  struct ttmem_query_process process = {.struct_size = sizeof(process)};
  struct ttmem_query_share share = {.struct_size = sizeof(share)};
  uint32_t row = is_refreshed ? ttmem_find(info) : NO_ROW;

  gpu_info->processes_count = 0;
  if (row == NO_ROW)
    return;
  for (size_t i = 0; ttmem_query_process(query, i, &process) == 0; i++)
    for (size_t k = 0; ttmem_query_share(query, i, k, &share) == 0; k++)
      if (share.row == row && !ttmem_add_process(gpu_info, &process, share.memory[TTMEM_DRAM].bytes))
        return;
}

static struct gpu_vendor gpu_vendor_ttmem = {
    .init = gpuinfo_ttmem_init,
    .shutdown = gpuinfo_ttmem_shutdown,
    .last_error_string = gpuinfo_ttmem_last_error_string,
    .get_device_handles = gpuinfo_ttmem_get_device_handles,
    .populate_static_info = gpuinfo_ttmem_populate_static_info,
    .refresh_dynamic_info = gpuinfo_ttmem_refresh_dynamic_info,
    .refresh_running_processes = gpuinfo_ttmem_get_running_processes,
    .name = "ttmem",
};

__attribute__((constructor)) static void init_extract_gpuinfo_ttmem(void) { register_gpu_vendor(&gpu_vendor_ttmem); }
