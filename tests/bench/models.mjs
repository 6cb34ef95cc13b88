// Models on Sluice beside ONNX Runtime, on the same machine at the same time: blocks of runs in turn, so that a busy minute slows both.
//
//     node models.mjs --modules DIR/node_modules --build DIR [--threads N] [--blocks N] [--runs N] [--budget B] [--json]
//                     NAME=MODEL.onnx,MODEL.sluice ...
//
// With one thread the CPU time of the process counts, which is stable on shared cores; with more the elapsed time. Of each side the least run
// counts, because noise only adds. The bound is what the model's multiplications would take at the FMA peak, measured between the blocks.
import { fill } from '../golden/tensors.mjs';
import { interleave, json, least, output } from './interleave.mjs';
import { boundMs } from './multiplications.mjs';
import { OnnxRuntime } from './onnxruntime.mjs';

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

async function compare(peer, model, options) {
  const sluice = `${options.build}/sluice`;
  const description = json(sluice, ['inspect', model.sluice, '--json']);
  const inputs = description.inputs.map((input) => ({ ...input, array: fill(input) }));
  let peak = 0;
  await peer.open(model.onnx, inputs, options.threads);
  // Between the peer's runs and ours: its threads spin for a while after a run, and would hold the core that ours need.
  const between = () => (peak = Math.max(peak, Number(output(`${options.build}/sluice-bench-peak`, [`${options.threads}`]))));
  const { ours, theirs, report } = await interleave(peer, { ...options, model: model.sluice, between });
  await peer.close();
  const key = options.threads === 1 ? 'cpu_ms' : 'latency_ms';
  const bound = boundMs(description, peak);
  return {
    model: model.name,
    threads: options.threads,
    budget: options.budget,
    counted: key,
    sluice_ms: least(ours, key),
    onnxruntime_ms: least(theirs, key),
    ratio: least(ours, key) / least(theirs, key),
    bound_ms: bound,
    bound_ratio: bound && bound / least(theirs, key),
    peak_gflops: peak,
    sluice_cpu_ms: least(ours, 'cpu_ms'),
    onnxruntime_cpu_ms: least(theirs, 'cpu_ms'),
    sluice_latency_ms: least(ours, 'latency_ms'),
    onnxruntime_latency_ms: least(theirs, 'latency_ms'),
    sluice_peak_rss_bytes: report.peak_rss_bytes,
    bytes_read: report.bytes_read,
  };
}

function printTable(rows, options) {
  const head = ['model', 'sluice ms', 'onnxruntime', 'ratio', 'bound ms', 'its ratio', 'of the bound', 'peak MiB'];
  const cells = rows.map((row) => [
    row.model,
    row.sluice_ms.toFixed(2),
    row.onnxruntime_ms.toFixed(2),
    row.ratio.toFixed(2),
    row.bound_ms?.toFixed(2) ?? '-',
    row.bound_ratio?.toFixed(2) ?? '-',
    row.bound_ms === undefined ? '-' : `${((100 * row.bound_ms) / row.sluice_ms).toFixed(0)} %`,
    (row.sluice_peak_rss_bytes / 1048576).toFixed(1),
  ]);
  const line = (words) => words.map((word, i) => (i === 0 ? word.padEnd(16) : word.padStart(13))).join('');
  const counted = options.threads === 1 ? 'CPU time' : 'elapsed time';
  console.log(`${options.threads} thread(s), budget ${options.budget}, ${counted}, least of ${options.blocks * options.runs} runs in ${options.blocks} blocks in turn\n`);
  console.log([line(head), ...cells.map(line)].join('\n'));
}

const options = parseArguments(process.argv.slice(2));
const peer = new OnnxRuntime(options.modules);
const rows = [];
for (const model of options.models) rows.push(await compare(peer, model, options));
if (options.json) console.log(JSON.stringify(rows, null, 2));
else printTable(rows, options);
