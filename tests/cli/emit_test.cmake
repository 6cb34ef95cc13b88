# `sluice emit` as a user calls it: from an ONNX file and from a model file, streamed and held, with its refusals.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)
set(reader ${SOURCE_DIR}/examples/models/reader.onnx)

function(run_test folder)
  execute_process(COMMAND cc -std=c99 -O1 reader.c reader_test.c -o reader WORKING_DIRECTORY ${WORK_DIR}/${folder} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ./reader WORKING_DIRECTORY ${WORK_DIR}/${folder} OUTPUT_VARIABLE said RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT said MATCHES "equal, bit by bit")
    message(FATAL_ERROR "${folder}: status ${status}: ${said}")
  endif()
endfunction()

sluice(0 emit ${reader} --dim W=64 --ram smallest -o from_onnx --test random:3)
expect_match("${out}" "RAM")
run_test(from_onnx)

# An input of the test that cannot be read leaves nothing behind
sluice(5 emit ${reader} --dim W=64 --ram smallest -o no_input --test absent.npy)
if(EXISTS ${WORK_DIR}/no_input)
  message(FATAL_ERROR "a refused input of the test, and files were written")
endif()

# The same text from a model file of the same stem, and with the extent bound when it is opened
sluice(0 convert ${reader} -o reader.sluice --dim W=32..64:32 --numerics exact)
sluice(1 emit reader.sluice --ram smallest -o x)
expect_match("${err}" "`W` is left open .*--dim W=")
sluice(1 emit ${reader} --dim W=32..64:32 --ram smallest -o x)
expect_match("${err}" "reader.onnx: the extent of `W` is left open .*--dim W=")
sluice(0 emit reader.sluice --dim W=64 --ram smallest -o from_model)
expect_same_bits(from_onnx/reader.c from_model/reader.c)
expect_same_bits(from_onnx/reader.h from_model/reader.h)

sluice(0 emit ${reader} --dim W=64 --ram 1MiB --input held -o held --test random:3 --json)
run_test(held)
expect_documented_keys()
json(factor macs_factor)
if(NOT factor EQUAL 1)
  message(FATAL_ERROR "multiply-adds ${factor} times the network's")
endif()

# Multiply-adds buy RAM, no more of them than allowed; the rows of the input are then asked for once for each strip
sluice(0 emit ${reader} --dim W=64 --ram smallest -o once --json)
json(ram_once ram_bytes)
json(passes input_passes)
if(NOT passes EQUAL 1)
  message(FATAL_ERROR "rows are asked for ${passes} times")
endif()
sluice(0 emit ${reader} --dim W=64 --ram smallest --max-overhead 50% -o strips --test random:3 --json)
run_test(strips)
json(ram ram_bytes)
json(factor macs_factor)
json(passes input_passes)
if(NOT ram LESS ram_once OR NOT factor GREATER 1 OR factor GREATER 1.5 OR NOT passes GREATER 1)
  message(FATAL_ERROR "RAM ${ram} of ${ram_once}, multiply-adds ${factor}, passes ${passes}")
endif()
sluice(1 emit ${reader} --dim W=64 --ram smallest --max-overhead much -o x)
expect_match("${err}" "--max-overhead much: is not a share")
sluice(1 emit --measure --max-overhead 20% -o x)
expect_match("${err}" "--max-overhead: is of a model")

# Too little RAM names the least that works
sluice(4 emit ${reader} --dim W=64 --ram 1KiB -o x)
string(REGEX MATCH "works is ([0-9]+) bytes" least "${err}")
sluice(0 emit ${reader} --dim W=64 --ram ${CMAKE_MATCH_1} -o least)

sluice(1 emit --measure --test random -o x)
expect_match("${err}" "--test: is of a model")
sluice(1 emit --measure --dim W=64 -o x)
expect_match("${err}" "--dim: is of a model, and none is given")

# A measurer prints a profile that plan and predict take: of all kernels, and of those of a model
sluice(0 emit --measure -o measurer --json)
expect_documented_keys()
execute_process(COMMAND cc -std=c99 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror measure.c -o measure
  WORKING_DIRECTORY ${WORK_DIR}/measurer COMMAND_ERROR_IS_FATAL ANY)
sluice(0 emit ${reader} --dim W=64 --measure --ram 8KiB -o measurer_of_model)
execute_process(COMMAND cc -std=c99 -O1 measure.c -o measure WORKING_DIRECTORY ${WORK_DIR}/measurer_of_model COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ./measure WORKING_DIRECTORY ${WORK_DIR}/measurer_of_model OUTPUT_FILE ${WORK_DIR}/measurer_of_model/device.json COMMAND_ERROR_IS_FATAL ANY)
sluice(0 predict ${reader} --dim W=64 --profile measurer_of_model/device.json --threads 1 --json)
json(measured measured)
json(latency latency_ms)
if(NOT measured OR NOT latency GREATER 0)
  message(FATAL_ERROR "a measurer's profile is not used: ${out}")
endif()
sluice(0 plan reader.sluice --dim W=64 --profile measurer_of_model/device.json --threads 1)
if(out MATCHES "assumed")
  message(FATAL_ERROR "a measurer's profile is not used: ${out}")
