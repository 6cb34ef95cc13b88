#include "src/cli/inputs.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "sluice/core/file.h"
#include "src/cli/failure.h"
#include "src/cli/npy.h"
#include "src/cli/npz.h"
#include "src/cli/tensor_proto.h"
#include "src/cli/text.h"
#include "src/cli/words.h"

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

/// The archive's array for a port: the one with its name, else the only one, else the one with its number.
HostTensor read_member(const std::string& path, const std::vector<model::Port>& ports, std::size_t index) {
  const std::vector<std::string> members = npz_members(path);
  const std::string numbered = fmt::format("arr_{}", index);
  for (const std::string& name : {ports[index].name, numbered})
    if (std::find(members.begin(), members.end(), name) != members.end()) return read_npz(path, name);
  if (members.size() != 1) {
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("{}: holds no array for '{}'; it has: {}", path, ports[index].name, fmt::join(members, ", ")));
  }
  return read_npz(path, members.front());
}

/// The array of a source.
HostTensor take_values(InputSource& source) {
  if (source.values) return std::move(*source.values);
  HostTensor tensor = make_host_tensor(source.file->dtype, source.file->shape);
  source.file->read(0, tensor.data);
  return tensor;
}

/// Few models were trained on values of 0 to 255, and a wrong result looks plausible: so the user is told.
void warn_of_raw_picture(const std::string& path, const model::Port& port) {
  fmt::print(
      stderr,
      "sluice: warning: {} goes into '{}' as values of 0 to 255: the model says nothing about pictures, and neither --preprocess nor "
      "--mean, --std, --scale does (--preprocess none: this is meant)\n",
      path, port.name);
}

HostTensor load_input(InputSource source, const model::Graph& graph, std::size_t index, const InputRequest& request) {
  const std::string& value = source.value;
  const model::Port& port = graph.inputs[index];
  const DType dtype = graph.dtype_of(port);
  if (const auto seed = random_seed(value)) return random_tensor(dtype, port.onnx_shape, *seed + index);
  if (is_image_name(value)) {
    const auto layout = image_layout(port.onnx_shape);
    const model::Preprocess rule = preprocessing(request.image, graph.preprocess, layout.value_or(ImageLayout{}));
    const ImageRequest wanted{port.onnx_shape, dtype, rule, fit_of(request.image.fit), request.memory_limit_bytes};
    HostTensor tensor = convert_values(load_image(value, wanted), dtype, value);
    if (request.warn_of_raw_pictures && !changes_values(rule) && !graph.preprocess.present && request.image.preset.empty() &&
        graph.tensor(port.tensor).dtype == DType::kF32)
      warn_of_raw_picture(value, port);
    return tensor;
  }
  HostTensor tensor = convert_values(take_values(source), dtype, value);
  if (!same_apart_from_ones(tensor.shape, port.onnx_shape)) {
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: has shape {}, the input '{}' wants {}", value, shape_text(tensor.shape),
                                                           port.name, shape_text(port.onnx_shape)));
  }
  tensor.shape = port.onnx_shape;
  return tensor;
}

bool ends_with(const std::string& text, std::string_view end) { return std::string_view(text).ends_with(end); }

std::vector<std::string> names_of(const std::vector<model::Port>& ports) {
  std::vector<std::string> names;
  for (const model::Port& port : ports) names.push_back(port.name);
  return names;
}

/// "'ids' [1, 7], 'mask' [1, 7]".
std::string list_of(const std::vector<model::Port>& ports) {
  std::string text;
  for (const model::Port& port : ports) text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", port.name, shape_text(port.onnx_shape));
  return text;
}

/// A FILE may hold an equals sign; NAME=FILE whose name no port has is a slip of the pen.
void check_name(const std::string& argument, const std::vector<model::Port>& ports, const char* option) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0 || argument.find('/') < equals || random_seed(argument)) return;
  if (const auto file = open_for_reading(argument)) return;
  const std::string name = argument.substr(0, equals);
  throw Failure(ErrorCode::kInvalidArgument, fmt::format("{} {}: the model has no '{}' (it has {}){}", option, argument, name,
                                                         list_of(ports), suggestion(name, names_of(ports))));
}

