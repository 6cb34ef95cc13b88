// Every ONNX file of a folder on Sluice beside ONNX Runtime: are the answers right, are the bits the same in the smallest budget, how long does it
// take, beside what its multiplications alone would at the FMA peak, and where it takes longer than the peer, which nodes cost it.
//
//     node zoo.mjs --modules DIR/node_modules --build DIR --work DIR [--threads N] [--blocks N] [--runs N] [--dim NAME=EXTENT]... [--steps N] [--json]
//                  FILE_OR_FOLDER...
//
// Answers are compared with the peer's without its rewrites, which round quantised values in places of their own; times with all of them.
// With one thread the CPU time counts, of more the elapsed time, beside that of our own single thread. Of each side the least run counts.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

import { differenceFrom, feedsOf, fill, inputWords, onnxFiles, sameFiles } from '../golden/tensors.mjs';
import { interleave, json, least, output } from './interleave.mjs';
import { boundMs } from './multiplications.mjs';
import { OnnxRuntime } from './onnxruntime.mjs';

// A block of a slow model is as many runs as fit in this, at least one.
const kBlockMs = 1500;
const kStatsRuns = 3;
// What a free dimension becomes that no --dim names: a batch is 1; of the others the first size that the converter takes.
const kBatchWords = /^(batch|bs|n|unk)([^a-z]|$)/i;
const kExtents = [8, 64, 320, 576];

class Refused extends Error {}

function parseArguments(words) {
  const options = { threads: 1, blocks: 3, runs: 5, steps: 5, dim: {}, json: false, paths: [] };
  for (let i = 0; i < words.length; ++i) {
    const word = words[i];
    if (word === '--json') options.json = true;
    else if (word === '--dim') {
      const [name, extent] = words[++i].split('=');
      options.dim[name] = extent;
    } else if (word.startsWith('--')) options[word.slice(2)] = words[++i];
    else options.paths.push(word);
  }
  for (const key of ['threads', 'blocks', 'runs', 'steps']) options[key] = Number(options[key]);
  return options;
}

function convert(sluice, onnx, model, given) {
  const call = (dims) => spawnSync(sluice, ['convert', onnx, '-o', model, '--json', '--quiet', ...dims], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const problemsOf = (child) => {
    try {
      return JSON.parse(child.stdout).problems.map((problem) => problem.message);
    } catch {
      return [(child.stderr ?? '').trim().split('\n')[0] || `signal ${child.signal}`];
    }
  };
  let child = call([]);
  if (child.status === 0) return;
  const problems = problemsOf(child);
  const asked = [...new Set(problems.flatMap((text) => [...text.matchAll(/--dim (\S+)=\.\.\./g)].map((match) => match[1])))];
  for (const extent of asked.length > 0 ? kExtents : []) {
    child = call(asked.flatMap((name) => ['--dim', `${name}=${given[name] ?? (kBatchWords.test(name) ? 1 : extent)}`]));
    if (child.status === 0) return;
  }
  throw new Refused(problemsOf(child)[0] ?? problems[0]);
}

// The bits at both ends and the distance from the peer's plain answer.
async function checkAnswers(peer, onnx, model, inputs, words, folder, options) {
  const sluice = `${options.build}/sluice`;
  const least_budget = json(sluice, ['plan', model, '--json']).minimum_budget_bytes;
  const folders = ['unlimited', `${least_budget}`].map((budget) => {
    const out = join(folder, budget);
    output(sluice, ['run', model, '--budget', budget, ...words, '--output', out]);
    return out;
  });
  const difference = differenceFrom(await peer.answer(onnx, inputs), folders[0]);
  return { least_budget_bytes: least_budget, same_bits: sameFiles(...folders), difference };
}

// The nodes that take most of a run, with their share of the time.
function costliest(build, model, words, threads, count) {
  const sluice = `${build}/sluice`;
  const description = json(sluice, ['inspect', model, '--nodes', '--json']);
  const operators = Object.fromEntries(description.node_list.map((node) => [node.name, node]));
  const times = {};
  for (let run = 0; run < kStatsRuns; ++run) {
    const spent = {};
    for (const step of json(sluice, ['run', model, ...words, '--threads', `${threads}`, '--warmup', '2', '--stats', '--json']).steps)
      spent[step.node] = (spent[step.node] ?? 0) + step.compute_ms;
    for (const [node, ms] of Object.entries(spent)) times[node] = Math.min(times[node] ?? Infinity, ms);
  }
  const total = Object.values(times).reduce((a, b) => a + b, 0);
  return Object.entries(times)
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([node, ms]) => ({ node, operator: operators[node]?.operator, shape: operators[node]?.shape, ms, share: ms / total }));
}

async function compare(peer, onnx, folder, options) {
  const sluice = `${options.build}/sluice`;
  const model = join(folder, 'model.sluice');
  convert(sluice, onnx, model, options.dim);
  const description = json(sluice, ['inspect', model, '--json']);
  const inputs = description.inputs.filter(({ shape }) => !shape.includes(0));
  for (const input of inputs) input.array = fill(input);
  // The peer first: its session may turn values into those that f16 has.
  await peer.open(onnx, inputs, options.threads);
  const words = inputWords(inputs, folder);
  const row = {};
  let peak;
  const peak_program = `${options.build}/sluice-bench-peak`;
  const between = existsSync(peak_program) ? () => (peak = Math.max(peak ?? 0, Number(output(peak_program, [`${options.threads}`])))) : undefined;
  try {
    const timed = await interleave(peer, { build: options.build, model, words, block_ms: kBlockMs, between, ...options });
    const key = options.threads === 1 ? 'cpu_ms' : 'latency_ms';
    Object.assign(row, { counted: key, sluice_ms: least(timed.ours, key), onnxruntime_ms: least(timed.theirs, key) });
    if (options.threads > 1) row.sluice_one_thread_ms = least(timed.single, key);
  } finally {
    await peer.close();
  }
  row.ratio = row.sluice_ms / row.onnxruntime_ms;
  row.peak_gflops = peak;
  row.bound_ms = peak && boundMs(description, peak);
  row.bound_ratio = row.bound_ms && row.bound_ms / row.onnxruntime_ms;
  Object.assign(row, await checkAnswers(peer, onnx, model, inputs, words, folder, options));
  if (row.ratio > 1) row.costliest = costliest(options.build, model, words, options.threads, options.steps);
  return row;
}