endif()

# The examples: a word that was photographed, and one that is heard, where its network is at hand
sluice(0 emit ${reader} --dim W=144 --ram 128KiB -o board)
execute_process(COMMAND ${SOURCE_DIR}/examples/microcontroller/run board read_a_line WORKING_DIRECTORY ${WORK_DIR} OUTPUT_VARIABLE said
  ERROR_VARIABLE problems COMMAND_ERROR_IS_FATAL ANY)
expect_match("${said}${problems}" "Deemed|SKIPPED")
set(shared $ENV{SLUICE_SHARED_DIR})
if(NOT shared)
  set(shared ${SOURCE_DIR}/../shared)
endif()
set(keywords ${shared}/models/audio/micro_kws_m_qdq.onnx)
if(EXISTS ${keywords})
  sluice(0 emit ${keywords} --dim unk__68=1 --ram 8KiB -o board)
  execute_process(COMMAND ${SOURCE_DIR}/examples/microcontroller/run board WORKING_DIRECTORY ${WORK_DIR} OUTPUT_VARIABLE said
    ERROR_VARIABLE problems COMMAND_ERROR_IS_FATAL ANY)
  expect_match("${said}${problems}" "word [0-9]|SKIPPED")
else()
  message(STATUS "SKIPPED: the word hearer: ${keywords} is not at hand")
endif()

# The measurer on a Cortex-M4 under an emulator, whose instructions take a nanosecond each
find_program(arm_gcc arm-none-eabi-gcc)
find_program(arm_qemu qemu-system-arm)
if(arm_gcc AND arm_qemu)
  set(board ${SOURCE_DIR}/examples/microcontroller)
  execute_process(COMMAND ${arm_gcc} -std=c99 -Os -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -DSLUICE_CLOCK_HZ=25000000 -Wall -Wextra
      -Wpedantic -Wconversion -Werror -ffunction-sections -fdata-sections -nostartfiles --specs=nano.specs -Wl,--gc-sections
      -Wl,--defsym=CONSTANTS=0x10000,--defsym=CONSTANTS_SIZE=0x3f0000,--defsym=CODE_SIZE=0x10000 -T ${board}/board.ld ${board}/start.c
      measure.c -o board
    WORKING_DIRECTORY ${WORK_DIR}/measurer_of_model COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${arm_qemu} -M mps2-an386 -icount shift=0 -display none -nodefaults -serial null -semihosting-config
      enable=on,target=native -kernel board
    WORKING_DIRECTORY ${WORK_DIR}/measurer_of_model ERROR_FILE ${WORK_DIR}/measurer_of_model/board.log COMMAND_ERROR_IS_FATAL ANY)
  sluice(0 predict ${reader} --dim W=64 --profile measurer_of_model/board.log --threads 1 --json)
  json(measured measured)
  json(board_latency latency_ms)
  # A count of instructions, so no other program disturbs it: 9.6 when it was written.
  if(NOT measured OR NOT board_latency GREATER 3 OR NOT board_latency LESS 30)
    message(FATAL_ERROR "a board whose instructions take a nanosecond each takes ${board_latency} ms")
  endif()
  # A few KiB: 2380 bytes of its own and 822 of its 13 layers when it was written
  execute_process(COMMAND ${SOURCE_DIR}/scripts/emit-size cortex-m4 measurer_of_model/measure.c WORKING_DIRECTORY ${WORK_DIR}
    OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  expect_match("${said}" "measurer ([0-9]+) B and its layers ([0-9]+) B")
  string(REGEX MATCH "measurer ([0-9]+) B and its layers ([0-9]+) B" found "${said}")
  if(NOT CMAKE_MATCH_1 LESS 2600 OR NOT CMAKE_MATCH_2 LESS 900)
    message(FATAL_ERROR "the measurer has grown: ${said}")
  endif()
else()
  message(STATUS "SKIPPED: the measurer on a board: arm-none-eabi-gcc or qemu-system-arm is not installed")
endif()

# Refusals of the measurer
sluice(1 emit --measure --ram smallest -o x)
expect_match("${err}" "--ram: is a size with --measure")
sluice(4 emit --measure --ram 8 -o x)
expect_match("${err}" "works is [0-9]+ bytes")

# Weights of fewer bits are widened when the code is written
sluice(0 convert ${reader} -o few.sluice --dim W=64 --numerics exact --weights int8)
sluice(0 emit few.sluice --ram smallest -o x)

# What no portable kernel computes is named, with the way out
sluice(0 convert ${reader} -o fast.sluice --dim W=64 --numerics fast)
sluice(3 emit fast.sluice --ram smallest -o x)
expect_match("${err}" "node `[a-z0-9.]+` \\(conv\\): .*winograd4; convert with --numerics exact")

# Words that make no sense
sluice(1 emit --ram smallest -o x)
expect_match("${err}" "model: is needed")
sluice(1 emit absent.onnx --ram smallest --input sideways -o x)
sluice(1 emit ${reader} --dim W=64 -o x)
sluice(1 emit ${reader} --dim W=64 --ram much -o x)
sluice(1 emit ${reader} --ram smallest -o x)
sluice(5 emit absent.sluice --ram smallest -o x)
