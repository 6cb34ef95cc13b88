# sluice_module(NAME SOURCES ... LINKS ... PRIVATE_LINKS ...)
#   One static library `sluice_NAME`, alias sluice::NAME. LINKS are the modules below it and become visible to its users; PRIVATE_LINKS are
#   third-party libraries that its sources alone use. EXCEPTIONS: they are needed inside, whatever SLUICE_EXCEPTIONS says (and caught before
#   the public border). NO_EXCEPTIONS: nothing inside allocates, nor calls what does. UNITY: see sluice_unity.
function(sluice_module name)
  cmake_parse_arguments(arg "EXCEPTIONS;NO_EXCEPTIONS;UNITY" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(sluice_${name} STATIC ${arg_SOURCES})
  add_library(sluice::${name} ALIAS sluice_${name})
  target_include_directories(sluice_${name}
    PUBLIC ${PROJECT_SOURCE_DIR}/include
    PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(sluice_${name} PUBLIC cxx_std_20)
  target_link_libraries(sluice_${name} PUBLIC ${arg_LINKS})
  foreach(library IN LISTS arg_PRIVATE_LINKS)
    target_link_libraries(sluice_${name} PRIVATE ${library})
  endforeach()
  sluice_flags(sluice_${name})
  if(arg_NO_EXCEPTIONS OR NOT (SLUICE_EXCEPTIONS OR arg_EXCEPTIONS))
    target_compile_options(sluice_${name} PRIVATE -fno-exceptions)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "MinSizeRel" AND NOT SLUICE_EXCEPTIONS AND NOT arg_EXCEPTIONS)
    # Nothing unwinds through it: the tables would be an eighth of a trimmed program.
    target_compile_options(sluice_${name} PRIVATE -fno-asynchronous-unwind-tables -fno-unwind-tables)
  endif()
  if(NOT arg_EXCEPTIONS)
    target_compile_options(sluice_${name} PRIVATE -fno-rtti)
  endif()
  if(NOT name MATCHES "^(core|kernels|model)$")  # which work on each byte of a file
    target_compile_options(sluice_${name} PRIVATE ${SLUICE_COLD_LEVEL})
  endif()
  if(arg_UNITY)
    sluice_unity(sluice_${name})
  endif()
  if(arg_EXCEPTIONS)
    sluice_precompiled(sluice_${name} tools)
  elseif(NOT arg_NO_EXCEPTIONS)
    sluice_precompiled(sluice_${name} modules)
  endif()
endfunction()

# sluice_precompiled(TARGET KIND): the target's sources have cmake/precompiled/KIND.h read already, where SLUICE_PRECOMPILE asks for it. Compilers
# take one only where flags are the same, so each kind is made once, by a target with the flags of those that use it (cmake/precompiled). Sources
# with others are left out: -Os and -fexceptions are refused, and at -O2 g++ 12 would without a word compile what is between Highway's pragmas
# as the header was.
function(sluice_precompiled target kind)
  if(SLUICE_PRECOMPILE AND TARGET sluice_precompiled_${kind} AND NOT target MATCHES "^sluice_precompiled_")
    target_precompile_headers(${target} REUSE_FROM sluice_precompiled_${kind})
  endif()
endfunction()
function(sluice_not_precompiled)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Compiles the target's sources together, up to SLUICE_UNITY_BATCH at once: what they include is most of what they cost. Names within files must differ,
# then. Each function keeps a section of its own, so that programs can leave out what they do not call. A trimmed build goes without: it is
# made for size, not often.
function(sluice_unity target)
  if(SLUICE_UNITY_BUILD AND NOT SLUICE_TRIM)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SLUICE_UNITY_BATCH})
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  endif()
endfunction()

# The same for these sources of a target that names its groups itself: `sluice_unity_groups(target)`, then one call for each group.
function(sluice_unity_groups target)
  sluice_unity(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
function(sluice_together target group)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
endfunction()

# Warnings and sanitizers for one of our own targets; never PUBLIC.
function(sluice_flags target)
  # Designated initialisers leave fields to their defaults on purpose.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion)
  if(CMAKE_SIZEOF_VOID_P EQUAL 4)  # where a file's offsets have 32 bits unless they are asked to have more
    target_compile_definitions(${target} PRIVATE _FILE_OFFSET_BITS=64)
  endif()
  # g++ 12 sees overlaps in std::string concatenation that are not there (GCC bug 105651).
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(SLUICE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(SLUICE_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(SLUICE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer)
    if(SLUICE_SANITIZE MATCHES "undefined")
      # vptr needs the type information that our modules are built without.
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr -fno-sanitize-recover=undefined)
    endif()
    target_compile_options(${target} PRIVATE ${SLUICE_SANITIZE_OPTIONS})
    target_link_options(${target} PUBLIC -fsanitize=${SLUICE_SANITIZE})
  endif()
endfunction()
