// ONNX TensorProto files (.pb), the form in which ONNX keeps test data, read with protozero: linking protobuf would cost more memory than
// many a budget.
#pragma once

#include <span>
#include <string>

#include "src/cli/host_tensor.h"

namespace sluice::cli {

/// Raw and typed data, all types but strings, bfloat16 and the like. Untrusted: the declared shape must match the values that are there.
/// Throws Failure: kIo; kInvalidArgument (malformed); kUnsupported (type, data in another file).
HostTensor read_tensor_proto(const std::string& path);
HostTensor parse_tensor_proto(std::span<const std::byte> bytes, const std::string& path);

}  // namespace sluice::cli