/// A .npz archive without a name becomes NAME=FILE for each array that has a port.
std::vector<std::string> spread_archives(const std::vector<std::string>& arguments, const std::vector<model::Port>& ports) {
  std::vector<std::string> spread;
  for (const std::string& argument : arguments) {
    const auto named = [&](const model::Port& port) { return argument.starts_with(port.name + "="); };
    if (!is_npz_name(argument) || std::any_of(ports.begin(), ports.end(), named)) {
      spread.push_back(argument);
      continue;
    }
    for (const std::string& member : npz_members(argument)) {
      for (std::size_t i = 0; i < ports.size(); ++i)
        if (member == ports[i].name || member == fmt::format("arr_{}", i)) spread.push_back(ports[i].name + "=" + argument);
    }
    if (spread.empty() || !spread.back().ends_with("=" + argument)) {
      throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: none of its arrays ({}) has the name of an input; the model has {}",
                                                             argument, fmt::join(npz_members(argument), ", "), list_of(ports)));
    }
  }
  return spread;
}

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
    if (named) continue;
    check_name(argument, ports, option);
    unnamed.push_back(argument);
  }
  std::size_t next = 0;
  for (const std::string& argument : unnamed) {
    while (next < ports.size() && taken[next]) ++next;
    if (next == ports.size()) {
      throw Failure(ErrorCode::kInvalidArgument,
                    fmt::format("{} {}: the model has no input or output left for it; it has only {}", option, argument, list_of(ports)));
    }
    taken[next] = true;
    assigned.push_back({next, argument});
  }
  return assigned;
}

std::vector<InputSource> open_inputs(const std::vector<std::string>& arguments, const std::vector<model::Port>& ports) {
  std::vector<InputSource> sources(ports.size());
  for (const PortArgument& argument : assign_ports(spread_archives(arguments, ports), ports, "--input")) {
    InputSource& source = sources[argument.port];
    source.value = argument.value;
    if (random_seed(source.value) || is_image_name(source.value)) continue;
    if (ends_with(source.value, ".npy")) {
      source.file = open_npy(source.value);
    } else {
      source.values = is_npz_name(source.value) ? read_member(source.value, ports, argument.port) : read_tensor_file(source.value);
    }
  }
  return sources;
}

std::vector<std::optional<Shape>> shapes_of_arrays(const std::vector<InputSource>& sources) {
  std::vector<std::optional<Shape>> shapes;
  for (const InputSource& source : sources)
    shapes.push_back(source.values ? std::optional(source.values->shape) : source.file ? std::optional(source.file->shape) : std::nullopt);
  return shapes;
}

std::vector<HostTensor> load_inputs(const model::Graph& graph, std::vector<InputSource> sources, const InputRequest& request) {
  const auto is_picture = [](const InputSource& source) { return is_image_name(source.value); };
  if (says_anything(request.image) && std::none_of(sources.begin(), sources.end(), is_picture)) {
    raise(make_error(ErrorCode::kInvalidArgument, "--preprocess, --fit, --mean, --std, --scale, --bgr",
                     "say how a picture becomes an input, and no input is a picture"));
  }
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < sources.size(); ++i) tensors.push_back(load_input(std::move(sources[i]), graph, i, request));
  return tensors;
}

HostTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  const bool is_float = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 || dtype == DType::kBF16;
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
  if (is_npz_name(path)) {
    const std::vector<std::string> members = npz_members(path);
    if (members.size() == 1) return read_npz(path, members.front());
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: holds {} arrays, and one is wanted", path, members.size()));
  }
  if (ends_with(path, ".pb")) return read_tensor_proto(path);
  if (path.empty()) raise(make_error(ErrorCode::kInvalidArgument, "NAME=", "wants a file or random[:SEED] behind it"));
  raise(make_error(ErrorCode::kInvalidArgument, path, "is none of .png .jpg .jpeg .npy .npz .pb and random[:SEED]"));
}

}  // namespace sluice::cli
