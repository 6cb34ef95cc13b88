// Models in small memory cgroups, beside ONNX Runtime with weights that it maps from a file, so that the system may drop pages of them.
//
//     node cgroups.mjs --modules DIR/node_modules --build DIR --work DIR --sizes 64MiB,32MiB [--blocks N] [--runs N] [--json]
//                      NAME=MODEL.onnx,MODEL.sluice ...
//
// Each side runs in a process of its own in a cgroup of that size without swap: ours with a budget of 4 MiB less, for what a cgroup counts
// beside the process. Before each block the pages of the files that it reads are dropped from the page cache. The sides take turns. A block
// that the system kills is counted; its runs until then are not.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { json, output } from './interleave.mjs';

const kBench = dirname(fileURLToPath(import.meta.url));
const kBeside = 4 << 20; // bytes of a cgroup that are no budget
const kNotPermitted = 77;

function parseArguments(words) {
  const options = { blocks: 4, runs: 5, json: false, models: [] };
  for (let i = 0; i < words.length; ++i) {
    const word = words[i];
    if (word === '--json') options.json = true;
    else if (word.startsWith('--')) options[word.slice(2)] = words[++i];
    else {
      const at = word.indexOf('=');
      const [onnx, sluice] = word.slice(at + 1).split(',');
      options.models.push({ name: word.slice(0, at), onnx, sluice });
    }
  }
  options.sizes = options.sizes.split(',').map(bytesOf);
  for (const key of ['blocks', 'runs']) options[key] = Number(options[key]);
  return options;
}

function bytesOf(size) {
  const match = /^(\d+)(MiB|GiB)?$/.exec(size);
  if (!match) throw new Error(`${size}: a size is a number of bytes, or of MiB or GiB`);
  return Number(match[1]) * { MiB: 1 << 20, GiB: 1 << 30 }[match[2] ?? ''] || Number(match[1]);
}

// `dd` of nothing with `nocache` asks the system to drop a file's pages; the file stays as it is.
function dropPages(file) {
  output('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);
}

// What the command printed, or why there is nothing: `killed`, or an error of its own.
function inCgroup(size, program, words) {
  const child = spawnSync(join(kBench, 'in_cgroup.sh'), [`${size}`, program, ...words], { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (child.status === kNotPermitted) throw new Error('memory cgroups may not be made here');
  if (child.status === 0) return { out: child.stdout };
  return { killed: child.status === 137, failure: child.stderr.split('\n').find((line) => line && !line.startsWith('cgroup ')) ?? '' };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? null : sorted[sorted.length >> 1];
}

class Side {
  runs = [];
  killed = 0;
  failure = '';

  take(result, times) {
    if (result.out !== undefined) this.runs.push(...times(result.out));
    else if (result.killed) ++this.killed;
    else this.failure = result.failure;
  }
  row(prefix) {
    return {
      [`${prefix}_median_ms`]: median(this.runs),
      [`${prefix}_least_ms`]: this.runs.length ? Math.min(...this.runs) : null,
      [`${prefix}_most_ms`]: this.runs.length ? Math.max(...this.runs) : null,
      [`${prefix}_killed`]: this.killed,
      [`${prefix}_failure`]: this.failure,
    };
  }
}

function mappedCopy(model, work) {
  const mapped = join(work, `${model.name}.mapped.onnx`);
  if (!existsSync(mapped) || statSync(mapped).mtimeMs < statSync(model.onnx).mtimeMs) output('node', [join(kBench, 'externalise.mjs'), model.onnx, mapped]);
  return mapped;
}

function compare(model, size, options) {
  const mapped = mappedCopy(model, options.work);
  const input = json(`${options.build}/sluice`, ['inspect', model.sluice, '--json']).inputs[0];
  const ours = new Side(), theirs = new Side();
  for (let block = 0; block < options.blocks; ++block) {
    dropPages(model.sluice);
    const words = ['run', model.sluice, '--budget', `${size - kBeside}`, '--warmup', '1', '--repeat', `${options.runs}`, '--json'];
    ours.take(inCgroup(size, `${options.build}/sluice`, words), (out) => JSON.parse(out).latency_ms);
    for (const file of [mapped, `${mapped}.data`]) dropPages(file);
    const shape = input.shape.join('x');
    const peer = [join(kBench, 'mapped.mjs'), options.modules, mapped, `${options.runs + 1}`, shape, input.dtype, input.name];
    theirs.take(inCgroup(size, process.execPath, peer), (out) => out.trim().split('\n').slice(1).map(Number));
  }
  return { model: model.name, cgroup_bytes: size, budget_bytes: size - kBeside, ...ours.row('sluice'), ...theirs.row('onnxruntime') };
}

function cell(row, side) {
  const figures = row[`${side}_median_ms`] === null ? [] : [`${row[`${side}_median_ms`].toFixed(1)} (${row[`${side}_least_ms`].toFixed(1)} to ${row[`${side}_most_ms`].toFixed(1)})`];
  if (row[`${side}_killed`] > 0) figures.push(`killed ${row[`${side}_killed`]} times`);
  if (row[`${side}_failure`]) figures.push(row[`${side}_failure`].slice(0, 60));
  return figures.join(', ');
}

const options = parseArguments(process.argv.slice(2));
const rows = [];
for (const size of options.sizes) for (const model of options.models) rows.push(compare(model, size, options));
if (options.json) {
  console.log(JSON.stringify(rows, null, 2));
} else {
  console.log(`One thread, median ms (least to most) of ${options.blocks} blocks of ${options.runs} runs in turn\n`);
  const line = (words) => words.map((word, i) => word.padEnd([18, 10, 36, 0][i])).join('');
  console.log(line(['model', 'cgroup', 'sluice', 'onnxruntime, mapped weights']));
  for (const row of rows) console.log(line([row.model, `${row.cgroup_bytes / (1 << 20)} MiB`, cell(row, 'sluice'), cell(row, 'onnxruntime')]));
}
