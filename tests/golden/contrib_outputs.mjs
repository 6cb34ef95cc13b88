// contrib_outputs.mjs MODULES DIR: runs each case of contrib_cases.py in ONNX Runtime and leaves its outputs beside the inputs.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [modules, root] = process.argv.slice(2);
const ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
ort.env.logLevel = 'error';
const types = { float32: Float32Array, uint8: Uint8Array, int8: Int8Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array };

let refused = 0;
for (const name of readdirSync(root).sort()) {
  const folder = join(root, name), data = join(folder, 'test_data_set_0');
  const request = JSON.parse(readFileSync(join(folder, 'request.json'), 'utf8'));
  try {
    const session = await ort.InferenceSession.create(join(folder, 'model.onnx'), { graphOptimizationLevel: 'disabled' });
    const feeds = {};
    for (const { name: input, type, dims, file } of request.inputs) {
      const bytes = readFileSync(join(data, file));
      feeds[input] = new ort.Tensor(type, new types[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), dims);
    }
    const results = await session.run(feeds);
    const answer = request.outputs.map((output, i) => {
      const { type, dims, data: values } = results[output];
      writeFileSync(join(data, `output_${i}.bin`), Buffer.from(values.buffer, values.byteOffset, values.byteLength));
      return { name: output, type, dims };
    });
    writeFileSync(join(folder, 'answer.json'), JSON.stringify(answer));
    await session.release();
  } catch (error) {
    // Not every build has every operator: a case without an answer is none.
    console.error(`${name}: ONNX Runtime has no answer: ${error.message.split('\n')[0]}`);
    rmSync(folder, { recursive: true });
    refused += 1;
  }
}
console.error(`${refused} cases without an answer`);
