#include "src/cli/inputs.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "src/cli/failure.h"
#include "src/cli/npy.h"
#include "src/cli/tensor_proto.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// SplitMix64: the next of a sequence of well-mixed numbers.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The seed of `random` or `random:SEED`; nothing when the text is neither.
std::optional<std::uint64_t> random_seed(std::string_view text) {
  constexpr std::string_view kWord = "random";
  if (!text.starts_with(kWord)) return std::nullopt;
  text.remove_prefix(kWord.size());
  std::uint64_t seed = 0;
  if (text.empty()) return seed;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), seed);
  if (text.front() != ':' || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

HostTensor load_input(const std::string& value, const model::Graph& graph, std::size_t index, const InputRequest& request) {
  const model::Port& port = graph.inputs[index];
  const DType dtype = graph.tensor(port.tensor).dtype;
  if (const auto seed = random_seed(value)) return random_tensor(dtype, port.onnx_shape, *seed + index);
  if (is_image_name(value)) {
    const auto layout = image_layout(port.onnx_shape);
    const model::Preprocess rule = preprocessing(request.image, graph.preprocess, layout.value_or(ImageLayout{}));
    return convert_values(load_image(value, port.onnx_shape, dtype, rule, request.memory_limit_bytes), dtype, value);
  }
  HostTensor tensor = convert_values(read_tensor_file(value), dtype, value);
  if (!same_apart_from_ones(tensor.shape, port.onnx_shape)) {
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: has shape {}, the input '{}' wants {}", value, shape_text(tensor.shape),
                                                           port.name, shape_text(port.onnx_shape)));
  }
  tensor.shape = port.onnx_shape;
  return tensor;
}

bool ends_with(const std::string& text, std::string_view end) { return std::string_view(text).ends_with(end); }

}  // namespace

std::vector<PortArgument> assign_ports(const std::vector<std::string>& arguments, const std::vector<model::Port>& ports,
                                       const char* option) {
  std::vector<PortArgument> assigned;
  std::vector<bool> taken(ports.size(), false);
  std::vector<std::string> unnamed;
  for (const std::string& argument : arguments) {
    bool named = false;
    for (std::size_t port = 0; port < ports.size() && !named; ++port) {
      named =
          argument.size() > ports[port].name.size() && argument.starts_with(ports[port].name) && argument[ports[port].name.size()] == '=';
      if (!named) continue;
      if (taken[port]) throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: '{}' is given twice", option, ports[port].name));
      taken[port] = true;
      assigned.push_back({port, argument.substr(ports[port].name.size() + 1)});
    }
    if (!named) unnamed.push_back(argument);
  }
  std::size_t next = 0;
  for (const std::string& argument : unnamed) {
    while (next < ports.size() && taken[next]) ++next;
    if (next == ports.size()) {
      throw Failure(ErrorCode::kInvalidArgument,
                    fmt::format("{} {}: the model has no port left for it ({} in all)", option, argument, ports.size()));
    }
    taken[next] = true;
    assigned.push_back({next, argument});
  }
  return assigned;
}

std::vector<HostTensor> load_inputs(const model::Graph& graph, const InputRequest& request) {
  std::vector<std::string> values(graph.inputs.size(), "random");
  for (const PortArgument& argument : assign_ports(request.arguments, graph.inputs, "--input")) values[argument.port] = argument.value;
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < values.size(); ++i) tensors.push_back(load_input(values[i], graph, i, request));
  return tensors;
}

HostTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  const bool is_float = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16;
  // 24 random bits are exact in f32, so that each type gets the same values where it can hold them.
  HostTensor tensor = make_host_tensor(is_float ? DType::kF32 : DType::kI64, shape);
  std::uint64_t state = seed;
  const auto count = static_cast<std::size_t>(shape.element_count());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = next_random(state);
    if (is_float) {
      tensor.as<float>()[i] = static_cast<float>(static_cast<std::int64_t>(random >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
    } else {
      tensor.as<std::int64_t>()[i] = static_cast<std::int64_t>(random % (dtype == DType::kBool ? 2 : 10));
    }
  }
  return convert_values(std::move(tensor), dtype, "random");
}

Pieces open_tensor_file(const std::string& path) { return ends_with(path, ".npy") ? open_npy(path) : pieces_of(read_tensor_file(path)); }

HostTensor read_tensor_file(const std::string& path) {
  if (ends_with(path, ".npy")) return read_npy(path);
  if (ends_with(path, ".pb")) return read_tensor_proto(path);
  raise(make_error(ErrorCode::kInvalidArgument, path, "is none of .png .jpg .jpeg .npy .pb and random[:SEED]"));
}

}  // namespace sluice::cli
