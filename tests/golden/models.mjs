// What scripts/models does: one line a model, exit status 1 if any is wrong.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';

const [build, modules, models, ...chosen] = process.argv.slice(2);
const ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
ort.env.logLevel = 'error';
const sluice = join(build, 'sluice');
const kTolerance = 1e-3;
// The peer's sigmoid and tanh are right to 1e-7 of 1, not of their result: an output whose largest value is smaller than this is compared with it.
const kLeast = 1e-4;

// Free dimensions, bound.
const dims = {
  'super_resolution.onnx': ['batch_size=1'],
  'micro_kws_m_qdq.onnx': ['unk__68=1'],
  'silero_vad_16k_op15.onnx': ['batch=1', 'sequence=576'],
  'en_number_mobile_v2.0_rec.onnx': ['p2o.DynamicDimension.0=1', 'p2o.DynamicDimension.1=320'],
  'tiny-random-gpt2-fp32.onnx': ['batch_size=1', 'seq_len=1', 'past_seq_len=7', 'total_seq_len=8'],
};
// Whole numbers that are not 1.
const integers = { input_ids: (i) => 17 + i, position_ids: (i) => 7 + i, sr: () => 16000 };

const types = {
  f32: [Float32Array, '<f4', 'float32'],
  i32: [Int32Array, '<i4', 'int32'],
  i64: [BigInt64Array, '<i8', 'int64'],
  u8: [Uint8Array, '|u1', 'uint8'],
  i8: [Int8Array, '|i1', 'int8'],
  f16: [Float32Array, '<f4', 'float32'],
};

function writeNpy(path, descr, shape, array) {
  let head = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.map((d) => `${d},`).join(' ')}), }`;
  head = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + '\n';
  const prefix = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]);
  writeFileSync(path, Buffer.concat([prefix, Buffer.from(head), Buffer.from(array.buffer, array.byteOffset, array.byteLength)]));
}

function readNpy(path) {
  const bytes = readFileSync(path);
  const start = 10 + bytes.readUInt16LE(8);
  const descr = /'descr': '([^']+)'/.exec(bytes.subarray(10, start).toString())[1];
  const [Type] = Object.values(types).find(([, d]) => d.slice(1) === descr.slice(1));
  return new Type(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length));
}

function fill({ name, dtype, shape }) {
  const array = new types[dtype][0](shape.reduce((a, b) => a * b, 1));
  const value = integers[name] ?? (() => 1);
  let state = 12345;
  for (let i = 0; i < array.length; ++i) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    if (dtype === 'f32' || dtype === 'f16') array[i] = state / 0x40000000 - 1;
    else if (dtype === 'i64') array[i] = BigInt(value(i));
    else array[i] = integers[name] || dtype === 'i32' ? value(i) : state >> 16;
  }
  return array;
}

const half = (value) => {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  const exponent = ((bits >>> 23) & 255) - 112;
  return exponent <= 0 ? 0 : ((bits >>> 16) & 0x8000) | (exponent << 10) | ((bits >>> 13) & 0x3ff);
};
const unhalf = (h) => (h & 0x8000 ? -1 : 1) * ((h >> 10) & 31 ? 2 ** (((h >> 10) & 31) - 15) * (1 + (h & 1023) / 1024) : (h & 1023) * 2 ** -24);

async function peer(path, inputs) {
  // Without its rewrites, which round quantised values in places of their own.
  const session = await ort.InferenceSession.create(path, { graphOptimizationLevel: 'disabled' });
  const feeds = {};
  for (const { name, dtype, shape, array } of inputs) {
    const declared = session.inputMetadata?.find((m) => m.name === name)?.type ?? types[dtype][2];
    // f16 is f32 to us: give both the value that f16 has.
    if (declared === 'float16') {
      const bits = Uint16Array.from(array, half);
      bits.forEach((h, i) => (array[i] = unhalf(h)));
      feeds[name] = new ort.Tensor('float16', bits, shape);
    } else {
      feeds[name] = new ort.Tensor(declared, array, shape);
    }
  }
  const results = await session.run(feeds);
  await session.release();
  return results;
}

const numbers = (tensor) =>
  tensor.type === 'float16' && tensor.data instanceof Uint16Array ? Float64Array.from(tensor.data, unhalf) : Float64Array.from(tensor.data, Number);

function difference(found, wanted) {
  let worst = 0, largest = 0;
  if (found.length !== wanted.length) return Infinity;
  for (let i = 0; i < found.length; ++i) {
    worst = Math.max(worst, Math.abs(Number(found[i]) - wanted[i]));
    largest = Math.max(largest, Math.abs(wanted[i]));
  }
  if (Number.isNaN(worst)) return Infinity;
  return worst / Math.max(largest, kLeast);
}

async function check(path, folder) {
  const model = join(folder, 'model.sluice');
  const call = (...words) => execFileSync(sluice, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  call('convert', path, '-o', model, ...(dims[basename(path)] ?? []).flatMap((d) => ['--dim', d]));
  const inputs = JSON.parse(call('inspect', model, '--json')).inputs.filter(({ shape }) => !shape.includes(0));
  for (const input of inputs) input.array = fill(input);
  const wanted = await peer(path, inputs);
  const words = inputs.flatMap(({ name, dtype, shape, array }, i) => {
    writeNpy(join(folder, `${i}.npy`), types[dtype][1], shape, array);
    return ['--input', `${name}=${join(folder, `${i}.npy`)}`];
  });
  const least = JSON.parse(call('plan', model, '--json')).minimum_budget_bytes;
  let first, worst = 0, same = true, peak;
  for (const budget of ['unlimited', String(least)]) {
    const out = join(folder, budget);
    peak = JSON.parse(call('run', model, '--budget', budget, '--json', ...words, '--output', out)).peak_rss_bytes;
    const files = readdirSync(out).sort();
    if (first) same = files.every((f) => readFileSync(join(out, f)).equals(readFileSync(join(first, f))));
    first ??= out;
    for (const [name, tensor] of Object.entries(wanted)) {
      const file = files.find((f) => f.replace(/\.npy$/, '') === name.replace(/[^A-Za-z0-9._-]/g, '_')) ?? (files.length === 1 ? files[0] : undefined);
      worst = Math.max(worst, file === undefined ? Infinity : difference(readNpy(join(out, file)), numbers(tensor)));
    }
  }
  return { least, peak, worst, same };
}

function all(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? all(join(folder, e.name)) : e.name.endsWith('.onnx') ? [join(folder, e.name)] : []);
}

let wrong = 0;
console.log('| model | smallest process budget | peak there | largest difference, of the largest value | same bits |\n|---|---|---|---|---|');
for (const path of chosen.length > 0 ? chosen : all(models).sort()) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-models-'));
  const name = chosen.length > 0 ? basename(path) : relative(models, path);
  try {
    const { least, peak, worst, same } = await check(path, folder);
    const good = worst <= kTolerance && same && peak <= least;
    wrong += good ? 0 : 1;
    const mib = (bytes) => `${(bytes / 1048576).toFixed(2)} MiB`;
    console.log(`| ${name} | ${mib(least)} | ${mib(peak)} | ${worst.toExponential(1)} | ${same ? 'yes' : 'NO'} |${good ? '' : ' WRONG'}`);
  } catch (error) {
    ++wrong;
    console.log(`| ${name} | | | ${String(error.stderr || error.message).trim().split('\n')[0]} | |  WRONG`);
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = wrong > 0 ? 1 : 0;
