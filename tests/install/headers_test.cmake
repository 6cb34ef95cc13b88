# Every public header under the warnings that users build with: all together, in two orders, so that none leans on one that happens to come
# before it; those that are a door of their own alone too, sluice_c.h as C and as C++. With SLUICE_EACH_HEADER in the environment each
# alone, which takes minutes (scripts/nightly).
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror -fsyntax-only -I${SLUICE_SOURCE}/include)

file(GLOB_RECURSE headers RELATIVE ${SLUICE_SOURCE}/include ${SLUICE_SOURCE}/include/*.h)
list(LENGTH headers count)
if(count LESS 50)
  message(FATAL_ERROR "${count} headers below include")
endif()
# check(NAME COMPILER... HEADERS header...)
function(check name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMPILER;HEADERS")
  list(TRANSFORM arg_HEADERS PREPEND "#include \"")
  list(TRANSFORM arg_HEADERS APPEND "\"\n")
  list(JOIN arg_HEADERS "" text)
  file(WRITE ${WORK_DIR}/${name} "${text}")
  run(${arg_COMPILER} ${warnings} ${WORK_DIR}/${name})
endfunction()

list(SORT headers)
check(forwards.cc COMPILER ${COMPILER} -std=c++20 HEADERS ${headers})
list(REVERSE headers)
check(backwards.cc COMPILER ${COMPILER} -std=c++20 HEADERS ${headers})
set(doors ${headers})
list(FILTER doors INCLUDE REGEX "^sluice/[^/]*\\.h$")
foreach(door ${doors})  # what programs include
  check(door.cc COMPILER ${COMPILER} -std=c++20 -fno-exceptions -fno-rtti HEADERS ${door})
endforeach()
check(c_door.cc COMPILER ${COMPILER} -std=c++11 HEADERS sluice/sluice_c.h)
check(c_door.c COMPILER ${C_COMPILER} -std=c99 HEADERS sluice/sluice_c.h)

# options(COMPILER): a program names the options that it wants, and its compiler does not ask for the others.
function(options compiler)
  check(options.cc COMPILER ${compiler} -std=c++20 HEADERS sluice/convert.h sluice/planner.h sluice/profile.h sluice/scheduler.h sluice/session.h
    sluice/shared_arena.h)
  file(APPEND ${WORK_DIR}/options.cc "
    using namespace sluice::literals;
    sluice::SessionOptions session{.budget = 24_MiB, .tuning = {.search_ms = 0}, .emulation = {.compute_slowdown = 2}};
    sluice::SharedArenaOptions arena{.budget = 24_MiB};
    sluice::planner::PlanRequest request{.capacity = 24_MiB};
    sluice::profiler::MeasureOptions measure{.threads = 2};
    sluice::scheduler::SchedulerOptions scheduler{.budget = 64_MiB, .processors = {{.cpus = {0}}, {.compute_slowdown = 3}}};
    sluice::scheduler::ModelOptions model{.urgent = true};
    sluice::scheduler::JobOptions job{.deadline = 5};
    sluice::importer::ConvertOptions convert{.open_dims = {{\"N\", {1, 2}}}};
  ")
  run(${compiler} ${warnings} -std=c++20 ${WORK_DIR}/options.cc)
endfunction()
options(${COMPILER})

# each_alone(COMPILER)
function(each_alone compiler)
  if(DEFINED ENV{SLUICE_EACH_HEADER})
    foreach(header ${headers})
      check(alone.cc COMPILER ${compiler} -std=c++20 HEADERS ${header})
    endforeach()
    message(STATUS "${compiler}: ${count} headers, each alone")
  endif()
endfunction()
each_alone(${COMPILER})

# The other compiler sees other things.
find_program(clang NAMES clang++-14 clang++)
if(clang AND NOT COMPILER MATCHES "clang" AND NOT EMULATOR)
  check(forwards.cc COMPILER ${clang} -std=c++20 HEADERS ${headers})
  check(door.cc COMPILER ${clang} -std=c++20 -fno-exceptions -fno-rtti HEADERS sluice/sluice.h)
  check(c_door.c COMPILER ${clang} -x c -std=c99 HEADERS sluice/sluice_c.h)
  options(${clang})
  each_alone(${clang})
endif()
