# The XNNPACK backend on whole models: right within 1e-4, every fallback as planned, and reachable from a configuration.
include(${CMAKE_CURRENT_LIST_DIR}/../cli/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 32 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice)
set(models vgg.sluice)
# Models that are not in the repository have what vgg has not: residuals, depthwise, concatenations, operators that fall back.
foreach(name mnist-8 tinyvit_demo)
  if(EXISTS ${SHARED}/models/classification/${name}.onnx)
    sluice(0 convert ${SHARED}/models/classification/${name}.onnx -o ${name}.sluice)
    list(APPEND models ${name}.sluice)
  endif()
endforeach()
execute_process(COMMAND ${CHECK} ${models} WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)

sluice(0 processors --json)
json(available kinds 2 available)
if(NOT available)
  message(FATAL_ERROR "the module is not beside the program: ${out}")
endif()
file(WRITE ${WORK_DIR}/config.json "{\"models\": [{\"graph\": \"vgg.sluice\", \"period_ms\": 50}], \"running_time_ms\": 200,
  \"workers\": [{\"device\": \"CPU\"}, {\"device\": \"XNNPACK\"}]}")
sluice(0 serve config.json ${SCOPE} --json)
json(submitted submitted)
json(met objectives_met)
json(kind processors 1 kind)
if(NOT submitted EQUAL 4 OR NOT met EQUAL 4 OR NOT kind STREQUAL "xnnpack")
  message(FATAL_ERROR "${out}")
endif()

# Of a model in units every output needs room: what finds none is refused, and counted.
if(EXISTS ${WORK_DIR}/tinyvit_demo.sluice)
  file(WRITE ${WORK_DIR}/overload.json "{\"models\": [{\"graph\": \"tinyvit_demo.sluice\", \"period_ms\": 10, \"batch_size\": 1000}],
    \"running_time_ms\": 10, \"profile_num_runs\": 1, \"workers\": [{\"device\": \"CPU\"}, {\"device\": \"XNNPACK\"}]}")
  sluice(0 serve overload.json ${SCOPE} --json)
  json(submitted submitted)
  json(refused refused)
  if(NOT submitted EQUAL 1000 OR refused LESS 500)
    message(FATAL_ERROR "submitted ${submitted} of 1000, refused ${refused}")
  endif()
endif()
