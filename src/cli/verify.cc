#include "sluice/engine/engine.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// Opens the graph of every choice of extents; how many there are. Throws Failure naming the first that is not sound.
std::size_t check_graphs(const Model& model) {
  const std::vector<model::Dimension>& dimensions = model.file().dimensions();
  const std::size_t points = model::count_points(dimensions);
  for (std::size_t point = 0; point + 1 < points; ++point) {
    const std::vector<std::int64_t> extents = model::extents_at(dimensions, point);
    model::Extents dims;
    for (std::size_t d = 0; d < dimensions.size(); ++d) dims[dimensions[d].name] = extents[d];
    unwrap(model.file().with_extents(dims));
  }
  return points;
}

}  // namespace

void verify(const VerifyOptions& options) {
  const auto model = open_model(options.model, {}, options.key);
  Bytes total;
  for (const model::Stretch& stretch : model->graph().stretches) total += stretch.stored_size;
  {
    Progress progress(options.model, total.count());
    unwrap(model::verify_weights(model->file(), [&](Bytes done) {
      progress.update(done.count(), [&] { return fmt::format("{} of {}", format_bytes(done), format_bytes(total)); });
    }));
  }
  const std::size_t graphs = check_graphs(*model);
  fmt::print("{}: {} in {} weights, {} stretches: all {} agree{}\n", options.model, format_bytes(total), model->graph().weights.size(),
             model->graph().stretches.size(), model->file().key() == nullptr ? "checksums" : "tags",
             graphs == 1 ? "" : fmt::format(", all {} graphs are sound", graphs));
}

}  // namespace sluice::cli
