#include "src/executor/step_reader.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/executor/clock.h"
#include "src/plan/built_needs.h"

namespace sluice::executor {
namespace {

/// A slot is one read, and there is one at a time.
ReadOptions whole_slots(ReadOptions options) noexcept {
  options.size = kUnlimitedBytes;
  options.in_flight = 1;
  return options;
}

}  // namespace

StepReader::StepReader(const model::Graph& graph, model::WeightSource& source, const ReadOptions& options, MakeDecoders make,
                       const std::atomic<bool>& cancelled) noexcept
    : graph_(graph),
      source_(source),
      options_(whole_slots(options)),
      make_decoders_(make),
      cancelled_(cancelled),
      engine_(graph, options_) {}

StepReader::~StepReader() {
  // The arena must not be used while the system still writes to it, however long that takes.
  engine_.settle(kForever);
}

Status StepReader::start(std::span<const int> cpus, const model::FileKey* key) noexcept {
  SLUICE_ASSIGN_OR_RETURN(Decoders decoders, make_decoders_(graph_, key));
  SLUICE_ASSIGN_OR_RETURN(auto reads, model::make_reads(source_, options_.method, options_.in_flight, cpus, "reader"));
  engine_.open(std::move(reads), std::move(decoders));
  return {};
}

Status StepReader::ready() noexcept {
  return engine_.clear([this] { return look(); });
}

void StepReader::begin(std::span<const WeightId> weights, std::span<const kernels::WeightOperand> operands,
                       std::span<std::byte> window) noexcept {
  weights_ = weights;
  patience_ns_ = engine_.in_flight() > 0 ? 0 : kPatienceNs;  // an earlier step has waited for them already
  if (engine_.in_flight() > 0)
    static_cast<void>(engine_.give_up(fail(make_io_error(graph_.name, "reads of an earlier step have not ended", ETIMEDOUT))));
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (operands[i].data == nullptr) least = std::max(least, model::least_piece(graph_, graph_.weight(weights[i])).count());
  const std::uint64_t half = window.size() / 2 / kPlanBlock * kPlanBlock;
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
  while (engine_.status() && engine_.in_flight() > 0) static_cast<void>(engine_.await_read([this] { return look(); }));
  weights_ = {};
  const Status status = engine_.status() ? source_.check_unchanged() : engine_.status();
  if (engine_.settle(patience_ns_)) engine_.forget();
  return status;
}

/// The piece of `weight` from a panel on: whole stretches, as many as fit.
std::optional<ReadRequest> StepReader::choose(std::size_t weight, std::int64_t first_panel, Slot& slot) const noexcept {
  const model::Weight& w = graph_.weight(weights_[weight]);
  const auto stretches = graph_.stretches_of(w);
  const bool plain = w.panel_layout.layout == model::WeightLayout::kPlain;
  std::int64_t panel = 0;
  std::size_t first = 0;
  const auto panels_in = [&](std::size_t s) { return static_cast<std::int64_t>(stretches[s].raw_size.count() / w.panel_bytes.count()); };
  if (!plain)
    for (; first < stretches.size() && panel < first_panel; ++first) panel += panels_in(first);
  if (first == stretches.size() || panel != first_panel) return {};
  const Bytes begin(align_down(stretches[first].offset.count(), kPlanBlock));
  model::FileRange range{begin, {}};
  Bytes raw;
  bool in_place = true;
  std::size_t end = first;
  for (; end < stretches.size(); ++end) {
    const model::Stretch& next = stretches[end];
    const model::FileRange longer{begin, Bytes(align_up((next.offset + next.stored_size).count(), kPlanBlock)) - begin};
    in_place = in_place && next.raw_size.count() == next.stored_size.count();
    raw += next.raw_size;
    if (region_bytes(longer, raw, in_place).count() > slot_bytes_) break;
    range = longer;
    if (!plain) panel += panels_in(end);
  }
  if (end == first || (plain && end < stretches.size())) return {};
  slot.weight = weight;
  slot.panels = plain ? PanelRange{0, w.panels} : PanelRange{first_panel, panel};
  return lay_out(graph_, range, w.first_stretch + static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first), slot.at);
}

Status StepReader::start_read(Slot& slot, std::size_t weight, std::int64_t first_panel) noexcept {
  const std::optional<ReadRequest> request = choose(weight, first_panel, slot);
  slot.used = request.has_value();
  if (!request)
    return fail(ErrorCode::kInvalidPlan, graph_.weight(weights_[weight]).name, "the plan leaves no room for a piece of the weight");
  engine_.push(*request);
  slot.turn = engine_.pushed();
  slot.values = request->raw;
  return {};
}

/// Waits until a slot's values are there.
Status StepReader::await(const Slot& slot) noexcept {
  while (arriving(slot)) SLUICE_RETURN_IF_ERROR(engine_.step([this] { return look(); }));
  return {};
}

kernels::WeightPiece StepReader::take(std::size_t weight, std::int64_t first_panel) noexcept {
  if constexpr (!plan::is_built(plan::Need::kReads)) return {};
  if (!engine_.status() || weight >= weights_.size()) return {};
  std::size_t found = slot_count_;
  for (std::size_t s = 0; s < slot_count_; ++s)
    if (holds(slots_[s], weight, first_panel)) found = s;
  const bool expected = found < slot_count_;
  if (!expected) found = slot_count_ == 2 ? 1 - current_ : 0;
  Slot& slot = slots_[found];
  const auto bring = [&]() -> Status {
    if (!expected) {
      SLUICE_RETURN_IF_ERROR(await(slot));  // a wrong guess is under way there
      SLUICE_RETURN_IF_ERROR(start_read(slot, weight, first_panel));
    }
    return await(slot);
  };
  const std::int64_t start = wall_now_ns();
  const Status brought = engine_.give_up(bring());
  busy_ns_ += wall_now_ns() - start;
  if (!brought) return {};
  current_ = found;
  return {slot.values, slot.panels};
}

void StepReader::expect(std::size_t weight, std::int64_t first_panel) noexcept {
  if constexpr (!plan::is_built(plan::Need::kReads)) return;
  if (!engine_.status() || slot_count_ < 2 || weight >= weights_.size()) return;
  Slot& other = slots_[1 - current_];
  if (arriving(other) || holds(other, weight, first_panel) || holds(slots_[current_], weight, first_panel)) return;
  static_cast<void>(engine_.give_up(start_read(other, weight, first_panel)));
}

std::int64_t StepReader::take_busy_ns() noexcept { return std::exchange(busy_ns_, 0); }

}  // namespace sluice::executor
