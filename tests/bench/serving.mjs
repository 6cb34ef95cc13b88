// Several models on several processors, for real (docs/scheduling.md):
//
//     node serving.mjs --build DIR --work DIR memory [--seconds N] [--workers N] NAME=MODEL.onnx,MODEL.sluice ...
//     node serving.mjs --build DIR --work DIR faces|camera|headline [--seconds N] [--load L] NAME=... four models, or three
//
// memory: all models in budgets of 1, 1/2.3 and 1/5.8 of the sum of their weights, each in a memory cgroup of the budget and 4 MiB; mean
// response over that without a budget. Beside it each model as a session alone with its share of the budget, by its weights.
//
// faces: a detector, two classifiers and an embedder, 4, 12, 16 and 35 calls over 4 frames. camera: each model once a frame. Open loop, on
// {core 0, core 1 slowed three times, a timed processor three times as fast as core 0}. headline: the same calls as faces on {core 0, a
// timed processor eight times as fast}, beside core 0 alone. Frames come at `load` times the rate at which the processors could just do
// the work if it were a fluid (include/sluice/scheduler/simulator/fluid.h), by times of a short run before.
import { spawnSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const kBench = dirname(fileURLToPath(import.meta.url));
const kBeside = 4 << 20; // bytes of a cgroup that are no budget
const kShares = [2.3, 5.8];
const kFaceCalls = [4, 12, 16, 35]; // over kFrames
const kFrames = 4;
const kCore0 = { device: 'CPU', name: 'core0', cpus: [0] };
const kSlowed = { device: 'CPU', name: 'core1', cpus: [1], compute_slowdown: 3 };

function parseArguments(words) {
  const options = { seconds: 60, workers: 1, load: 1, json: false, models: [] };
  for (let i = 0; i < words.length; ++i) {
    const word = words[i];
    if (word === '--json') options.json = true;
    else if (word.startsWith('--')) options[word.slice(2)] = words[++i];
    else if (!word.includes('=')) options.what = word;
    else {
      const at = word.indexOf('=');
      const [onnx, sluice] = word.slice(at + 1).split(',');
      options.models.push({ name: word.slice(0, at), onnx, sluice, bytes: statSync(sluice).size });
    }
  }
  for (const key of ['seconds', 'workers', 'load']) options[key] = Number(options[key]);
  return options;
}

function run(program, words) {
  const child = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (child.status !== 0) throw new Error(`${program} ${words.join(' ')}: ${child.status} ${child.stderr}`);
  return child;
}

// `sluice serve` on these workers and requests; with a budget, in a cgroup of it and kBeside.
function serve(options, name, workers, requests, milliseconds, budget) {
  const config = join(options.work, `serving.${name}.json`), workload = join(options.work, `serving.${name}.requests.json`);
  writeFileSync(workload, JSON.stringify(requests));
  const models = options.models.map((model) => ({ graph: model.sluice }));
  const rest = { execution_mode: 'workload', workload, schedulers: ['sluice'], running_time_ms: milliseconds };
  writeFileSync(config, JSON.stringify({ models, workers, ...rest }));
  const words = [`${options.build}/sluice`, 'serve', config, '--json', ...(budget ? ['--budget', `${budget}`] : [])];
  const child = budget ? run(join(kBench, 'in_cgroup.sh'), [`${budget + kBeside}`, ...words]) : run(words[0], words.slice(1));
  return { ...JSON.parse(child.stdout), cgroup: child.stderr.split('\n').find((line) => line.startsWith('cgroup ')) ?? '' };
}

// As solve_fluid does: prices of processors that prove a least time for so many calls of each model.
function fluidMilliseconds(expected, calls) {
  const processors = expected[0].length;
  let prices = Array(processors).fill(1 / processors), best = 0;
  for (let round = 0; round < 2000; ++round) {
    const load = Array(processors).fill(0);
    let bound = 0;
    expected.forEach((times, m) => {
      let cheapest = -1;
      times.forEach((time, p) => {
        if (time !== null && (cheapest < 0 || prices[p] * time < prices[cheapest] * times[cheapest])) cheapest = p;
      });
      load[cheapest] += calls[m] * times[cheapest];
      bound += prices[cheapest] * calls[m] * times[cheapest];
    });
    best = Math.max(best, bound);
    const most = Math.max(...load);
    prices = prices.map((price, p) => price * Math.exp(((load[p] / most) * 2) / Math.sqrt(round + 4)));
    const sum = prices.reduce((a, b) => a + b, 0);
    prices = prices.map((price) => price / sum);
  }
  return best;
}

// Calls of each model in each of kFrames frames, as even as whole numbers allow.
function callsByFrame(calls) {
  const before = (frame, count) => Math.floor((frame * count) / kFrames);
  return Array.from({ length: kFrames }, (_, frame) => calls.map((count) => before(frame + 1, count) - before(frame, count)));
}

function frames(calls, period, milliseconds) {
  const byFrame = callsByFrame(calls), requests = [];
  for (let frame = 0; frame * period < milliseconds; ++frame)
    byFrame[frame % kFrames].forEach((count, model) => {
      for (let i = 0; i < count; ++i) requests.push({ at_ms: frame * period, model });
    });
  return requests;
}

// Frames at `load`, by times that a run of two seconds expects at its end.
function openLoop(options, name, workers, calls) {
  const short = serve(options, `${name}.short`, workers, frames(calls, 500, 2000), 2000);
  const period = fluidMilliseconds(short.models.map((model) => model.expected_ms), calls) / kFrames / options.load;
  const milliseconds = options.seconds * 1000;
  const out = serve(options, name, workers, frames(calls, period, milliseconds), milliseconds);
  const done = out.models.map((model) => model.objectives_met);
  const bound = fluidMilliseconds(out.models.map((model) => model.expected_ms), done);
  return {
    what: name, submitted: out.submitted, completed: done.reduce((a, b) => a + b, 0), refused: out.refused, per_s: out.throughput_per_s,
    share_of_fluid_bound: bound / out.elapsed_ms, predicted_within_15_percent: out.predicted_within_15_percent, checked: out.outputs_checked,
    other_bits: out.outputs_other, p50_ms: out.latency_ms.p50, p99_ms: out.latency_ms.p99, copied_between_cpus: out.handed_over_bytes.copied_there,
  };
}

function realRuns(options) {
  const calls = options.what === 'camera' ? options.models.map(() => kFrames) : kFaceCalls;
  if (calls.length !== options.models.length) throw new Error(`${options.what} takes ${calls.length} models`);
  const timed = (speedup) => ({ device: 'TIMED', name: 'timed', speedup });
  if (options.what !== 'headline') return [openLoop(options, options.what, [kCore0, kSlowed, timed(3)], calls)];
  const alone = openLoop(options, 'one CPU', [kCore0], calls);
  const both = openLoop(options, 'one CPU and timed x 8', [kCore0, timed(8)], calls);
  return [alone, { ...both, times_one_cpu: both.per_s / alone.per_s }];
}

const workersOf = (count) => count === 1 ? [{ device: 'CPU', name: 'cores', cpus: [0, 1], num_threads: 2 }] : [kCore0, { ...kSlowed, compute_slowdown: 1 }];

function memory(options) {
  const weights = options.models.reduce((sum, model) => sum + model.bytes, 0);
  const workers = workersOf(options.workers);
  // One request after the other, with room between them: response is what a run takes, and what switching costs.
  const short = serve(options, 'memory.short', workers, options.models.map((_, model) => ({ at_ms: 0, model })), 1);
  const one = short.models.map((model) => Math.min(...model.expected_ms));
  const gap = 3 * Math.max(...one), rounds = Math.max(2, Math.round((options.seconds * 1000) / gap / one.length));
  const requests = [];
  for (let i = 0; i < rounds * one.length; ++i) requests.push({ at_ms: i * gap, model: i % one.length });
  const serveIn = (name, budget) => serve(options, `memory.${name}`, workers, requests, rounds * one.length * gap, budget);
  const alone = (budget) => {  // each model as a session with its share
    let sum = 0;
    for (const model of options.models) {
      const share = budget ? ['--budget', `${Math.floor((budget * model.bytes) / weights)}`] : [];
      const words = ['run', model.sluice, '--json', '--scope', 'library', '--threads', '2', '--warmup', '1', '--repeat', '3', ...share];
      const child = spawnSync(`${options.build}/sluice`, words, { encoding: 'utf8', maxBuffer: 1 << 28 });
      if (child.status !== 0) return { refused: model.name };
      const times = JSON.parse(child.stdout).latency_ms;
      sum += times.reduce((a, b) => a + b, 0) / times.length;
    }
    return { mean_ms: sum / options.models.length };
  };
  const unlimited = serveIn('unlimited'), shareUnlimited = alone();
  const rows = [{ what: 'unlimited', weights, mean_ms: unlimited.latency_ms.mean, peak: unlimited.peak_rss_bytes, fixed_share_ms: shareUnlimited.mean_ms }];
  for (const share of kShares) {
    const budget = Math.floor(weights / share);
    const row = { what: `1/${share}`, budget };
    try {
      const out = serveIn(`${share}`, budget);
      const mean_ms = out.latency_ms.mean, times_unlimited = mean_ms / unlimited.latency_ms.mean;
      Object.assign(row, { mean_ms, times_unlimited, peak: out.peak_rss_bytes, cgroup: out.cgroup, other_bits: out.outputs_other });
    } catch (error) {
      row.refused = error.message.split('\n').find((line) => line.includes('sluice:')) ?? error.message.slice(0, 200);
    }
    const fixed = alone(budget);
    if (fixed.refused) row.fixed_share_refused = fixed.refused;
    else Object.assign(row, { fixed_share_ms: fixed.mean_ms, fixed_share_times_unlimited: fixed.mean_ms / shareUnlimited.mean_ms });
    rows.push(row);
  }
  return rows;
}

const options = parseArguments(process.argv.slice(2));
const rows = options.what === 'memory' ? memory(options) : realRuns(options);
const text = (value) => typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(3) : `${value}`;
if (options.json) console.log(JSON.stringify(rows, null, 2));
else for (const row of rows) console.log(Object.entries(row).map(([key, value]) => `${key} ${text(value)}`).join('   '));
