#include "sluice/kernels/turns.h"

namespace sluice::kernels {
namespace {

struct Turns {
  const std::atomic<bool>* stop = nullptr;
  std::int64_t left = 0;
};
thread_local Turns turns;

}  // namespace

TurnsScope::TurnsScope(const std::atomic<bool>& stop, std::int64_t most) noexcept : outer_stop_(turns.stop), outer_left_(turns.left) {
  turns = {&stop, most};
}
TurnsScope::~TurnsScope() { turns = {outer_stop_, outer_left_}; }

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
