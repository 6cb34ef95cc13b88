// What importer, quantiser and the command-line tool read most, as modules.h for what has exceptions and type information. Not the libraries for
// JSON and command lines: what they instantiate would be instantiated in each source (5 s), whether it calls them or not.
#pragma once

#include <filesystem>
#include <protozero/pbf_reader.hpp>

#include "cmake/precompiled/modules.h"
#include "src/cli/text.h"
