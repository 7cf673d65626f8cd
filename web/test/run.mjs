// SPDX-License-Identifier: Apache-2.0
//
// Tests of the parts that need no browser: run.mjs bundles each *.test.mjs with the sources it is about (Vite does, as
// for the page itself), and has node's own runner run them. Counts go to the file that ./dev names.
import { spawnSync } from "node:child_process";
import { appendFileSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "built");
const input = Object.fromEntries(
  readdirSync(here).filter((name) => name.endsWith(".test.mjs")).map((name) => [name.replace(/\.mjs$/, ""), join(here, name)]),
);

await build({
  root: dirname(here),
  configFile: false,
  logLevel: "warn",
  build: {
    ssr: true, outDir: out, emptyOutDir: true, target: "node18", minify: false,
    rollupOptions: { input, output: { entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" } },
  },
});

const files = Object.keys(input).map((name) => join(out, `${name}.mjs`));
const { stdout, stderr, status } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...files], {
  encoding: "utf8", env: { ...process.env, TZ: "Europe/Berlin" }, maxBuffer: 1 << 26,
});
const number = (name) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(stdout)?.[1] ?? 0);
const [passed, failed] = [number("pass"), number("fail") + number("cancelled")];
// What passed is of no interest.
if (status !== 0) process.stdout.write(stdout + stderr);
console.log(`${passed} passed, ${failed} failed (without a browser)`);
if (process.env.TTMEM_RESULTS)
  appendFileSync(process.env.TTMEM_RESULTS, `web-parts ${passed} ${status !== 0 ? Math.max(1, failed) : 0} 0\n`);
rmSync(out, { recursive: true, force: true });
process.exit(status === 0 && passed > 0 ? 0 : 1);
