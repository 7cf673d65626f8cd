// SPDX-License-Identifier: Apache-2.0
//
// A small machine with something in every view, for tests that visit all of them.

const GIB = 1024 ** 3;

export async function machine(daemon) {
  const device = (number, uid, card) => `device ${number} ${uid} wormhole_b0 ${card} 0 ${12 * GIB} ${96 * 1024 ** 2} 12`;
  const serve = await daemon.player({ comm: "llama-serve", stacks: "fp" },
    device(0, "0xa1", "n300"), device(1, "0xa2", "n300"),
    "push load", `alloc 0 DRAM 0x20 ${3 * GIB} tok_embeddings`, `alloc 1 DRAM 0x20 ${3 * GIB} tok_embeddings`,
    "push layer%200", `alloc 0 DRAM 0x20000000 ${2 * GIB} layers.0.wq`, "pop", "pop",
    "alloc 0 L1 0x20000 8388608 activations", "alloc 0 CB 0x100000 2097152 cb_in0", "kernel 0 0x30000000 65536 1");
  const train = await daemon.player({ comm: "train" }, device(1, "0xa2", "n300"),
    `alloc 1 DRAM 0x30000000 ${GIB} optimizer`, "alloc 7 DRAM 0x1000 4096 elsewhere");
  const broken = await daemon.player({ comm: "kv-evict", stacks: "fp" }, device(0, "0xa1", "n300"),
    "push evict", "alloc 0 DRAM 0x38000000 1048576 kv_cache", "free 0 DRAM 0x38000000", "free 0 DRAM 0x38000000",
    "failed 0 DRAM 99999999999 1000", "alloc 0 DRAM 0x38000000 33554432 kv_page");
  await broken.kill();
  return { serve, train, broken };
}
