#include "src/importer/dims.h"

#include <algorithm>
#include <charconv>

#include "src/importer/refusal.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;  // sums of them do not overflow

[[noreturn]] void refuse_dim(const std::string& name, const std::string& why) {
  throw Refusal(ErrorCode::kInvalidArgument, "--dim " + name + ": " + why);
}

/// A term of the sum that `name` is.
std::int64_t term_of(const std::map<std::string, std::int64_t>& dims, const std::string& name, const std::string& term) {
  if (const auto stated = dims.find(term); stated != dims.end()) return stated->second;
  std::int64_t number = 0;
  const char* const end = term.data() + term.size();
  const auto [stop, error] = std::from_chars(term.data(), end, number);
  if (error != std::errc{} || stop != end || number < 0 || number > kMaxExtent)
    refuse_dim(name, "`" + term + "` is neither an extent nor a dimension that another --dim states");
  return number;
}

}  // namespace

std::vector<model::Dimension> open_dimensions(const ConvertOptions& options) {
  std::vector<model::Dimension> dimensions;
  for (const auto& [name, extents] : options.open_dims) {
    model::Dimension dimension{name, extents, 0};
    std::sort(dimension.extents.begin(), dimension.extents.end());
    dimension.extents.erase(std::unique(dimension.extents.begin(), dimension.extents.end()), dimension.extents.end());
    if (name.empty() || extents.empty()) refuse_dim(name, "it has no extents");
    if (dimension.extents.front() < 0 || dimension.bound() > kMaxExtent) refuse_dim(name, "an extent is negative or far too large");
    if (options.dims.contains(name)) refuse_dim(name, "it is stated twice");
    dimension.extent = dimension.bound();
    dimensions.push_back(std::move(dimension));
  }
  std::size_t listed = 0;
  for (const model::Dimension& dimension : dimensions) listed += dimension.extents.size();
  if (dimensions.size() > model::kMaxDimensions || listed > model::kMaxPoints || model::count_points(dimensions) > model::kMaxPointsByAxis)
    throw Refusal(ErrorCode::kInvalidArgument, "--dim: a model file takes " + std::to_string(model::kMaxPoints) + " extents of " +
                                                   std::to_string(model::kMaxDimensions) +
                                                   " dimensions, and 2^40 choices of them, at most; state fewer, such as 16..512:16");
  return dimensions;
}

std::map<std::string, std::int64_t> dims_at(const ConvertOptions& options, const std::vector<model::Dimension>& dimensions,
                                            std::size_t point) {
  std::map<std::string, std::int64_t> dims = options.dims;
  const std::vector<std::int64_t> extents = model::extents_at(dimensions, point);
  for (std::size_t d = 0; d < dimensions.size(); ++d) dims[dimensions[d].name] = extents[d];
  const std::map<std::string, std::int64_t> stated = dims;
  for (const auto& [name, sum] : options.dim_sums) {
    if (stated.contains(name)) refuse_dim(name, "it is stated twice");
    std::int64_t extent = 0;
    for (const std::string& term : sum) extent += std::min(term_of(stated, name, term), kMaxExtent);
    dims[name] = extent;
  }
  return dims;
}

std::string point_text(const std::vector<model::Dimension>& dimensions, std::size_t point) {
  std::string text;
  const std::vector<std::int64_t> extents = model::extents_at(dimensions, point);
  for (std::size_t d = 0; d < dimensions.size(); ++d) text += (d == 0 ? "" : ", ") + dimensions[d].name + "=" + std::to_string(extents[d]);
  return text;
}

}  // namespace sluice::importer
