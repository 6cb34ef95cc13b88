#include "src/executor/step_reader.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>
#include <utility>

#include "sluice/core/hash.h"
#include "src/executor/clock.h"

namespace sluice::executor {
namespace {

constexpr std::uint64_t kBlock = 4096;             // of plans
constexpr std::int64_t kGlanceNs = 50'000'000;     // how often a wait looks whether it was called off
constexpr std::int64_t kPatienceNs = 250'000'000;  // for reads that a failed step leaves

}  // namespace

StepReader::~StepReader() {
  // Nobody may have the arena while the system still writes to it, however long that takes.
  while (in_flight_ > 0) wait_for_one(kGlanceNs);
}

Status StepReader::start(std::span<const int> cpus) noexcept {
  SLUICE_ASSIGN_OR_RETURN(reads_, model::make_reads(source_, options_.method, 1, cpus, "reader"));
  return {};
}

bool StepReader::wait_for_one(std::int64_t patience_ns) noexcept {
  const model::ReadQueue::Ended ended = reads_->wait(std::min(patience_ns, kGlanceNs));
  if (ended.slot < 0) return false;
  --in_flight_;
  slots_[static_cast<std::size_t>(ended.slot)].state = ended.status ? State::kArrived : State::kEmpty;
  if (!ended.status && status_) status_ = ended.status;
  return true;
}

std::int64_t StepReader::timeout_ns() const noexcept {
  return options_.timeout_ms > 0 ? options_.timeout_ms * 1'000'000 : std::numeric_limits<std::int64_t>::max();
}

template <class CalledOff>
Status StepReader::wait_for_leftovers(const CalledOff& called_off) noexcept {
  for (std::int64_t waited = 0; in_flight_ > 0;) {
    if (wait_for_one(kGlanceNs)) continue;
    waited += kGlanceNs;
    if (called_off()) return fail(ErrorCode::kCancelled, graph_.name, "the run was called off");
    if (waited > timeout_ns()) return fail(make_io_error(graph_.name, "reads of an earlier run have not ended", ETIMEDOUT));
  }
  status_ = {};
  return {};
}

Status StepReader::ready() noexcept {
  return wait_for_leftovers([this] { return cancelled_.load(std::memory_order_relaxed); });
}

Status StepReader::drain(const Executor* next) noexcept {
  return wait_for_leftovers([next] { return next != nullptr && next->cancelled(); });
}

void StepReader::begin(std::span<const WeightId> weights, std::span<const kernels::WeightOperand> operands,
                       std::span<std::byte> window) noexcept {
  weights_ = weights;
  if (in_flight_ > 0) status_ = fail(make_io_error(graph_.name, "reads of an earlier step have not ended", ETIMEDOUT));
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (operands[i].data == nullptr) least = std::max(least, model::least_piece(graph_, graph_.weight(weights[i])).count());
  const std::uint64_t half = window.size() / 2 / kBlock * kBlock;
  slot_count_ = half >= least ? 2 : 1;
  slot_bytes_ = slot_count_ == 2 ? half : window.size();
  current_ = 0;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    slots_[s] = {};
    slots_[s].at = window.data() + s * slot_bytes_;
  }
}

Status StepReader::end() noexcept {
  // What was expected and is not wanted any more may be slow, and is waited for: its bytes are other steps' next.
  for (std::int64_t waited = 0; in_flight_ > 0;) {
    if (wait_for_one(kGlanceNs)) continue;
    waited += kGlanceNs;
    const bool called_off = !status_ || cancelled_.load(std::memory_order_relaxed);
    if (waited >= (called_off ? kPatienceNs : timeout_ns())) break;
  }
  if (in_flight_ > 0 && status_) status_ = fail(make_io_error(graph_.name, "a read of the model file does not end", ETIMEDOUT));
  weights_ = {};
  if (status_) status_ = source_.check_unchanged();
  return std::exchange(status_, Status());
}

/// The piece of `weight` from a panel on: whole stretches, as many as fit.
bool StepReader::choose(std::size_t weight, std::int64_t first_panel, Slot& slot) const noexcept {
  const model::Weight& w = graph_.weight(weights_[weight]);
  const auto stretches = graph_.stretches_of(w);
  const bool plain = w.panel_layout.layout == model::WeightLayout::kPlain;
  std::int64_t panel = 0;
  std::size_t first = 0;
  const auto panels_in = [&](std::size_t s) { return static_cast<std::int64_t>(stretches[s].raw_size.count() / w.panel_bytes.count()); };
  if (!plain)
    for (; first < stretches.size() && panel < first_panel; ++first) panel += panels_in(first);
  if (first == stretches.size() || panel != first_panel) return false;
  const std::uint64_t begin = align_down(stretches[first].offset.count(), kBlock);
  std::size_t end = first;
  std::uint64_t region = 0;
  for (; end < stretches.size(); ++end) {
    const std::uint64_t next = align_up((stretches[end].offset + stretches[end].stored_size).count(), kBlock) - begin;
    if (next > slot_bytes_) break;
    region = next;
    if (!plain) panel += panels_in(end);
  }
  if (end == first || (plain && end < stretches.size())) return false;
  slot.weight = weight;
  slot.panels = plain ? PanelRange{0, w.panels} : PanelRange{first_panel, panel};
  slot.first_stretch = w.first_stretch + static_cast<std::uint32_t>(first);
  slot.stretch_count = static_cast<std::uint32_t>(end - first);
  slot.range = {Bytes(begin), Bytes(region)};
  return true;
}

