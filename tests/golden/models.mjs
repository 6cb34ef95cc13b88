// What scripts/models does: one line a model, exit status 1 if any is wrong.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';

import { differenceFrom, feedsOf, fill, inputWords, onnxFiles, sameFiles } from './tensors.mjs';

const [build, modules, models, ...chosen] = process.argv.slice(2);
const ort = createRequire(`${resolve(modules)}/`)('onnxruntime-node');
ort.env.logLevel = 'error';
const sluice = join(build, 'sluice');
const kTolerance = 1e-3;

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

async function peer(path, inputs) {
  // Without its rewrites, which round quantised values in places of their own.
  const session = await ort.InferenceSession.create(path, { graphOptimizationLevel: 'disabled' });
  const results = await session.run(feedsOf(ort, session, inputs));
  await session.release();
  return results;
}

async function check(path, folder) {
  const model = join(folder, 'model.sluice');
  const call = (...words) => execFileSync(sluice, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  call('convert', path, '-o', model, ...(dims[basename(path)] ?? []).flatMap((d) => ['--dim', d]));
  const inputs = JSON.parse(call('inspect', model, '--json')).inputs.filter(({ shape }) => !shape.includes(0));
  for (const input of inputs) input.array = fill(input, integers[input.name]);
  const wanted = await peer(path, inputs);
  const words = inputWords(inputs, folder);
  const least = JSON.parse(call('plan', model, '--json')).minimum_budget_bytes;
  let first, worst = 0, same = true, peak;
  for (const budget of ['unlimited', String(least)]) {
    const out = join(folder, budget);
    peak = JSON.parse(call('run', model, '--budget', budget, '--json', ...words, '--output', out)).peak_rss_bytes;
    if (first) same = sameFiles(first, out);
    first ??= out;
    worst = Math.max(worst, differenceFrom(wanted, out));
  }
  return { least, peak, worst, same };
}

let wrong = 0;
console.log('| model | smallest process budget | peak there | largest difference, of the largest value | same bits |\n|---|---|---|---|---|');
for (const path of chosen.length > 0 ? chosen : onnxFiles(models).sort()) {
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
