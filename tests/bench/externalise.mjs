// Rewrites an ONNX file so that its weights lie in a second file, page by page, as runtimes map them:
//
//     node externalise.mjs MODEL.onnx OUT.onnx        (writes OUT.onnx and OUT.onnx.data)
//
// A few fields of the wire format by hand: ModelProto.graph = 7, GraphProto.initializer = 5; of TensorProto raw_data = 9 becomes
// external_data = 13 and data_location = 14. Everything else is copied as it is.
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { basename } from 'node:path';

const kPage = 4096;
const kLeastBytes = 1024;

function readVarint(bytes, at) {
  let value = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * factor;
    if (byte < 128) return [value, at];
  }
}

function varint(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) + 128);
  out.push(value);
  return Buffer.from(out);
}

function* fields(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const begin = at;
    let key, body;
    [key, at] = readVarint(bytes, at);
    const wire = key & 7;
    if (wire === 0) [, at] = readVarint(bytes, at);
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === 2) {
      let length;
      [length, at] = readVarint(bytes, at);
      body = bytes.subarray(at, at + length);
      at += length;
    } else throw new Error(`wire type ${wire}`);
    yield { number: key >>> 3, body, whole: bytes.subarray(begin, at) };
  }
}

const delimited = (number, body) => Buffer.concat([varint(number * 8 + 2), varint(body.length), body]);
const entry = (key, value) => delimited(13, Buffer.concat([delimited(1, Buffer.from(key)), delimited(2, Buffer.from(String(value)))]));

const [input, output] = process.argv.slice(2);
const data = openSync(`${output}.data`, 'w');
let offset = 0;

function tensor(bytes) {
  const parts = [];
  let moved = false;
  for (const field of fields(bytes)) {
    if (field.number === 9 && field.body.length >= kLeastBytes) {
      writeSync(data, field.body, 0, field.body.length, offset);
      parts.push(entry('location', `${basename(output)}.data`), entry('offset', offset), entry('length', field.body.length));
      offset = Math.ceil((offset + field.body.length) / kPage) * kPage;
      moved = true;
    } else if (field.number !== 14) {
      parts.push(field.whole);
    }
  }
  if (moved) parts.push(varint(14 * 8), varint(1));
  return Buffer.concat(parts);
}

function graph(bytes) {
  return Buffer.concat([...fields(bytes)].map((field) => (field.number === 5 ? delimited(5, tensor(field.body)) : field.whole)));
}

const model = readFileSync(input);
writeFileSync(output, Buffer.concat([...fields(model)].map((field) => (field.number === 7 ? delimited(7, graph(field.body)) : field.whole))));
closeSync(data);
