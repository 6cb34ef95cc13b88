// Sluice beside ONNX Runtime on the same machine at the same time: blocks of runs in turn, so that a busy minute slows both.
//
//     node onnxruntime_peer.mjs --modules DIR/node_modules --sluice BUILD/sluice [--threads N] [--blocks N] [--runs N] [--budget B]
//                               [--json] NAME=MODEL.onnx,MODEL.sluice ...
//
// CPU time of all threads of the process counts, not elapsed time: this is what is stable on shared cores. Of each side the least run
// counts, because noise only adds.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';

function parseArguments(words) {
  const options = { threads: 1, blocks: 4, runs: 5, budget: 'unlimited', json: false, models: [] };
  for (let i = 0; i < words.length; ++i) {
    const word = words[i];
    if (word === '--json') options.json = true;
    else if (word.startsWith('--')) options[word.slice(2)] = words[++i];
    else {
      const [name, files] = [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)];
      const [onnx, sluice] = files.split(',');
      options.models.push({ name, onnx, sluice });
    }
  }
  for (const key of ['threads', 'blocks', 'runs']) options[key] = Number(options[key]);
  return options;
}

function sluiceJson(program, words) {
  const child = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (child.status !== 0) throw new Error(`${program} ${words.join(' ')}: ${child.stderr}`);
  return JSON.parse(child.stdout);
}

// A fixed sequence in [-1, 1): the values hardly matter for time, but zeros and denormals would.
function fill(array) {
  let state = 12345;
  for (let i = 0; i < array.length; ++i) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    array[i] = state / 0x40000000 - 1;
  }
  return array;
}

function feeds(ort, inputs) {
  const result = {};
  for (const input of inputs) {
    const count = input.shape.reduce((a, b) => a * b, 1);
    if (input.dtype === 'f32') result[input.name] = new ort.Tensor('float32', fill(new Float32Array(count)), input.shape);
    else if (input.dtype === 'i64') result[input.name] = new ort.Tensor('int64', new BigInt64Array(count).fill(1n), input.shape);
    else throw new Error(`input ${input.name} has type ${input.dtype}`);
  }
  return result;
}

async function peerBlock(session, inputs, runs) {
  const block = { cpu_ms: [], latency_ms: [] };
  for (let i = 0; i < runs; ++i) {
    const cpu = process.cpuUsage();
    const start = performance.now();
    await session.run(inputs);
    block.latency_ms.push(performance.now() - start);
    const used = process.cpuUsage(cpu);
    block.cpu_ms.push((used.user + used.system) / 1000);
  }
  return block;
}

async function compare(ort, model, options) {
  const session = await ort.InferenceSession.create(model.onnx, {
    intraOpNumThreads: options.threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
  });
  const inputs = feeds(ort, sluiceJson(options.sluice, ['inspect', model.sluice, '--json']).inputs);
  const words = ['run', model.sluice, '--json', '--budget', options.budget, '--threads', `${options.threads}`, '--warmup', '2', '--repeat', `${options.runs}`];
  const ours = { cpu_ms: [], latency_ms: [] };
  const theirs = { cpu_ms: [], latency_ms: [] };
  let report;
  await peerBlock(session, inputs, 2);  // warm
  for (let block = 0; block < options.blocks; ++block) {
    report = sluiceJson(options.sluice, words);
    const peer = await peerBlock(session, inputs, options.runs);
    for (const key of ['cpu_ms', 'latency_ms']) {
      ours[key].push(...report[key]);
      theirs[key].push(...peer[key]);
    }
  }
  await session.release();
  const least = (side, key) => Math.min(...side[key]);
  return {
    model: model.name,
    sluice_cpu_ms: least(ours, 'cpu_ms'),
    onnxruntime_cpu_ms: least(theirs, 'cpu_ms'),
    ratio: least(ours, 'cpu_ms') / least(theirs, 'cpu_ms'),
    sluice_latency_ms: least(ours, 'latency_ms'),
    onnxruntime_latency_ms: least(theirs, 'latency_ms'),
    sluice_peak_rss_bytes: report.peak_rss_bytes,
    bytes_read: report.bytes_read,
  };
}

function printTable(rows, options) {
  const head = ['model', 'sluice cpu ms', 'onnxruntime', 'ratio', 'sluice ms', 'onnxruntime', 'peak MiB'];
  const cells = rows.map((row) => [
    row.model,
    row.sluice_cpu_ms.toFixed(2),
    row.onnxruntime_cpu_ms.toFixed(2),
    row.ratio.toFixed(2),
    row.sluice_latency_ms.toFixed(2),
    row.onnxruntime_latency_ms.toFixed(2),
    (row.sluice_peak_rss_bytes / 1048576).toFixed(1),
  ]);
  const line = (words) => words.map((word, i) => (i === 0 ? word.padEnd(20) : word.padStart(14))).join('');
  console.log(`${options.threads} thread(s), budget ${options.budget}, least of ${options.blocks * options.runs} runs in ${options.blocks} blocks in turn\n`);
  console.log([line(head), ...cells.map(line)].join('\n'));
}

const options = parseArguments(process.argv.slice(2));
const ort = createRequire(`${resolve(options.modules)}/`)('onnxruntime-node');
ort.env.logLevel = 'error';
const rows = [];
for (const model of options.models) rows.push(await compare(ort, model, options));
if (options.json) console.log(JSON.stringify(rows, null, 2));
else printTable(rows, options);
