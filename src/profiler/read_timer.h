// How fast a file gives its bytes, by size of piece and pieces in flight, read as models are read.
#pragma once

#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

/// By depth, then size. Reads at most the first 256 MiB of the file for each. Errors: kIo; kInvalidArgument for a file that is too small.
Result<std::vector<ReadRate>> measure_reads(const std::string& file);

/// Bytes per second of checksums, of what was just read from the file (of what memory holds, without one).
double measure_verifying(const std::string& file);

}  // namespace sluice::profiler
