#include "src/cli/dims.h"

#include "src/cli/failure.h"

namespace sluice::cli {

model::Extents parse_dims(const std::vector<std::string>& words) {
  model::Extents dims;
  for (const std::string& word : words) {
    const auto [name, extent] = split_dim(word);
    const auto number = parse_extent(extent);
    if (!number) raise(make_error(ErrorCode::kInvalidArgument, word, "--dim wants NAME=EXTENT, the extent a whole number"));
    if (!dims.try_emplace(name, *number).second) raise(make_error(ErrorCode::kInvalidArgument, word, "--dim binds a dimension twice"));
  }
  return dims;
}

std::string dims_text(const Model& model) {
  std::string text;
  for (const model::Dimension& dimension : model.file().dimensions())
    text += (text.empty() ? " at " : ", ") + dimension.name + "=" + std::to_string(dimension.extent);
  return text;
}

Json json_of_dims(const Model& model) {
  Json dims = Json::object();
  for (const model::Dimension& dimension : model.file().dimensions()) dims[dimension.name] = dimension.extent;
  return dims;
}

}  // namespace sluice::cli
