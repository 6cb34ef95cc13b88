// Runs of Sluice and of a peer in turn, block by block, so that a busy minute slows both.
import { spawnSync } from 'node:child_process';

const kWarmupMs = 100;
const kKeys = ['cpu_ms', 'latency_ms'];

export function output(program, words) {
  const child = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (child.status !== 0) throw new Error(`${program} ${words.join(' ')}: ${child.stderr}`);
  return child.stdout;
}

export const json = (program, words) => JSON.parse(output(program, words));
export const least = (side, key) => Math.min(...side[key]);

// `peer` is open. `build`, `model`, `threads`, `blocks` and `runs` say what runs; optional are a `budget`, `words` (more of `sluice run`'s), `block_ms`
// (a block has fewer runs, but one, where they would take longer), and `between`, called before each block. With several threads `single` has
// our runs on one thread, in the same blocks.
export async function interleave(peer, { build, model, threads, blocks, runs, budget = 'unlimited', words = [], block_ms = Infinity, between }) {
  const ours = { cpu_ms: [], latency_ms: [] }, theirs = { cpu_ms: [], latency_ms: [] }, single = { cpu_ms: [], latency_ms: [] };
  let report;
  const add = (side, block) => kKeys.forEach((key) => side[key].push(...block[key]));
  const run = (on, count, warmup) =>
    json(`${build}/sluice`, ['run', model, '--json', '--budget', budget, '--threads', `${on}`, '--repeat', `${count}`, '--warmup', `${warmup}`, ...words]);
  for (let block = 0; block < blocks; ++block) {
    between?.();
    // Both sides warm up alike. Our process is new in each block, and two runs of a small model are over before the clock is up.
    const run_ms = report ? least(ours, 'latency_ms') : 0;
    const warmup = report ? Math.max(run_ms > block_ms ? 1 : 2, Math.ceil(kWarmupMs / run_ms)) : 2;
    const count = report ? Math.max(1, Math.min(runs, Math.floor(block_ms / run_ms))) : block_ms < Infinity ? 1 : runs;
    report = run(threads, count, warmup);
    add(ours, report);
    if (threads > 1) add(single, run(1, count, warmup));
    await peer.block(warmup);
    add(theirs, await peer.block(count));
  }
  return { ours, theirs, single, report };
}
