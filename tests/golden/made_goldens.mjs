// How tests/golden/made/*.npy came to be: ONNX Runtime's outputs for the networks of made_networks.h and the input `random:7` of `sluice run`.
//
//     node tests/golden/made_goldens.mjs build/peer/node_modules build/ci/tests/make_network tests/golden/made [NAME...]
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { feedsOf, writeNpy } from './tensors.mjs';

const [modules, maker, out, ...chosen] = process.argv.slice(2);
const ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
ort.env.logLevel = 'error';
const picture = { name: 'image', dtype: 'f32', shape: [1, 3, 224, 224] };
const inputs = { mobilenet_v2: picture, resnet152: picture, vit_b_16: picture, gpt2: { name: 'tokens', dtype: 'i64', shape: [1, 64] } };

// SplitMix64, as src/cli/inputs.cc has it.
function* random(seed) {
  const mask = (1n << 64n) - 1n;
  for (let state = seed; ; ) {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    yield z ^ (z >> 31n);
  }
}

function fillFrom(numbers, { dtype, shape }) {
  const array = new (dtype === 'f32' ? Float32Array : BigInt64Array)(shape.reduce((a, b) => a * b, 1));
  for (let i = 0; i < array.length; ++i) {
    const value = numbers.next().value;
    array[i] = dtype === 'f32' ? (Number(value >> 40n) - 2 ** 23) / 2 ** 23 : value % 10n;
  }
  return array;
}

mkdirSync(out, { recursive: true });
for (const name of chosen.length > 0 ? chosen : Object.keys(inputs)) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-made-'));
  try {
    const path = join(folder, 'made.onnx');
    execFileSync(maker, [name, path]);
    const session = await ort.InferenceSession.create(path, { graphOptimizationLevel: 'disabled' });
    const input = { ...inputs[name], array: fillFrom(random(7n), inputs[name]) };
    const { scores } = await session.run(feedsOf(ort, session, [input]));
    await session.release();
    writeNpy(join(out, `${name}.npy`), '<f4', scores.dims, scores.data);
    console.log(`${name}: ${scores.dims}, from ${Math.min(...scores.data)} to ${Math.max(...scores.data)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
