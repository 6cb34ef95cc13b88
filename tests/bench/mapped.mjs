// ONNX Runtime with mapped weights, for runs in a memory cgroup: no copies of weights in another layout, no graph rewrites that make new
// ones. `node mapped.mjs MODULES MODEL.onnx RUNS SHAPE DTYPE NAME` prints the milliseconds of each run.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';

const [modules, model, runs, shapeText, dtype, name] = process.argv.slice(2);
const ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
const shape = shapeText.split('x').map(Number);
const count = shape.reduce((a, b) => a * b, 1);
const values = dtype === 'i64' ? new BigInt64Array(count).fill(1n) : Float32Array.from({ length: count }, (_, i) => (i % 257) / 257 - 0.5);
const session = await ort.InferenceSession.create(model, {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'basic',
  enableCpuMemArena: false,
  extra: { session: { disable_prepacking: '1' } },
});
const feeds = { [name]: new ort.Tensor(dtype === 'i64' ? 'int64' : 'float32', values, shape) };
for (let i = 0; i < Number(runs); ++i) {
  const start = performance.now();
  await session.run(feeds);
  console.log((performance.now() - start).toFixed(1));
}
