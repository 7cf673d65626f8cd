/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a Device of tt-metal says about itself. Its architecture and its cores are told only where two
 * answers agree; else they stay unknown. The card and the unique id are what UMD said (metal-chip.h).
 */

struct metal_names;
struct metal_target;
struct ttmem_memory_facts;

/*
 * Declares what @object, a Device or MeshDevice, stands for. @memory: TTMEM_TYPE_COUNT, of its own
 * allocator. Without the lock.
 */
void metal_device_declare(const struct metal_names *names, const void *object,
			  const struct ttmem_memory_facts *memory,
			  const struct metal_target *target);
