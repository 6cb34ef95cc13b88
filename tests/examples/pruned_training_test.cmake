# The training script's pruning: what it writes, `convert` makes a small file of, whose outputs are PyTorch's.
#
#   PYTHON, TRAINING   the interpreter, and examples/training
#   FOLDER             examples/models
include(${CMAKE_CURRENT_LIST_DIR}/../cli/program.cmake)
execute_process(COMMAND ${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/pruned_training_test.py ${TRAINING} ${FOLDER}/reader.onnx ${WORK_DIR}/pruned.onnx
  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE problems)
message("${said}")
if(status)
  message(FATAL_ERROR "status ${status}: ${problems}")
endif()
if(said MATCHES "SKIPPED")
  return()
endif()
sluice(0 convert pruned.onnx -o pruned.sluice --dim W=32 --code small --json)
json(stored stored_bytes)
if(stored GREATER 45000)  # of 596,236 bytes of floats
  message(FATAL_ERROR "${stored} bytes are stored")
endif()
sluice(0 run pruned.sluice --scope library --input pruned.in.npy --expect pruned.out.npy)
execute_process(COMMAND ${PYTHON} ${TRAINING}/train_reader.py --prune 0.5 RESULT_VARIABLE status ERROR_VARIABLE problems)
if(NOT status EQUAL 2 OR NOT problems MATCHES "a net --from which it begins")
  message(FATAL_ERROR "--prune without --from: status ${status}: ${problems}")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
