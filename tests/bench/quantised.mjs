// Models of integers on Sluice beside ONNX Runtime: each layer given the same bytes, and whole models given the same pictures.
//
//     node quantised.mjs --modules DIR/node_modules --build DIR --work DIR --scripts DIR [--pictures DIR] [--count N] [--json] MODEL.onnx ...
//
// A layer is what lies between tensors of bytes (quantised_layers.py cuts the model there). The peer computes the bytes that go in, both compute
// what comes out: equal, a step apart, or more. Of pictures the place of the largest value of the first output is compared, on --count of them.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { fill, readNpy, types, writeNpy } from '../golden/tensors.mjs';
import { json, output } from './interleave.mjs';
import { OnnxRuntime } from './onnxruntime.mjs';

function parseArguments(words) {
  const options = { count: 500, json: false, paths: [] };
  for (let i = 0; i < words.length; ++i) {
    if (words[i] === '--json') options.json = true;
    else if (words[i].startsWith('--')) options[words[i].slice(2)] = words[++i];
    else options.paths.push(words[i]);
  }
  options.count = Number(options.count);
  return options;
}

const python = (options, ...words) => output('/usr/bin/python3', [join(options.scripts, 'quantised_layers.py'), ...words]);
const fileOf = (name) => `${name.replace(/[^A-Za-z0-9._-]/g, '_')}.npy`;

async function answers(peer, onnx, feeds) {
  const session = await peer.ort.InferenceSession.create(onnx, { intraOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 3 });
  const results = await session.run(feeds(session));
  await session.release();
  return results;
}

// Inputs of the session's own names and types; values are seeded, whatever the model means by them.
function seeded(peer, session) {
  const kinds = { float32: 'f32', uint8: 'u8', int8: 'i8', int64: 'i64', int32: 'i32', bool: 'bool' };
  return Object.fromEntries(
    session.inputMetadata.map(({ name, type, shape }) => {
      const dims = shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
      return [name, new peer.ort.Tensor(type, fill({ dtype: kinds[type], shape: dims }), dims)];
    }),
  );
}

function compareBytes(found, wanted) {
  let off = 0, far = 0;
  for (let i = 0; i < wanted.length; ++i) {
    const difference = Math.abs(found[i] - wanted[i]);
    off += difference === 1 ? 1 : 0;
    far += difference > 1 ? 1 : 0;
  }
  return { elements: wanted.length, off, far };
}

async function compareLayers(peer, onnx, folder, options) {
  python(options, 'layers', onnx, folder);
  const { cuts, given } = JSON.parse(readFileSync(join(folder, 'layers.json'), 'utf8'));
  let whole;
  const bytes = await answers(peer, join(folder, 'exposed.onnx'), (session) => (whole = seeded(peer, session)));
  writeFileSync(join(folder, 'shapes.json'), JSON.stringify(Object.fromEntries(cuts.map((name) => [name, bytes[name].dims]))));
  python(options, 'finish', folder);
  const feeds = { ...whole, ...Object.fromEntries(given.map((name) => [`${name}.given`, bytes[name]])) };
  const wanted = await answers(peer, join(folder, 'layers.onnx'), (session) =>
    Object.fromEntries(session.inputNames.map((name) => [name, feeds[name]])));
  const sluice = `${options.build}/sluice`, model = join(folder, 'layers.sluice'), out = join(folder, 'out');
  output(sluice, ['convert', join(folder, 'layers.onnx'), '-o', model, '--quiet']);
  const words = json(sluice, ['inspect', model, '--json']).inputs.flatMap(({ name }, i) => {
    const tensor = feeds[name];
    const [, descr] = Object.values(types).find(([, , type]) => type === tensor.type);
    writeNpy(join(folder, `${i}.npy`), descr, tensor.dims, tensor.data);
    return ['--input', `${name}=${join(folder, `${i}.npy`)}`];
  });
  output(sluice, ['run', model, '--budget', 'unlimited', ...words, '--output', out]);
  return cuts.map((name) => ({ layer: name, ...compareBytes(readNpy(join(out, fileOf(name))), wanted[name].data) }));
}

const largest = (values) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);

async function comparePictures(peer, onnx, folder, options) {
  python(options, 'pictures', onnx, options.pictures, folder, `${options.count}`);
  const sluice = `${options.build}/sluice`, model = join(folder, 'whole.sluice'), out = join(folder, 'classes');
  output(sluice, ['convert', onnx, '-o', model, '--quiet']);
  const session = await peer.ort.InferenceSession.create(onnx, { intraOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 3 });
  const { name, shape } = session.inputMetadata[0];
  const dims = shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
  let equal = 0;
  for (let i = 0; i < options.count; ++i) {
    const file = join(folder, `${i}.npy`);
    const results = await session.run({ [name]: new peer.ort.Tensor('float32', readNpy(file), dims) });
    rmSync(out, { recursive: true, force: true });
    output(sluice, ['run', model, '--budget', 'unlimited', '--input', `${name}=${file}`, '--output', out]);
    const first = session.outputNames[0];
    equal += largest(readNpy(join(out, fileOf(first)))) === largest(results[first].data) ? 1 : 0;
  }
  await session.release();
  return { pictures: options.count, same_class: equal };
}

const options = parseArguments(process.argv.slice(2));
const peer = new OnnxRuntime(options.modules);
const rows = [];
mkdirSync(options.work, { recursive: true });
for (const onnx of options.paths) {
  const folder = mkdtempSync(join(options.work, 'quantised-'));
  const row = { model: basename(onnx) };
  try {
    const layers = await compareLayers(peer, onnx, folder, options);
    const sum = (key) => layers.reduce((total, layer) => total + layer[key], 0);
    Object.assign(row, { layers: layers.length, elements: sum('elements'), off_by_a_step: sum('off'), off_by_more: sum('far') });
    row.equal = 1 - (row.off_by_a_step + row.off_by_more) / row.elements;
    row.worst = layers.filter((l) => l.off + l.far > 0.001 * l.elements || l.far > 0).sort((a, b) => b.far - a.far || b.off - a.off).slice(0, 5);
    if (options.pictures) Object.assign(row, await comparePictures(peer, onnx, folder, options));
  } catch (error) {
    row.failed = String(error.message).split('\n')[0].slice(0, 300);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  rows.push(row);
  if (options.json) continue;
  const classes = row.pictures === undefined ? '' : `  class ${row.same_class} of ${row.pictures}`;
  console.log(row.failed ? `${row.model.padEnd(36)} FAILED: ${row.failed}`
    : `${row.model.padEnd(36)} ${`${row.layers}`.padStart(4)} layers  ${(100 * row.equal).toFixed(4)} % equal, ${row.off_by_a_step} off by a step, ${row.off_by_more} by more${classes}`);
  for (const layer of row.worst ?? []) console.log(`    ${layer.layer}: ${layer.off} off by a step, ${layer.far} by more, of ${layer.elements}`);
}
if (options.json) console.log(JSON.stringify({ models: rows }, null, 2));
process.exitCode = rows.some((row) => row.failed || row.off_by_more > 0 || (row.same_class ?? 0) < (row.pictures ?? 0)) ? 1 : 0;
