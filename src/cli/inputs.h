// Reads what `--input` and `--expect` name: tensors for the ports of a model, from files or from a seed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/model/graph.h"
#include "src/cli/host_tensor.h"
#include "src/cli/image.h"
#include "src/cli/pieces.h"

namespace sluice::cli {

/// One argument given to its port. An argument is FILE or NAME=FILE; those without a name go to the ports not named, in order. A .npz
/// archive without a name gives each of its arrays to the port of that name (arr_0, arr_1, ...: to the ports in order).
struct PortArgument {
  std::size_t port = 0;
  std::string value;
};

/// Throws Failure (kInvalidArgument): too many arguments, one port twice, a name that no port has. `option` is what the user typed.
std::vector<PortArgument> assign_ports(const std::vector<std::string>& arguments, const std::vector<model::Port>& ports,
                                       const char* option);

/// What an input is made of. An array is opened once: the values of a .npy file are read later, those of other files are kept here.
struct InputSource {
  std::string value = "random";  // a picture, a .npy, .npz or .pb file, or random[:SEED]
  std::optional<Pieces> file;
  std::optional<HostTensor> values;
};

/// By input port; a port without an argument gets random. Throws Failure.
std::vector<InputSource> open_inputs(const std::vector<std::string>& arguments, const std::vector<model::Port>& ports);

/// The shapes of the arrays, by input port; nothing for pictures and random numbers.
std::vector<std::optional<Shape>> shapes_of_arrays(const std::vector<InputSource>& sources);

struct InputRequest {
  ImageOptions image;
  std::uint64_t memory_limit_bytes = ~std::uint64_t{0};  // what decoding a picture may take
  bool warn_of_raw_pictures = true;
};

/// One tensor for each input of `graph`, of its type and ONNX shape. Warns on stderr if a picture is used as values of 0 to 255 although
/// the user did not ask for it. Throws Failure.
std::vector<HostTensor> load_inputs(const model::Graph& graph, std::vector<InputSource> sources, const InputRequest& request);

/// Uniform values from a seed, the same on every machine: floats in [-1, 1), integers in [0, 10), booleans.
HostTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed);

/// A .npy or .pb file, or a .npz archive of one array. Throws Failure. Of an opened .npy file the values are read as they are asked for.
HostTensor read_tensor_file(const std::string& path);
Pieces open_tensor_file(const std::string& path);

}  // namespace sluice::cli
