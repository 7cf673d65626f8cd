// SPDX-License-Identifier: Apache-2.0
//
// A real ttmemd with all its files in a folder of its own, and players (tests/programs/player.c) that execute
// the commands of a test.
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { until } from "./runner.mjs";

const BUILD = process.env.TTMEM_BUILD;

class Player {
  constructor(program, env, words = []) {
    this.process = spawn(program, words, { env, stdio: ["pipe", "pipe", "inherit"] });
    this.pid = this.process.pid;
    this.waiting = [];
    createInterface(this.process.stdout).on("line", (line) => this.waiting.shift()?.(line));
  }

  async play(...lines) {
    for (const line of lines) {
      const answer = new Promise((resolve) => this.waiting.push(resolve));
      this.process.stdin.write(`${line}\n`);
      const said = await answer;
      if (said !== "ok") throw new Error(`${line}: ${said}`);
    }
    return this;
  }

  async kill(end = () => this.process.kill("SIGKILL")) {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    end();
    await ended;
  }

  /** Lets it end by itself. */
  end() {
    return this.kill(() => this.process.stdin.end());
  }
}

export class Daemon {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "ttmem-web-"));
    this.env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TTMEM|TT_)/.test(name)));
    this.env.TTMEM_SOCKET = join(this.folder, "s");
    this.env.XDG_RUNTIME_DIR = join(this.folder, "run");
    mkdirSync(this.env.XDG_RUNTIME_DIR, { mode: 0o700 });
    this.env.TTMEM_SHM_DIR = this.env.XDG_RUNTIME_DIR; // regions of programs on this machine do not count
    this.program = "src/daemon/ttmemd";
    this.address = "127.0.0.1:0";
    this.players = [];
    this.starts = 0;
  }

  async start(...more) {
    const log = join(this.folder, `log-${++this.starts}`);
    const output = openSync(log, "a");
    this.process = spawn(
      join(BUILD, this.program),
      ["--socket", this.env.TTMEM_SOCKET, "--legacy-socket", "none", "--http", this.address, "--keeper", "no",
        "--state", join(this.folder, "state"), ...more],
      { env: this.env, stdio: ["ignore", output, output] },
    );
    // A separate thread writes the log, a moment later.
    this.base = await until("the address", () => /http:\/\/[\d.:]+/.exec(readFileSync(log, "utf8"))?.[0]);
    this.address = this.base.slice("http://".length);
    return this;
  }

  get token() {
    return readFileSync(join(this.folder, "state", "http-token"), "utf8").trim();
  }

  async stop(signal = "SIGTERM") {
    if (!this.process) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
    this.process = null;
  }

  async started({ comm = "player", stacks = "off", words = [] }, lines) {
    const folder = mkdtempSync(join(this.folder, "bin-"));
    const program = join(folder, comm);
    symlinkSync(join(BUILD, "tests/programs/player"), program);
    const player = new Player(program, { ...this.env, TTMEM: "1", TTMEM_STACKS: stacks }, words);
    this.players.push(player);
    await player.play(...lines);
    return player;
  }

  /** @comm: the name that the kernel has for it; @words: of its command line, which it ignores. */
  async player(options = {}, ...lines) {
    const player = await this.started(options, lines);
    await this.known(player);
    return player;
  }

  /** Many of them: [{ comm, stacks, lines }]. */
  async crowd(all) {
    const players = [];
    for (const { lines, ...options } of all) players.push(await this.started(options, lines));
    await this.known(...players);
    return players;
  }

  /** A process with a simulated device 2, fragmented at random. */
  async allocator(seed, card = "n150") {
    const player = new Player(join(BUILD, "tests/programs/allocator"), { ...this.env, TTMEM: "1" }, [String(seed), card]);
    this.players.push(player);
    await this.known(player);
    return player;
  }

  /** Waits until the daemon knows the processes. Running the command for each attempt would take longer than the wait. */
  async known(...players) {
    await until("the processes", async () => {
      const { processes } = await (await fetch(`${this.base}/api/v1/smi`)).json();
      const pids = new Set(processes.map((one) => one.pid));
      return players.every(({ pid }) => pids.has(pid));
    });
  }

  /** The JSON output of a command. */
  async json(...words) {
    const ttmem = join(BUILD, "src/cli/ttmem");
    const options = { env: this.env, maxBuffer: 1 << 26 };
    // "fit" exits with 1 if something does not fit.
    const { stdout } = await promisify(execFile)(ttmem, [...words.map(String), "--json"], options).catch((error) => error);
    return JSON.parse(stdout);
  }

  /** A link of "ttmem open" for the browser of who runs this. */
  async link(...words) {
    const env = { ...this.env, SUDO_UID: String(process.getuid()) };
    return (await promisify(execFile)(join(BUILD, "src/cli/ttmem"), ["open", ...words.map(String)], { env })).stdout.trim();
  }

  smi() {
    return this.json("smi");
  }

  async killPlayers() {
    await Promise.all(this.players.map((player) => player.kill()));
    this.players = [];
  }

  async close() {
    await this.killPlayers();
    await this.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
