/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PyTorch's pluggable allocator for CUDA, in two functions that report to ttmem: then every buffer of a
 * training is in `ttmem top`, with the Python line that asked for it. What it takes for another accelerator
 * is as little: the two calls that allocate and free its memory, and these two reports.
 *
 *     cc -shared -fPIC allocator.c -o allocator.so -lcudart $(pkg-config --cflags --libs ttmem)
 *
 *     import torch, ttmem
 *     torch.cuda.memory.change_current_allocator(
 *         torch.cuda.memory.CUDAPluggableAllocator("./allocator.so", "tracked_malloc", "tracked_free"))
 *
 * This replaces PyTorch's caching allocator, so a program runs slower: it is for finding out, not for
 * production.
 */

#include <stdint.h>
#include <sys/types.h>

#include <ttmem/ttmem.h>

/* Of the CUDA runtime; 0 = success. */
int cudaMalloc(void **ret_address, size_t size);
int cudaFree(void *address);

void *tracked_malloc(ssize_t size, int device, void *stream);
void tracked_free(void *address, ssize_t size, int device, void *stream);

void *tracked_malloc(ssize_t size, int device, void *stream)
{
	void *address = NULL;

	(void)stream;
	if (cudaMalloc(&address, (size_t)size) != 0) {
		ttmem_alloc_failed((uint32_t)device, TTMEM_DRAM, (uint64_t)size, TTMEM_UNKNOWN);
		return NULL;
	}
	ttmem_alloc((uint32_t)device, TTMEM_DRAM, (uintptr_t)address, (uint64_t)size, NULL);
	return address;
}

void tracked_free(void *address, ssize_t size, int device, void *stream)
{
	(void)size;
	(void)stream;
	/* Before the memory is handed out again by another thread. */
	ttmem_free((uint32_t)device, TTMEM_DRAM, (uintptr_t)address);
	(void)cudaFree(address);
}
