// What `--input` and `--expect` name: tensors for the ports of a model, from files or from a seed.
#pragma once

#include <string>
#include <vector>

#include "sluice/model/graph.h"
#include "src/cli/host_tensor.h"
#include "src/cli/image.h"
#include "src/cli/pieces.h"

namespace sluice::cli {

/// One argument given to its port. An argument is FILE or NAME=FILE; those without a name go to the ports not named, in order.
struct PortArgument {
  std::size_t port = 0;
  std::string value;
};

/// Throws Failure (kInvalidArgument): too many arguments, one port twice, a name that no port has. `option` is what the user typed.
std::vector<PortArgument> assign_ports(const std::vector<std::string>& arguments, const std::vector<model::Port>& ports,
                                       const char* option);

struct InputRequest {
  std::vector<std::string> arguments;  // pictures, .npy, .pb, random[:SEED]; ports without one get random
  ImageOptions image;
  std::uint64_t memory_limit_bytes = ~std::uint64_t{0};  // what decoding a picture may take
};

/// One tensor for each input of `graph`, of its type and ONNX shape. Throws Failure.
std::vector<HostTensor> load_inputs(const model::Graph& graph, const InputRequest& request);

/// Uniform values from a seed, the same on every machine: floats in [-1, 1), integers in [0, 10), booleans.
HostTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed);

/// A .npy or .pb file. Throws Failure. Of an opened .npy file the values are read as they are asked for.
HostTensor read_tensor_file(const std::string& path);
Pieces open_tensor_file(const std::string& path);

}  // namespace sluice::cli
