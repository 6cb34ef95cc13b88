// ONNX Runtime as a peer: one session a model, runs timed one by one.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';

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

export class OnnxRuntime {
  constructor(modules) {
    this.ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
    this.ort.env.logLevel = 'error';
  }

  // `inputs`: as `sluice inspect --json` lists them.
  async open(onnx, inputs, threads) {
    this.session = await this.ort.InferenceSession.create(onnx, {
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
    });
    this.inputs = feeds(this.ort, inputs);
    await this.block(2); // warm
  }

  async block(runs) {
    const block = { cpu_ms: [], latency_ms: [] };
    for (let i = 0; i < runs; ++i) {
      const cpu = process.cpuUsage();
      const start = performance.now();
      await this.session.run(this.inputs);
      block.latency_ms.push(performance.now() - start);
      const used = process.cpuUsage(cpu);
      block.cpu_ms.push((used.user + used.system) / 1000);
    }
    return block;
  }

  async close() {
    await this.session.release();
  }
}
