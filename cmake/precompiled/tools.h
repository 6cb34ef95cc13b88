// What importer, quantiser and the command-line tool read most, as modules.h for what has exceptions and type information.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <protozero/pbf_reader.hpp>

#include "cmake/precompiled/modules.h"
#include "src/cli/json.h"
#include "src/cli/text.h"
