// A plan of a model, ready to run as often as wanted.
#pragma once

#include <memory>
#include <vector>

#include "sluice/core/storage_interrupts.h"
#include "sluice/engine/engine.h"
#include "sluice/plan/verify.h"
#include "tests/bench/must.h"

namespace sluice::bench {

/// On one thread, with drawn f32 inputs. The model outlives it.
class Planned {
 public:
  Planned(const Model& model, plan::Plan plan) : model_(model), plan_(std::move(plan)), threads_(must(make_thread_pool(1))) {
    must(plan::verify(plan_, model.graph(), {.file_size = model.file().file_size(), .model_hash = model.file().hash()}));
    load_cpus_ = processors_to_load_on(model.file().path(), plan_.threads);
    arena_ = must(Arena::reserve(plan_.arena_bytes));
    must(arena_.commit(plan_.arena_bytes));
    executor_ = must(executor::Executor::create(model.graph(), plan_, model.file().source(), arena_, *threads_, {.load_cpus = load_cpus_}));
    fill_inputs();
    run();
  }

  /// Milliseconds of wall time.
  double run() {
    must(executor_->run());
    return 1e-6 * static_cast<double>(executor_->stats().wall_ns);
  }

  std::vector<std::byte> outputs() const {
    std::vector<std::byte> outputs;
    for (std::size_t k = 0; k < model_.graph().outputs.size(); ++k) {
      const RowView view = executor_->output(k);
      outputs.insert(outputs.end(), view.data, view.data + view.rows * view.row_pitch);
    }
    return outputs;
  }

  const Model& model() const noexcept { return model_; }
  const plan::Plan& plan() const noexcept { return plan_; }
  const std::vector<int>& load_cpus() const noexcept { return load_cpus_; }
  Arena& arena() noexcept { return arena_; }
  ThreadPool& threads() noexcept { return *threads_; }
  Bytes bytes_read() const { return executor_->stats().bytes_read; }

 private:
  void fill_inputs() {
    unsigned state = 1;
    for (std::size_t k = 0; k < model_.graph().inputs.size(); ++k) {
      const RowView view = executor_->input(k);
      for (std::int64_t r = 0; view.dtype == DType::kF32 && r < view.rows; ++r)
        for (std::int64_t i = 0; i < view.pixels * view.channels; ++i) {
          state = state * 1664525u + 1013904223u;
          view.at<float>(r)[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
        }
    }
  }

  const Model& model_;
  const plan::Plan plan_;
  std::unique_ptr<ThreadPool> threads_;
  std::vector<int> load_cpus_;
  Arena arena_;
  std::unique_ptr<executor::Executor> executor_;
};

}  // namespace sluice::bench
