#include "sluice/engine/engine.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/text.h"

namespace sluice::cli {
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
  const VisitedGraphs graphs = visit_graphs(*model, [](const model::Graph&) {});  // opening them checks them
  fmt::print("{}: {} in {} weights, {} stretches: all {} agree{}\n", options.model, format_bytes(total), model->graph().weights.size(),
             model->graph().stretches.size(), model->file().key() == nullptr ? "checksums" : "tags",
             graphs.all == 1                ? ""
             : graphs.visited == graphs.all ? fmt::format(", all {} graphs are sound", graphs.all)
                                            : fmt::format(", {} of {} graphs are sound", graphs.visited, graphs.all));
}

}  // namespace sluice::cli
