// ONNX Runtime as a peer: one session a model, runs timed one by one.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { feedsOf } from '../golden/tensors.mjs';

// What node has as `gc` if it is started with --expose-gc.
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const kRunsBetweenCollections = 6;

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

  // Outputs of earlier runs are collected before a block, and in a long one again and again, so that runs find the memory of those before them
  // and not fresh pages, which can cost more than the run itself.
  async block(runs) {
    const block = { cpu_ms: [], latency_ms: [] };
    for (let i = 0; i < runs; ++i) {
      if (i % kRunsBetweenCollections === 0) await this.collect();
      const cpu = process.cpuUsage();
      const start = performance.now();
      await this.session.run(this.inputs);
      block.latency_ms.push(performance.now() - start);
      const used = process.cpuUsage(cpu);
      block.cpu_ms.push((used.user + used.system) / 1000);
    }
    return block;
  }

  // Finalizers run in a turn of the event loop of their own.
  async collect() {
    collectGarbage();
    await new Promise((resume) => setImmediate(resume));
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
