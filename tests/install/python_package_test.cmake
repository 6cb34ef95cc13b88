# The Python package as pip installs it: in a virtual environment that sees the system's packages, without a network, from extensions that
# are built already. Used from elsewhere, and uninstalled.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
execute_process(COMMAND ${PYTHON} -c "import setuptools, wheel, numpy, venv, ensurepip" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(missing)
  message("SKIPPED: the environment wants setuptools, wheel, numpy and venv (scripts/setup --extras)")
  return()
endif()
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
run(${PYTHON} -m venv --system-site-packages ${WORK_DIR}/environment)
set(python ${WORK_DIR}/environment/bin/python)
# A copy, for setuptools writes beside its sources.
file(COPY ${SLUICE_SOURCE}/python DESTINATION ${WORK_DIR})
set(ENV{SLUICE_PYTHON_EXTENSIONS} ${BUILD_DIR}/python/sluice)
unset(ENV{PYTHONPATH})
run(${python} -m pip install --quiet --no-index --no-deps --no-build-isolation ${WORK_DIR}/python)
file(WRITE ${WORK_DIR}/use.py "
import os, sluice
assert sluice.__file__.startswith('${WORK_DIR}/environment'), sluice.__file__
folder = os.path.dirname(sluice.__file__)
assert all(os.path.exists(os.path.join(folder, name)) for name in ('py.typed', '_runtime.pyi', '_convert.pyi')), os.listdir(folder)
for call in (lambda: sluice.Session('absent'), lambda: sluice.convert('absent', 'unused')):
    try:
        call()
    except sluice.Error as error:
        assert error.code == 'I/O error', error.code
    else:
        raise AssertionError('opened')
import numpy
sluice.convert('${SLUICE_SOURCE}/examples/models/reader.onnx', 'reader.sluice', dims={'W': 64})
answers = []
for budget in ('8MiB', None):
    session = sluice.Session('reader.sluice', budget=budget)
    name, shape = session.model.inputs[0]['name'], session.model.inputs[0]['shape']
    answers.append(next(iter(session.run({name: numpy.arange(numpy.prod(shape), dtype='f4').reshape(shape) % 251 / 251}).values())))
assert answers[0].size and numpy.array_equal(answers[0], answers[1]), answers
")
run(${CMAKE_COMMAND} -E chdir ${WORK_DIR} ${python} use.py)
run(${python} -m pip uninstall --quiet --yes sluice)
execute_process(COMMAND ${CMAKE_COMMAND} -E chdir ${WORK_DIR} ${python} -c "import sluice" RESULT_VARIABLE gone OUTPUT_QUIET ERROR_QUIET)
if(NOT gone)
  message(FATAL_ERROR "sluice can still be imported after it was uninstalled")
endif()
