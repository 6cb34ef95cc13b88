#include "src/cli/open_model.h"

#include <array>
#include <cstring>

#include "src/cli/dims.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/key.h"
#include "src/cli/text.h"
#include "src/cli/words.h"
#include "src/engine/process_memory.h"

namespace sluice::cli {
namespace {

/// The file's first bytes; zeros where it is shorter.
template <std::size_t kBytes>
std::array<std::byte, kBytes> start_of(const std::string& path) {
  std::array<std::byte, kBytes> start{};
  const auto file = open_for_reading(path);
  if (file && size_of_file(*file, path) >= start.size()) read_exactly(*file, 0, start, path);
  return start;
}

bool begins_like_plan(const std::string& path) {
  constexpr std::string_view kStart = "SLUPLAN";
  const auto start = start_of<kStart.size()>(path);
  return std::memcmp(start.data(), kStart.data(), kStart.size()) == 0;
}

/// ONNX files are a protobuf message whose first field is the version of its own format, a small number; no model file begins so.
bool begins_like_onnx(const std::string& path) {
  const auto start = start_of<2>(path);
  return start[0] == std::byte{0x08} && std::to_integer<int>(start[1]) < 64;
}

}  // namespace

bool is_onnx(const std::string& path) { return path.ends_with(".onnx") || begins_like_onnx(path); }

void refuse_other_kinds(const std::string& path) {
  if (begins_like_plan(path))
    throw Failure(ErrorCode::kInvalidModel, fmt::format("{}: is a plan, and a model is wanted: sluice run M.sluice --plan {}", path, path));
  if (!is_onnx(path)) return;
  throw Failure(ErrorCode::kInvalidModel, fmt::format("{}: is an ONNX file; make a model file of it first: sluice convert {} -o {}", path,
                                                      path, name_of_converted(path)));
}

std::shared_ptr<const Model> open_model(const std::string& path, const std::vector<std::string>& dims, const std::string& key) {
  // Otherwise the code that reads the command line would be in memory together with that of opening: this was the peak of the smallest
  // budgets.
  engine::release_code_pages();
  bool key_was_asked = false;
  const auto asked_key = [&, at = key_at(key)](auto bytes) {
    key_was_asked = true;
    return at(bytes);
  };
  auto model = Model::open(path, parse_dims(dims), key.empty() ? model::KeyCallback() : asked_key);
  if (!model && model.error().code == ErrorCode::kInvalidModel) refuse_other_kinds(path);
  if (!model && model.error().code == ErrorCode::kWrongKey && key.empty())
    throw Failure(ErrorCode::kWrongKey, describe(model.error()) + ": --key FILE, fd:N or env:NAME says where it is");
  // A user who gives a key expects a file that was encrypted with it; a plain file is another one, perhaps put in its place.
  if (model && !key.empty() && !key_was_asked)
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("{}: is not encrypted, and a key was given: leave it out if this is meant", path));
  return unwrap(std::move(model));
}

VisitedGraphs visit_graphs(const Model& model, const std::function<void(const model::Graph&)>& visit) {
  const std::vector<model::Dimension>& dimensions = model.file().dimensions();
  VisitedGraphs graphs{.all = model::count_points(dimensions), .visited = 1};
  visit(model.graph());  // that of the last point, the bound
  const std::size_t distance = (graphs.all - 1) / model::kMaxPoints + 1;
  for (std::size_t point = 0; point + 1 < graphs.all; point += distance, ++graphs.visited) {
    const std::vector<std::int64_t> extents = model::extents_at(dimensions, point);
    model::Extents dims;
    for (std::size_t d = 0; d < dimensions.size(); ++d) dims[dimensions[d].name] = extents[d];
    const model::ModelFile file = unwrap(model.file().with_extents(dims));
    visit(file.graph());
  }
  return graphs;
}

}  // namespace sluice::cli
