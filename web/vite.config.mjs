// SPDX-License-Identifier: Apache-2.0
//
// Few, plain files: nothing inline (the page's policy forbids it), nothing from elsewhere. What is built in
// of other people's work is listed with its licence in licences.txt.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defineConfig } from "vite";

function packageOf(id) {
  const file = id.replace(/^\0/, "").replace(/\?.*$/, "");
  for (let folder = dirname(file); folder.includes("node_modules"); folder = dirname(folder))
    if (existsSync(join(folder, "package.json"))) return folder;
  return null;
}

function licences() {
  return {
    name: "licences",
    generateBundle(_options, bundle) {
      const folders = new Set();
      for (const chunk of Object.values(bundle))
        for (const id of Object.keys(chunk.modules ?? {})) {
          const folder = packageOf(id);
          if (folder) folders.add(folder);
        }
      const parts = [...folders].sort().map((folder) => {
        const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
        const text = file ? readFileSync(join(folder, file), "utf8").trim() : `License: ${about.license}`;
        return `${about.name} ${about.version}\n\n${text}\n`;
      });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: parts.join("\n----\n\n") });
    },
  };
}

/** With "--mode report": one script and one style sheet, which the report contains. */
const report = {
  outDir: "dist-report",
  cssCodeSplit: false,
  rollupOptions: {
    input: "src/report/main.ts",
    // A page that is opened as a file may not load modules; this is not one.
    output: { format: "iife", entryFileNames: "report.js", assetFileNames: "report[extname]" },
  },
};

export default defineConfig(({ mode }) => ({
  plugins: [licences()],
  publicDir: mode === "report" ? false : "public",
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
    ...(mode === "report" ? report : {}),
  },
}));
