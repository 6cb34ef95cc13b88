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

# A file of the other kind
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

# JSON: every key that is printed is documented
foreach(command "convert;vgg.onnx;-o;x.sluice" "quantize;vgg.onnx;--data;${SOURCE_DIR}/examples/models/photographed_line.png;-o;q.onnx" "inspect;vgg.sluice" "plan;vgg.sluice;${SCOPE}" "plan;vgg.sluice;--sweep;${SCOPE}"
    "run;vgg.sluice;--stats;--top;1;${SCOPE}" "bench;vgg.sluice;--repeat;1")
  sluice(0 ${command} --json)
  expect_documented_keys()
endforeach()
