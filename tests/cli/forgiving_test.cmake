# What a person gets wrong at first, and what the program says then. Needs nothing but the build.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 32 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice)
sluice(0 convert vgg.onnx -o several.sluice --dim image.0=1..3 --quiet)

# Words that are nearly right
sluice(1 rnu vgg.sluice)
expect_match("${err}" "no command 'rnu'; did you mean 'run'.*commands are convert, .*inspect")
sluice(1 run vgg.sluice --bugdet 3)
expect_match("${err}" "did you mean '--budget'.*sluice run --help")
sluice(1 run vgg.sluice --quite-another-thing)
if(err MATCHES "did you mean")
  message(FATAL_ERROR "a wild guess: ${err}")
endif()

# Asking for help in any way
foreach(words "" "--help" "help")
  sluice(0 ${words})
  expect_match("${out}" "Usage: sluice .*Subcommands:.*convert .*run ")
endforeach()
sluice(0 help plan)
expect_match("${out}" "Usage: sluice plan.*--budget")
sluice(0 help convert)
expect_match("${out}" "Usage: sluice-convert.*--output")
sluice(1 --versoin)
expect_match("${err}" "no option '--versoin'; did you mean '--version'")

# The tools that the program starts read their words with the same good will
sluice(1 convert vgg.onnx -o x.sluice --numrics exact)
expect_match("${err}" "did you mean '--numerics'. .sluice convert --help")
sluice(1 quantize vgg.onnx --dat x -o x.sluice)
expect_match("${err}" "did you mean '--data'. .sluice quantize --help")
sluice(1 convert vgg.onnx)
expect_match("${err}" "--output is required .sluice convert --help")

# A file of the other kind
sluice(2 convert vgg.sluice -o x.sluice)
expect_match("${err}" "vgg.sluice is a model file already: sluice run vgg.sluice")
foreach(command run plan inspect verify)
  sluice(2 ${command} vgg.onnx)
  expect_match("${err}" "vgg.onnx: is an ONNX file.*sluice convert vgg.onnx -o vgg.sluice")
endforeach()
file(COPY_FILE ${WORK_DIR}/vgg.onnx ${WORK_DIR}/model.bin)
sluice(2 run model.bin)
expect_match("${err}" "is an ONNX file.*sluice convert model.bin -o model.bin.sluice")

# Names that the model does not have
sluice(1 run vgg.sluice --input imag=random:1.npy)
expect_match("${err}" "no 'imag'; did you mean 'image'.; it has 'image' .1, 3, 224, 224.")
sluice(1 run vgg.sluice --input random --input random)
expect_match("${err}" "no port left for it; it has 'image'")

# Options that would do nothing
foreach(options "--preprocess imagenet" "--bgr" "--fit stretch" "--mean 1,2,3" "--labels x.txt" "--tolerance 0.1")
  separate_arguments(words UNIX_COMMAND "${options}")
  sluice(1 run vgg.sluice ${words} ${SCOPE})
endforeach()
foreach(option "--svg;x.svg" "--save;x.bin" "--table" "--budget;64M")
  sluice(1 plan vgg.sluice --sweep ${option})
  expect_match("${err}" "excludes")
endforeach()
if(EXISTS ${WORK_DIR}/x.svg OR EXISTS ${WORK_DIR}/x.bin)
  message(FATAL_ERROR "a refused command wrote its file")
endif()

# Sizes as people write them, several values behind one option
sluice(0 plan vgg.sluice --budget 64M --json ${SCOPE})
json(budget budget_bytes)
json(limited budget_limited)
if(NOT budget EQUAL 67108864 OR NOT limited)
  message(FATAL_ERROR "64M is ${budget} bytes")
endif()
sluice(0 convert vgg.onnx -o two.sluice --dim image.0=1..2 image.1=3 --quiet)
sluice(0 run several.sluice --input random:1 --dim image.0=2 --output two --json ${SCOPE})

