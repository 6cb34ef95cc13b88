#include "sluice/engine/engine.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/process.h"
#include "src/cli/text.h"

namespace sluice::cli {

void verify(const VerifyOptions& options) {
  const auto model = unwrap(Model::open(options.model));
  Bytes total;
  for (const model::Stretch& stretch : model->graph().stretches) total += stretch.stored_size;
  {
    Progress progress(options.model, total.count());
    unwrap(model::verify_weights(model->file(), [&](Bytes done) {
      progress.update(done.count(), [&] { return fmt::format("{} of {}", format_bytes(done), format_bytes(total)); });
    }));
  }
  fmt::print("{}: {} in {} weights, {} stretches: all checksums agree\n", options.model, format_bytes(total), model->graph().weights.size(),
             model->graph().stretches.size());
}

}  // namespace sluice::cli
