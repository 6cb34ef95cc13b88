// `sluice quantize` beside methods that quantisers publish (public_quantisers.py): signal to noise of the outputs, all files run by ONNX Runtime.
//
//     node public_quantisers.mjs --modules DIR/node_modules --build DIR --work DIR --scripts DIR MODEL.onnx=DATA ...
//
// DATA: a folder of .npy or .npz files as `sluice quantize --data` takes it; of a model with one input. Both halves of it are judged apart: every
// second item is for calibration, the others were not seen.
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { readNpy } from '../golden/tensors.mjs';
import { output } from './interleave.mjs';
import { OnnxRuntime } from './onnxruntime.mjs';

const options = { pairs: [] };
for (let i = 2; i < process.argv.length; ++i) {
  if (process.argv[i].startsWith('--')) options[process.argv[i].slice(2)] = process.argv[++i];
  else options.pairs.push(process.argv[i].split('='));
}
const peer = new OnnxRuntime(options.modules);
const python = (...words) => output('/usr/bin/python3', [join(options.scripts, 'public_quantisers.py'), ...words]);
const open = (path) => peer.ort.InferenceSession.create(path, { intraOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 4 });

function item(file, session) {
  const bytes = readFileSync(file);
  const shape = /'shape': \(([^)]*)\)/.exec(bytes.subarray(10, 10 + bytes.readUInt16LE(8)).toString())[1].split(',').filter((d) => d.trim()).map(Number);
  const { name, type } = session.inputMetadata[0];
  return { [name]: new peer.ort.Tensor(type, readNpy(file), shape) };
}

// Of each output over all items, in dB; the least of them.
async function noise(path, wanted, files) {
  const session = await open(path), sums = {};
  for (let i = 0; i < files.length; ++i) {
    const results = await session.run(item(files[i], session));
    for (const [name, values] of Object.entries(wanted[i])) {
      const sum = (sums[name] ??= { signal: 0, noise: 0 });
      for (let e = 0; e < values.length; ++e) {
        sum.signal += values[e] ** 2;
        sum.noise += (values[e] - results[name].data[e]) ** 2;
      }
    }
  }
  await session.release();
  return Math.min(...Object.values(sums).map(({ signal, noise }) => 10 * Math.log10(signal / noise)));
}

async function answers(path, files) {
  const session = await open(path), all = [];
  for (const file of files) {
    const results = await session.run(item(file, session));
    all.push(Object.fromEntries(Object.entries(results).filter(([, t]) => t.type === 'float32').map(([name, t]) => [name, t.data])));
  }
  await session.release();
  return all;
}

async function look(folder, files) {
  const { tensors, given } = JSON.parse(readFileSync(join(folder, 'tensors.json'), 'utf8'));
  const session = await open(join(folder, 'exposed.onnx'));
  for (let i = 0; i < files.length; ++i) {
    const feeds = item(files[i], session), results = await session.run(feeds);
    tensors.forEach((name, t) => {
      const { data } = given.includes(name) ? feeds[name] : results[name];
      writeFileSync(join(folder, `${t}_${i}.f32`), Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    });
  }
  await session.release();
}

for (const [model, data] of options.pairs) {
  mkdirSync(options.work, { recursive: true });
  const folder = mkdtempSync(join(options.work, 'public-')), seen = join(folder, 'seen');
  mkdirSync(seen);
  const all = readdirSync(data).filter((f) => f.endsWith('.npy')).sort().map((f) => join(data, f));
  const used = all.filter((_, i) => i % 2 === 0), others = all.filter((_, i) => i % 2 === 1);
  used.forEach((file) => copyFileSync(file, join(seen, basename(file))));
  const base = join(folder, 'minmax.onnx'), ours = join(folder, 'sluice.onnx');
  const convert = (...words) => output(`${options.build}/sluice`, ['quantize', model, '--data', seen, ...words]);
  convert('-o', base, '--method', 'minmax', '--no-bias-correction', '--no-equalisation');
  convert('-o', ours);
  python('expose', model, base, folder);
  await look(folder, used);
  const methods = ['minmax', ...python('quantise', base, folder).trim().split(/\s+/), 'sluice'];
  const wanted = [await answers(model, used), await answers(model, others)];
  const rows = [];
  for (const method of methods) {
    const path = join(folder, `${method}.onnx`);
    rows.push([method, await noise(path, wanted[0], used), await noise(path, wanted[1], others)]);
  }
  console.log(`${basename(model)}, ${used.length} items: ${rows.map(([m, a, b]) => `${m} ${a.toFixed(2)} (${b.toFixed(2)})`).join(', ')}`);
  rmSync(folder, { recursive: true, force: true });
}
