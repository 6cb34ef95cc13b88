// Tensors between Sluice and ONNX Runtime: seeded values, .npy files, f16, and how far two answers lie apart.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

// An output whose largest value is smaller is compared with this: the peer's sigmoid and tanh are right to 1e-7 of 1, not of their result.
const kLeast = 1e-4;

export const types = {
  f32: [Float32Array, '<f4', 'float32'],
  i32: [Int32Array, '<i4', 'int32'],
  i64: [BigInt64Array, '<i8', 'int64'],
  u8: [Uint8Array, '|u1', 'uint8'],
  i8: [Int8Array, '|i1', 'int8'],
  u16: [Uint16Array, '<u2', 'uint16'],
  i16: [Int16Array, '<i2', 'int16'],
  u32: [Uint32Array, '<u4', 'uint32'],
  u64: [BigUint64Array, '<u8', 'uint64'],
  f16: [Float32Array, '<f4', 'float32'],
  f64: [Float64Array, '<f8', 'float64'],
  bool: [Uint8Array, '|b1', 'bool'],
};

export function writeNpy(path, descr, shape, array) {
  let head = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.map((d) => `${d},`).join(' ')}), }`;
  head = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + '\n';
  const prefix = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]);
  writeFileSync(path, Buffer.concat([prefix, Buffer.from(head), Buffer.from(array.buffer, array.byteOffset, array.byteLength)]));
}

// Reals of 16 bits become the floats that they are.
export function readNpy(path) {
  const bytes = readFileSync(path);
  const start = 10 + bytes.readUInt16LE(8);
  const descr = /'descr': '([^']+)'/.exec(bytes.subarray(10, start).toString())[1].slice(1);
  const values = bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length);
  if (descr === 'f2') return Float32Array.from(new Uint16Array(values), unhalf);
  if (descr === 'V2') return new Float32Array(Uint32Array.from(new Uint16Array(values), (bits) => bits << 16).buffer);
  const known = Object.values(types).find(([, d]) => d.slice(1) === descr);
  if (known === undefined) throw new Error(`${path} holds elements of type ${descr}, which is not one of ${Object.keys(types).join(', ')}`);
  return new known[0](values);
}

// A fixed sequence in [-1, 1): zeros and denormals would take other times than values do. Whole numbers are 1, or `value(i)`.
export function fill({ dtype, shape }, value) {
  const array = new types[dtype][0](shape.reduce((a, b) => a * b, 1));
  let state = 12345;
  for (let i = 0; i < array.length; ++i) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    if (dtype === 'f32' || dtype === 'f16' || dtype === 'f64') array[i] = state / 0x40000000 - 1;
    else if (dtype === 'i64' || dtype === 'u64') array[i] = BigInt(value ? value(i) : 1);
    else if (value || dtype === 'i32' || dtype === 'u32' || dtype === 'bool') array[i] = value ? value(i) : 1;
    else array[i] = state >> 16;
  }
  return array;
}

const half = (value) => {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  const exponent = ((bits >>> 23) & 255) - 112;
  return exponent <= 0 ? 0 : ((bits >>> 16) & 0x8000) | (exponent << 10) | ((bits >>> 13) & 0x3ff);
};
const unhalf = (h) => {
  const exponent = (h >> 10) & 31, rest = h & 1023, sign = h & 0x8000 ? -1 : 1;
  if (exponent === 31) return rest ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : rest * 2 ** -24);
};

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

// What a session of the peer wants, from inputs with `array`. f16 is f32 to us: both sides get the value that f16 has.
export function feedsOf(ort, session, inputs) {
  const feeds = {};
  for (const { name, dtype, shape, array } of inputs) {
    const declared = session.inputMetadata?.find((m) => m.name === name)?.type ?? types[dtype][2];
    if (declared === 'float16') {
      const bits = Uint16Array.from(array, half);
      bits.forEach((h, i) => (array[i] = unhalf(h)));
      feeds[name] = new ort.Tensor('float16', bits, shape);
    } else {
      feeds[name] = new ort.Tensor(declared, array, shape);
    }
  }
  return feeds;
}

// Writes each input as I.npy into `folder`; the words that hand them to `sluice run`.
export function inputWords(inputs, folder) {
  return inputs.flatMap(({ name, dtype, shape, array }, i) => {
    writeNpy(join(folder, `${i}.npy`), types[dtype][1], shape, array);
    return ['--input', `${name}=${join(folder, `${i}.npy`)}`];
  });
}

// The largest difference of any output that the peer gave from the files in `folder`, as a share of that output's largest value.
export function differenceFrom(wanted, folder) {
  const files = readdirSync(folder);
  let worst = 0;
  for (const [name, tensor] of Object.entries(wanted)) {
    const file = files.find((f) => f.replace(/\.npy$/, '') === name.replace(/[^A-Za-z0-9._-]/g, '_')) ?? (files.length === 1 ? files[0] : undefined);
    worst = Math.max(worst, file === undefined ? Infinity : difference(readNpy(join(folder, file)), numbers(tensor)));
  }
  return worst;
}

export function sameFiles(a, b) {
  return readdirSync(a).every((file) => readFileSync(join(a, file)).equals(readFileSync(join(b, file))));
}

// Every ONNX file below a folder.
export function onnxFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? onnxFiles(join(folder, e.name)) : e.name.endsWith('.onnx') ? [join(folder, e.name)] : []);
}