# Extents from the array that is given: the outputs of two pictures are one array of shape 2 x 1000, and so on
sluice(0 convert vgg.onnx -o one.sluice --quiet)
execute_process(COMMAND sh -c "printf '\\223NUMPY\\001\\000\\166\\000%-117s\\n' \"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 224, 224), }\" > pair.npy; head -c 1204224 /dev/zero >> pair.npy"
  WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
sluice(0 run several.sluice --input pair.npy --json ${SCOPE})
json(extent dims image.0)
if(NOT extent EQUAL 2)
  message(FATAL_ERROR "an array of two pictures ran at image.0=${extent}")
endif()
sluice(1 run several.sluice --dim image.0=3 --input pair.npy ${SCOPE})
expect_match("${err}" "has shape .2, 3, 224, 224., the input 'image' wants .3, 3, 224, 224.")
execute_process(COMMAND sh -c "sed 's/(2, 3/(4, 3/' pair.npy > four.npy; head -c 1204224 /dev/zero >> four.npy" WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
sluice(1 run several.sluice --input four.npy ${SCOPE})
expect_match("${err}" "'image': the array given has 4 on axis 0, where the model file has image.0 = 1..3")

# An archive of arrays, each by its name; a picture that goes in as it is; a picture made to fit
execute_process(COMMAND ${CMAKE_COMMAND} -E copy pair.npy image.npy WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E tar cf arrays.npz --format=zip image.npy WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
sluice(0 run several.sluice --input arrays.npz --json ${SCOPE})
json(extent dims image.0)
if(NOT extent EQUAL 2)
  message(FATAL_ERROR "an archive of an array of two pictures ran at image.0=${extent}")
endif()
set(picture ${SOURCE_DIR}/examples/models/photographed_line.png)
sluice(0 run vgg.sluice --input ${picture} ${SCOPE})
expect_match("${err}" "warning: .*photographed_line.png goes into 'image' as values of 0 to 255.*--preprocess none")
sluice(0 run vgg.sluice --input ${picture} --preprocess none ${SCOPE})
if(err MATCHES "warning")
  message(FATAL_ERROR "a warning of what was asked for: ${err}")
endif()
foreach(fit crop stretch letterbox)
  sluice(0 run vgg.sluice --input ${picture} --preprocess imagenet --fit ${fit} --output ${fit} ${SCOPE})
  file(SHA256 ${WORK_DIR}/${fit}/scores.npy ${fit}_scores)
endforeach()
if(crop_scores STREQUAL stretch_scores OR stretch_scores STREQUAL letterbox_scores OR crop_scores STREQUAL letterbox_scores)
  message(FATAL_ERROR "two ways to fit a wide picture into a square give the same scores")
endif()
sluice(1 run vgg.sluice --input ${picture} --fit squeeze ${SCOPE})
expect_match("${err}" "crop.*stretch.*letterbox")

# The hint to measure the device: once, in a plan that knows nothing of it
sluice(0 plan vgg.sluice --profile none ${SCOPE})
string(REGEX MATCHALL "sluice profile" hints "${out}${err}")
list(LENGTH hints count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "the hint to `sluice profile` is given ${count} times: ${out}${err}")
endif()

# budget_bytes is a number in every command, whatever the budget
foreach(budget unlimited 64M)
  foreach(command "plan;vgg.sluice" "run;vgg.sluice" "predict;vgg.sluice")
    sluice(0 ${command} --budget ${budget} ${SCOPE} --json)
    string(JSON type TYPE "${out}" budget_bytes)
    if(NOT type STREQUAL NUMBER)
      message(FATAL_ERROR "${command}: budget_bytes is a ${type}")
    endif()
  endforeach()
endforeach()

# JSON: every key that is printed is documented
foreach(command "convert;vgg.onnx;-o;x.sluice" "quantize;vgg.onnx;--data;${SOURCE_DIR}/examples/models/photographed_line.png;-o;q.onnx" "inspect;vgg.sluice" "plan;vgg.sluice;${SCOPE}" "plan;vgg.sluice;--sweep;${SCOPE}"
    "run;vgg.sluice;--stats;--top;1;${SCOPE}" "bench;vgg.sluice;--repeat;1")
  sluice(0 ${command} --json)
  expect_documented_keys()
endforeach()