function printRow(name, row) {
  if (row.refused) {
    console.log(`${name.padEnd(40)} refused: ${row.refused}`);
    return;
  }
  if (row.failed) {
    console.log(`${name.padEnd(40)} FAILED: ${row.failed}`);
    return;
  }
  const single = row.sluice_one_thread_ms === undefined ? '' : row.sluice_one_thread_ms.toFixed(2);
  console.log(
    [
      name.padEnd(40), row.difference.toExponential(1).padStart(9), (row.same_bits ? 'same' : 'DIFFER').padStart(8),
      (row.least_budget_bytes / 1048576).toFixed(2).padStart(10), row.sluice_ms.toFixed(2).padStart(11), single.padStart(single ? 11 : 0),
      row.onnxruntime_ms.toFixed(2).padStart(12), row.ratio.toFixed(2).padStart(9), (row.bound_ratio?.toFixed(2) ?? '-').padStart(9),
      row.ratio > 1 ? '  SLOWER' : '',
    ].join(''),
  );
  for (const step of row.costliest ?? [])
    console.log(`    ${(100 * step.share).toFixed(0).padStart(3)} %  ${step.ms.toFixed(3).padStart(9)} ms  ${step.operator ?? ''} ${step.node} ${(step.shape ?? []).join('x')}`);
}

function summary(rows) {
  const timed = rows.filter((row) => row.ratio > 0 && !row.failed);
  const mean = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
  const bounded = timed.filter((row) => row.bound_ratio > 0);
  return {
    models: rows.length,
    refused: rows.filter((row) => row.refused).length,
    failed: rows.filter((row) => row.failed).length,
    geometric_mean: mean(timed.map((row) => row.ratio)),
    with_bound: { models: bounded.length, geometric_mean: mean(bounded.map((row) => row.ratio)), bound: mean(bounded.map((row) => row.bound_ratio)) },
    slower: timed.filter((row) => row.ratio > 1).length,
    slower_than_one_thread: timed.filter((row) => row.sluice_ms > row.sluice_one_thread_ms).length,
    other_bits: timed.filter((row) => !row.same_bits).length,
    largest_difference: Math.max(...timed.map((row) => row.difference)),
    worst: [...timed].sort((a, b) => b.ratio - a.ratio).slice(0, 10).map(({ model, ratio }) => ({ model, ratio })),
  };
}

function printSummary(total, threads) {
  console.log(
    `\n${total.models} models, ${total.refused} refused, ${total.failed} failed; geometric mean of the ratios ${total.geometric_mean.toFixed(3)}, ${total.slower} above 1` +
      (threads > 1 ? `, ${total.slower_than_one_thread} slower than on one thread` : '') +
      `; ${total.other_bits} with other bits in the smallest budget; largest difference ${total.largest_difference.toExponential(1)}`,
  );
  if (total.with_bound.models > 0)
    console.log(
      `multiplications alone, at the FMA peak: ${total.with_bound.bound.toFixed(3)} of the peer's time where ours is ` +
        `${total.with_bound.geometric_mean.toFixed(3)} (${total.with_bound.models} models)`,
    );
  console.log(`worst: ${total.worst.map(({ model, ratio }) => `${model} ${ratio.toFixed(2)}`).join(', ')}`);
}

function filesOf(paths) {
  const size = ({ path }) => statSync(path).size;
  return paths
    .flatMap((path) =>
      statSync(path).isDirectory() ? onnxFiles(path).map((file) => ({ name: relative(path, file), path: file })) : [{ name: basename(path), path }])
    .sort((a, b) => size(a) - size(b));
}

const options = parseArguments(process.argv.slice(2));
const peer = new OnnxRuntime(options.modules);
const files = filesOf(options.paths);
const rows = [];
mkdirSync(options.work, { recursive: true });
if (!options.json) {
  const counted = options.threads === 1 ? 'CPU time' : 'elapsed time';
  const single = options.threads === 1 ? '' : '   1 thread';
  console.log(`${options.threads} thread(s), ${counted}, least of ${options.blocks} blocks of up to ${options.runs} runs in turn\n`);
  console.log(`${'model'.padEnd(40)}    differs    bits  least MiB  sluice ms${single} onnxruntime    ratio    bound`);
}
for (const [i, { name, path }] of files.entries()) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${i + 1} of ${files.length}: ${name}`);
  const folder = mkdtempSync(join(options.work, 'zoo-'));
  const row = { model: name };
  try {
    Object.assign(row, await compare(peer, path, folder, options));
  } catch (error) {
    row[error instanceof Refused ? 'refused' : 'failed'] = String(error.message).split('\n')[0].slice(0, 300);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  rows.push(row);
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  if (!options.json) printRow(name, row);
}
const total = summary(rows);
if (options.json) console.log(JSON.stringify({ threads: options.threads, summary: total, models: rows }, null, 2));
else printSummary(total, options.threads);
process.exitCode = total.other_bits + total.failed > 0 ? 1 : 0;
