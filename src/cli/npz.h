// NumPy's .npz files: a ZIP archive of .npy arrays, stored or deflated, as numpy.savez and numpy.savez_compressed write them.
//
// The archive is untrusted: every offset and size is checked against the file before it is used, and nothing is allocated for a size that
// the archive only claims (an array inflates into a buffer of the size that its entry states, at most 2^40 bytes as everywhere).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/cli/host_tensor.h"

namespace sluice::cli {

bool is_npz_name(std::string_view path);

/// The names of the arrays, without `.npy`, in the archive's order. Throws Failure: kIo, kInvalidArgument.
std::vector<std::string> npz_members(const std::string& path);

/// One array. Throws Failure: kIo, kInvalidArgument (no such array, or damaged), kUnsupported (encrypted, another compression).
HostTensor read_npz(const std::string& path, const std::string& member);

}  // namespace sluice::cli
