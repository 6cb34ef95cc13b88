# The fully static program: it does what the other does, and its process is smaller. SLUICE is the static program, DYNAMIC the other.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 32 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${DYNAMIC} convert vgg.onnx -o vgg.sluice WORKING_DIRECTORY ${WORK_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${DYNAMIC} plan vgg.sluice --json WORKING_DIRECTORY ${WORK_DIR} OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
json(dynamic_minimum minimum_budget_bytes)
execute_process(COMMAND ${DYNAMIC} run vgg.sluice --output dynamic WORKING_DIRECTORY ${WORK_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

sluice(0 plan vgg.sluice --json)
json(minimum minimum_budget_bytes)
json(arena arena_bytes)
json(overhead overhead_bytes)
if(minimum GREATER dynamic_minimum)  # both are rounded, so they may be equal
  message(FATAL_ERROR "the static program needs ${minimum} bytes, the dynamic one ${dynamic_minimum}")
endif()
# 3.5 MiB of its own, and this model's input (0.57 MiB) and tables; a step of 256 KiB for what the kernel's counter wobbles by.
if(overhead GREATER 4980736)
  message(FATAL_ERROR "the static program holds ${overhead} bytes beside its arena")
endif()
sluice(0 run vgg.sluice --budget ${minimum} --output static --json)
expect_within_budget()
expect_same_bits(static/scores.npy dynamic/scores.npy)
sluice(4 run vgg.sluice --budget 2MiB)

# It has no loader to load OpenSSL with, and says so.
file(WRITE ${WORK_DIR}/key "0123456789abcdef0123456789abcdef")
execute_process(COMMAND ${DYNAMIC} convert vgg.onnx -o encrypted.sluice --encrypt key WORKING_DIRECTORY ${WORK_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
sluice(8 run encrypted.sluice)
sluice(3 run encrypted.sluice --key key)
expect_match("${err}" "this program is static")
