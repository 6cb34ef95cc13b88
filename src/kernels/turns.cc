#include "sluice/kernels/turns.h"

namespace sluice::kernels {
namespace {

struct Turns {
  const std::atomic<bool>* stop = nullptr;
  std::int64_t left = 0;
};
thread_local Turns turns;

}  // namespace

TurnsScope::TurnsScope(const std::atomic<bool>& stop, std::int64_t most) noexcept { turns = {&stop, most}; }
TurnsScope::~TurnsScope() { turns = {}; }

const std::atomic<bool>* stop_of_run() noexcept { return turns.stop; }

const char* take_counted_turn() noexcept {
  return turns.stop != nullptr && turns.stop->load(std::memory_order_relaxed) ? kRunEnded : nullptr;
}

const char* take_turn() noexcept {
  if (turns.stop == nullptr) return nullptr;
  if (turns.left-- <= 0) return "it takes more turns than a run may (--max-turns, SessionOptions::max_turns)";
  return take_counted_turn();
}

}  // namespace sluice::kernels
