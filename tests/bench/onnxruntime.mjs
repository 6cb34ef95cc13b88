// ONNX Runtime as a peer: one session a model, runs timed one by one.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';

import { feedsOf } from '../golden/tensors.mjs';

export class OnnxRuntime {
  constructor(modules) {
    this.ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
    this.ort.env.logLevel = 'error';
  }

  // `inputs`: as `sluice inspect --json` lists them, each with its values as `array`.
  async open(onnx, inputs, threads) {
    this.session = await this.ort.InferenceSession.create(onnx, {
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
    });
    this.inputs = feedsOf(this.ort, this.session, inputs);
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

  // What the peer computes without its rewrites, by name of the output.
  async answer(onnx, inputs) {
    const session = await this.ort.InferenceSession.create(onnx, { graphOptimizationLevel: 'disabled' });
    const results = await session.run(feedsOf(this.ort, session, inputs));
    await session.release();
    return results;
  }

  async close() {
    await this.session.release();
  }
}
