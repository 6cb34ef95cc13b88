# `sluice bench`: its rows, formats and refusals; no figure of time is judged.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 32 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice)

sluice(0 bench vgg.sluice --budgets unlimited,smallest,1M --threads 1,2 --repeat 3 --warmup 1 --operators --json)
string(JSON count LENGTH "${out}" rows)
if(NOT count EQUAL 6)
  message(FATAL_ERROR "3 budgets x 2 thread counts gave ${count} rows")
endif()
foreach(i 0 1 3 4)
  foreach(key model budget_bytes threads median_ms p90_ms p99_ms min_ms cpu_ms stall_ms peak_rss_bytes predicted_ms bytes_read bound_by reason)
    json(value rows ${i} ${key})
  endforeach()
  json(budget rows ${i} budget_bytes)
  json(peak rows ${i} peak_rss_bytes)
  json(limited rows ${i} budget_limited)
  json(convolutions rows ${i} operators_ms conv)
  if(limited AND peak GREATER budget)
    message(FATAL_ERROR "row ${i}: peak ${peak} exceeds the budget ${budget}")
  endif()
endforeach()
json(refusal rows 2 refusal)
expect_match("${refusal}" "the smallest budget that works is")
foreach(key processor processors memory_bytes isa system build)
  json(value machine ${key})
endforeach()

# A goal that every budget reaches is answered with the smallest one, one that none reaches with how near it comes
sluice(0 plan vgg.sluice --repeat --json)
json(minimum minimum_budget_bytes)
sluice(0 bench vgg.sluice --goal 3600s --repeat 1 --warmup 0 --json)
json(found rows 0 budget_bytes)
if(NOT found EQUAL minimum)
  message(FATAL_ERROR "a goal of an hour wants ${found} bytes, the minimum is ${minimum}")
endif()
sluice(1 bench vgg.sluice --goal 0 --repeat 1 --warmup 0 --json)
json(refusal rows 0 refusal)
expect_match("${refusal}" "no budget reaches 0.0 ms")

# Other forms
sluice(0 bench vgg.sluice --repeat 1 --cold --csv)
expect_match("${out}" "^model,budget_bytes.*\nvgg.sluice,[0-9]+,0,1,")
sluice(0 bench vgg.sluice --repeat 1 --md)
expect_match("${out}" "\\| vgg.sluice \\| unlimited \\| 1 \\|")
sluice(0 bench vgg.sluice --repeat 1)
expect_match("${out}" "bounds it: ")

# A peer that is not here, of another name, without its file, beside what it cannot be compared with
sluice(1 bench vgg.sluice --peer tensorwhat)
expect_match("${err}" "the one peer is onnxruntime")
sluice(5 bench vgg.sluice --peer onnxruntime=nowhere)
sluice(3 bench vgg.sluice --peer onnxruntime=/)
expect_match("${err}" "no onnxruntime-node in /.*npm install onnxruntime-node")
sluice(1 bench vgg.sluice --onnx vgg.onnx)
sluice(1 bench vgg.sluice --peer onnxruntime --cold)
sluice(1 bench vgg.sluice --peer onnxruntime --goal 1s)

# A stand-in for the peer's package: what it is asked, in which processes, and that its figures arrive
find_program(NODE node)
if(NODE)
  set(package ${WORK_DIR}/peer/node_modules/onnxruntime-node)
  file(WRITE ${package}/package.json [[{"name": "onnxruntime-node", "version": "0.0.7", "main": "index.js"}]])
  file(WRITE ${package}/index.js [[
exports.env = {};
exports.Tensor = class { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } };
exports.InferenceSession = { create: async (file, options) => {
  if (file.endsWith('refused.onnx')) throw new Error('refused by the stand-in\nand more');
  return { run: async (feeds) => require('fs').appendFileSync('asked.txt',
    `${process.pid} ${options.intraOpNumThreads} ${feeds.image.type} ${feeds.image.dims} ${feeds.image.data.length}\n`) };
} };
]])
  sluice(0 bench vgg.sluice --peer onnxruntime=peer --threads 2 --repeat 5 --warmup 1 --json)
  expect_documented_keys()
  json(version rows 0 peer version)
  foreach(key median_ms min_ms p90_ms cpu_ms peak_rss_bytes ratio)
    json(value rows 0 peer ${key})
  endforeach()
  file(STRINGS ${WORK_DIR}/asked.txt asked)
  list(LENGTH asked count)
  string(REGEX MATCHALL "[0-9]+ 2 float32 1,3,224,224 150528" asked "${asked}")
  list(LENGTH asked sound)
  list(REMOVE_DUPLICATES asked)
  list(LENGTH asked processes)
  if(NOT version STREQUAL "0.0.7" OR NOT count EQUAL 9 OR NOT sound EQUAL 9 OR NOT processes EQUAL 4)
    message(FATAL_ERROR "5 runs in 4 blocks, each behind one that does not count: ${count} runs, ${sound} as asked, ${processes} processes")
  endif()
  file(COPY_FILE ${WORK_DIR}/vgg.onnx ${WORK_DIR}/refused.onnx)
  sluice(0 bench vgg.sluice --peer onnxruntime=peer/node_modules --onnx refused.onnx --repeat 1)
  expect_match("${out}" "no figures of the peer: onnxruntime: refused by the stand-in\n")
  sluice(5 bench vgg.sluice --peer onnxruntime=peer --onnx absent.onnx)
  sluice(1 bench vgg.sluice --peer onnxruntime=peer --onnx vgg.onnx --onnx vgg.onnx)
endif()

sluice(1 bench vgg.sluice --budget lots)
sluice(1 bench vgg.sluice --budget 64M,,1G)
sluice(1 bench vgg.sluice --threads 1,x)
sluice(1 bench vgg.sluice --json --csv)
sluice(1 bench vgg.sluice --goal 1ms --budget 64M)
sluice(1 bench)
sluice(2 bench vgg.onnx)
sluice(5 bench absent.sluice)
