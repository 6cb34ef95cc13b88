// One block of ONNX Runtime's runs, in a process of its own: node -e THIS -- '{"modules": ..., "onnx": ..., "threads": ..., "warmup": ...,
// "runs": ..., "inputs": [{"name", "shape", "dtype"}]}'. Prints one JSON object.
const asked = JSON.parse(process.argv[1]);
const find = require('module').createRequire(asked.modules + '/');
const ort = find('onnxruntime-node');
const kArrays = {
  float32: Float32Array, float16: Uint16Array, float64: Float64Array, bool: Uint8Array, uint8: Uint8Array, int8: Int8Array,
  uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array, int32: Int32Array, uint64: BigUint64Array, int64: BigInt64Array,
};
const kNames = { f32: 'float32', f16: 'float16', f64: 'float64', bool: 'bool' };
const peer_type = (dtype) => kNames[dtype] ?? dtype.replace(/^u/, 'uint').replace(/^i/, 'int');

// Zeros and denormals would take other times than values do: reals are in [-1, 1), whole numbers 1.
function values(type, count) {
  const array = new kArrays[type](count);
  if (type === 'float32' || type === 'float64') for (let i = 0, state = 1; i < count; ++i) array[i] = (state = (state * 16807) % 2147483647) / 1073741824 - 1;
  else array.fill(type === 'float16' ? 0x3800 : type.endsWith('64') ? 1n : 1);
  return array;
}

(async () => {
  ort.env.logLevel = 'error';
  const session = await ort.InferenceSession.create(asked.onnx, {
    intraOpNumThreads: asked.threads, interOpNumThreads: 1, executionMode: 'sequential', graphOptimizationLevel: 'all',
  });
  const feeds = {};
  for (const { name, shape, dtype } of asked.inputs) {
    const type = peer_type(dtype);
    feeds[name] = new ort.Tensor(type, values(type, shape.reduce((a, b) => a * b, 1)), shape);
  }
  for (let i = 0; i < asked.warmup; ++i) await session.run(feeds);
  const latency_ms = [], cpu_ms = [];
  for (let i = 0; i < asked.runs; ++i) {
    const cpu = process.cpuUsage(), start = performance.now();
    await session.run(feeds);
    latency_ms.push(performance.now() - start);
    const used = process.cpuUsage(cpu);
    cpu_ms.push((used.user + used.system) / 1000);
  }
  const version = find('onnxruntime-node/package.json').version;
  console.log(JSON.stringify({ version, latency_ms, cpu_ms, peak_rss_bytes: process.resourceUsage().maxRSS * 1024 }));
})().catch((error) => {
  console.error(String(error.message ?? error));
  process.exitCode = 1;
});
