#include "src/cli/convert/data_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "src/cli/failure.h"
#include "src/cli/inputs.h"
#include "src/cli/npz.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

bool is_array_name(const std::string& path) { return path.ends_with(".npy") || path.ends_with(".pb") || is_npz_name(path); }

/// Pictures and arrays of a folder, in the order of their names, or one of them.
std::vector<std::string> files_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  if (fs::is_regular_file(folder, error)) return {folder};
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const std::string path = entry->path().string(); is_image_name(path) || is_array_name(path)) files.push_back(path);
  if (error) raise(make_io_error(folder, "the folder of data cannot be read", error.value()));
  if (files.empty()) raise(make_error(ErrorCode::kInvalidArgument, folder, "holds no data: no .png, .jpg, .jpeg, .npy, .npz or .pb file"));
  std::sort(files.begin(), files.end());
  return files;
}

/// One item: a picture or an array for a model of one input, an archive with an array for each input.
std::vector<importer::InputValue> load_item(const ImageOptions& image, const std::string& path, const model::Graph& graph, bool first) {
  InputRequest request;
  request.warn_of_raw_pictures = first;
  if (is_image_name(path)) request.image = image;
  if (graph.inputs.size() > 1 && !is_npz_name(path)) {
    raise(make_error(ErrorCode::kInvalidArgument, path,
                     "the model has several inputs: an item of data is a .npz file with an array for each", graph.inputs.size(), 1));
  }
  std::vector<importer::InputValue> values;
  for (HostTensor& tensor : load_inputs(graph, open_inputs({path}, graph.inputs), request))
    values.push_back({tensor.dtype, tensor.shape, std::move(tensor.data)});
  return values;
}

}  // namespace

quantiser::Data data_in(const std::string& folder, const ImageOptions& image) {
  const std::vector<std::string> files = files_in(folder);
  // Items are asked for again in each pass over the data.
  return {files.size(), [files, image, first = true](const model::Graph& graph, std::size_t item) mutable {
            return load_item(image, files[item], graph, std::exchange(first, false));
          }};
}

Json json_of_decibels(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
std::string text_of_decibels(double value) { return std::isfinite(value) ? fmt::format("{:.1f}", value) : "equal"; }

double share_of(std::int64_t part, std::int64_t all) { return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 1.0; }

}  // namespace sluice::cli