Status StepReader::start_read(std::size_t index, std::size_t weight, std::int64_t first_panel) noexcept {
  Slot& slot = slots_[index];
  if (!choose(weight, first_panel, slot))
    return fail(ErrorCode::kInvalidPlan, graph_.weight(weights_[weight]).name, "the plan leaves no room for a piece of the weight");
  slot.due_ns = 0;
  if (options_.bytes_per_second_limit > 0) {
    const double seconds = static_cast<double>(slot.range.size.count()) / options_.bytes_per_second_limit;
    device_free_ns_ = std::max(device_free_ns_, wall_now_ns()) + static_cast<std::int64_t>(seconds * 1e9);
    slot.due_ns = device_free_ns_;
  }
  slot.state = State::kReading;
  ++in_flight_;
  reads_->start(static_cast<int>(index), slot.range, slot.at);
  return {};
}

/// Waits for a slot's read and verifies what it brought.
Status StepReader::await(std::size_t index) noexcept {
  Slot& slot = slots_[index];
  for (std::int64_t waited = 0; slot.state == State::kReading;) {
    if (wait_for_one(kGlanceNs)) continue;
    waited += kGlanceNs;
    if (cancelled_.load(std::memory_order_relaxed)) return fail(ErrorCode::kCancelled, graph_.name, "the run was called off");
    if (options_.timeout_ms > 0 && waited / 1'000'000 >= options_.timeout_ms)
      return fail(make_io_error(graph_.name, "a read of the model file does not end", ETIMEDOUT));
  }
  if (slot.state != State::kArrived) return status_;  // it is ready, or could not be read
  bytes_read_ += slot.range.size;
  for (std::int64_t left = slot.due_ns - wall_now_ns(); left > 0; left = slot.due_ns - wall_now_ns()) {
    if (cancelled_.load(std::memory_order_relaxed)) break;
    const timespec rest{0, static_cast<long>(std::min(left, kGlanceNs))};
    nanosleep(&rest, nullptr);
  }
  SLUICE_RETURN_IF_ERROR(check(slot));
  slot.state = State::kReady;
  return {};
}

Status StepReader::check(const Slot& slot) const noexcept {
  for (const model::Stretch& stretch : std::span(graph_.stretches).subspan(slot.first_stretch, slot.stretch_count)) {
    const std::byte* bytes = slot.at + (stretch.offset - slot.range.offset).count();
    if (xxh3_64({bytes, stretch.stored_size.count()}) != stretch.xxh3)
      return fail(make_error(ErrorCode::kChecksumMismatch, graph_.name,
                             "the weights at this offset of the model file are not those that were written", stretch.offset.count(),
                             stretch.offset.count()));
  }
  return {};
}

kernels::WeightPiece StepReader::take(std::size_t weight, std::int64_t first_panel) noexcept {
  if (!status_ || weight >= weights_.size()) return {};
  std::size_t found = slot_count_;
  for (std::size_t s = 0; s < slot_count_; ++s)
    if (holds(slots_[s], weight, first_panel)) found = s;
  const bool expected = found < slot_count_;
  if (!expected) found = slot_count_ == 2 ? 1 - current_ : 0;
  const auto bring = [&]() -> Status {
    if (!expected) {
      SLUICE_RETURN_IF_ERROR(await(found));  // a wrong guess is under way there
      SLUICE_RETURN_IF_ERROR(start_read(found, weight, first_panel));
    }
    return await(found);
  };
  const std::int64_t start = wall_now_ns();
  status_ = bring();
  busy_ns_ += wall_now_ns() - start;
  if (!status_) return {};
  current_ = found;
  const Slot& slot = slots_[found];
  const model::Weight& w = graph_.weight(weights_[weight]);
  return {slot.at + (model::panel_range(w, slot.panels).offset - slot.range.offset).count(), slot.panels};
}

void StepReader::expect(std::size_t weight, std::int64_t first_panel) noexcept {
  if (!status_ || slot_count_ < 2 || weight >= weights_.size()) return;
  Slot& other = slots_[1 - current_];
  if (other.state == State::kReading || holds(other, weight, first_panel) || holds(slots_[current_], weight, first_panel)) return;
  status_ = start_read(1 - current_, weight, first_panel);
}

std::int64_t StepReader::take_busy_ns() noexcept { return std::exchange(busy_ns_, 0); }

Bytes StepReader::take_bytes_read() noexcept { return std::exchange(bytes_read_, Bytes()); }

}  // namespace sluice::executor
