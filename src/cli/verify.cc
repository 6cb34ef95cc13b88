#include "sluice/engine/engine.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

struct CheckedGraphs {
  std::size_t all = 0;  // choices of extents
  std::size_t checked = 0;
};

/// Opens the graphs of choices of extents: all, or, where most are made when they are opened, kMaxPoints at even distances. Throws Failure
/// naming the first that is not sound.
CheckedGraphs check_graphs(const Model& model) {
  const std::vector<model::Dimension>& dimensions = model.file().dimensions();
  CheckedGraphs graphs{.all = model::count_points(dimensions), .checked = 1};
  const std::size_t distance = (graphs.all - 1) / model::kMaxPoints + 1;
  for (std::size_t point = 0; point + 1 < graphs.all; point += distance, ++graphs.checked) {
    const std::vector<std::int64_t> extents = model::extents_at(dimensions, point);
    model::Extents dims;
    for (std::size_t d = 0; d < dimensions.size(); ++d) dims[dimensions[d].name] = extents[d];
    unwrap(model.file().with_extents(dims));
  }
  return graphs;
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
  const CheckedGraphs graphs = check_graphs(*model);
  fmt::print("{}: {} in {} weights, {} stretches: all {} agree{}\n", options.model, format_bytes(total), model->graph().weights.size(),
             model->graph().stretches.size(), model->file().key() == nullptr ? "checksums" : "tags",
             graphs.all == 1                ? ""
             : graphs.checked == graphs.all ? fmt::format(", all {} graphs are sound", graphs.all)
                                            : fmt::format(", {} of {} graphs are sound", graphs.checked, graphs.all));
}

}  // namespace sluice::cli
