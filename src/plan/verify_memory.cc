// (I2) (I3) (I4) (I7) (I8): where buffers and regions lie.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/plan/peak.h"
#include "src/plan/verify_parts.h"

namespace sluice::plan {
namespace {

constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 21;
constexpr int kPeriods = 3;  // the prologue, a period after it, and one after that: every way in which runs can meet

Status check_offsets(const Plan& plan, const VerifyContext& context) {
  if (plan.arena_bytes > plan.capacity) return fail(ErrorCode::kInvalidPlan, "plan", "I3: the arena is larger than the capacity");
  std::uint64_t highest = 0;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.alignment == 0 || buffer.alignment > kMaxAlignment || (buffer.alignment & (buffer.alignment - 1)) != 0)
      return broken("buffer", b, "I4: its alignment is no power of two");
    if (buffer.alignment < model::kWeightAlignment) return broken("buffer", b, "I4: its alignment is less than a kernel may rely on");
    if (buffer.offset.count() % buffer.alignment != 0) return broken("buffer", b, "I4: its offset is not a multiple of its alignment");
    // A kernel may read past the last weight of a region; other buffers have that tail in their size.
    const std::uint64_t tail = buffer.kind == BufferKind::kWeight ? context.read_tail.count() : 0;
    const auto end = checked_add(buffer.offset.count(), buffer.size.count());
    const auto end_with_tail = end ? checked_add(*end, tail) : std::nullopt;
    if (!end_with_tail || *end_with_tail > plan.arena_bytes.count()) return broken("buffer", b, "I3: it ends beyond the arena");
    highest = std::max(highest, *end_with_tail);
  }
  if (highest != plan.arena_bytes.count())
    return fail(ErrorCode::kInvalidPlan, "plan", "I7: the peak it states is not the end of its buffers");
  return {};
}

/// The bytes that an expanding load needs besides its raw bytes, so that no byte overwrites one that is still to be decoded.
Status check_expanding(const Plan& plan, const model::Graph& graph, std::size_t k) {
  constexpr std::uint64_t kBlock = 4096;  // of readers, whatever the plan's is
  const Load& load = plan.loads[k];
  std::uint64_t raw = 0;  // less than 2^32 stretches of less than 2^32 bytes
  for (const model::Stretch& stretch : std::span(graph.stretches).subspan(load.first_stretch, load.stretch_count))
    raw += stretch.raw_size.count();
  const Bytes size = plan.buffer(load.target).size;
  if (plan.block != kBlock || size != Bytes(align_up(raw, kBlock) + 2 * kBlock) || load.file.size > size)
    return broken("load", k, "I4: its region is not what it expands to, and two blocks");
  return {};
}

Status check_region(const Plan& plan, const model::Graph& graph, std::size_t k, const VerifyContext& context) {
  const Load& load = plan.loads[k];
  const Buffer& target = plan.buffer(load.target);
  if (target.kind != BufferKind::kWeight) return broken("load", k, "I4: its target holds no weights");
  const auto end = checked_add(load.file.offset.count(), load.file.size.count());
  if (!end || *end > context.file_size.count()) return broken("load", k, "I4: it reads beyond the end of the file");
  if (load.file.size == Bytes()) return broken("load", k, "I4: it reads nothing");
  if (load.file.offset.count() % plan.block != 0 || (load.file.size.count() % plan.block != 0 && *end != context.file_size.count()))
    return broken("load", k, "I4: its file range is not rounded to blocks");
  if (target.offset.count() % plan.block != 0) return broken("load", k, "I4: its region is not congruent with the file range");
  if (load.expands()) return check_expanding(plan, graph, k);
  if (target.size.count() % plan.block != 0 || target.size < load.file.size || target.size.count() - load.file.size.count() >= plan.block)
    return broken("load", k, "I4: its region is not the file range, rounded to blocks");
  return {};
}

Status check_regions(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  std::vector<bool> filled(plan.buffers.size(), false);
  std::uint64_t resident = 0;
  std::uint64_t streamed = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.kind == BufferKind::kDerived) resident += buffer.size.count();  // each lies inside the arena, and there are less than 2^24
  for (std::size_t k = 0; k < plan.loads.size(); ++k) {
    SLUICE_RETURN_IF_ERROR(check_region(plan, graph, k, context));
    const Load& load = plan.loads[k];
    if (filled[load.target.index()]) return broken("load", k, "I2: another load fills its target");
    filled[load.target.index()] = true;
    if (load.prologue_only) continue;
    std::uint64_t& sum = load.resident ? resident : streamed;
    const auto total = checked_add(sum, load.file.size.count());
    if (!total) return broken("load", k, "I3: the sizes of the loads overflow");
    sum = *total;
  }
  if (resident != plan.resident_bytes.count() || streamed != plan.streamed_bytes.count())
    return fail(ErrorCode::kInvalidPlan, "plan", "I7: the resident or streamed bytes it states are not those of its loads");
  return {};
}

/// Buffers that live now, by offset. As long as they are disjoint, a new one can only overlap its two neighbours.
class LiveSet {
 public:
  struct Occurrence {
    std::uint64_t end;
    std::size_t buffer;
    int period;
  };

  /// The occurrence that `buffer` overlaps, or nothing after taking it in.
  std::optional<Occurrence> insert(std::uint64_t begin, Occurrence occurrence) {
    const auto next = live_.lower_bound(begin);
    if (next != live_.end() && next->first < occurrence.end) return next->second;
    if (next != live_.begin() && std::prev(next)->second.end > begin) return std::prev(next)->second;
    live_.emplace_hint(next, begin, occurrence);
    return std::nullopt;
  }
  void erase(std::uint64_t begin, std::size_t buffer) {
    if (const auto at = live_.find(begin); at != live_.end() && at->second.buffer == buffer) live_.erase(at);
  }

 private:
  std::map<std::uint64_t, Occurrence> live_;
};

struct Event {
  std::int64_t time;
  bool begins;
  std::size_t buffer;
  int period;
};

/// The prologue and two periods in a row. Buffers that live in all of them are one occurrence; a wrapped one begins in the period before
/// its own, and with the prologue when its own is that. Targets of prologue-only loads count in each: a buffer that overlaps one later
/// overlaps it in the prologue too.
std::vector<Event> events_of(const Plan& plan) {
  const auto steps = static_cast<std::int64_t>(plan.steps.size());
  std::vector<Event> events;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.size == Bytes() || (!buffer.whole_period && buffer.lifetime.empty())) continue;
    if (buffer.whole_period) {
      events.push_back({0, true, b, 0});
      events.push_back({kPeriods * steps, false, b, 0});
      continue;
    }
    for (int period = 0; period < kPeriods; ++period) {
      const StepRange life{std::max<std::int64_t>(period * steps + buffer.lifetime.begin, 0), period * steps + buffer.lifetime.end};
      if (life.empty()) continue;
      events.push_back({life.begin, true, b, period});
      events.push_back({life.end, false, b, period});
    }
  }
  sluice::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {  // ends before begins: lifetimes are half-open
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return !a.begins;
    return a.period != b.period ? a.period < b.period : a.buffer < b.buffer;
  });
  return events;
}

/// What lies in a live buffer cannot meet another one, but others that lie there; check_content looks which rows it meets.
Status check_disjoint(const Plan& plan, std::vector<InnerBuffer>& inner) {
  LiveSet live, inside;
  for (const Event& event : events_of(plan)) {
    const Buffer& buffer = plan.buffers[event.buffer];
    const std::uint64_t begin = buffer.offset.count();
    if (!event.begins) {
      live.erase(begin, event.buffer);
      inside.erase(begin, event.buffer);
      continue;
    }
    auto met = live.insert(begin, {begin + buffer.size.count(), event.buffer, event.period});
    if (met && met->period == event.period && lies_in(buffer, plan.buffers[met->buffer])) {
      if (event.period == 0) inner.push_back({event.buffer, met->buffer});
      met = inside.insert(begin, {begin + buffer.size.count(), event.buffer, event.period});
    }
    if (!met) continue;
    const bool same_period = met->period == event.period || plan.buffers[met->buffer].whole_period || buffer.whole_period;
    return broken(
        "buffer", event.buffer,
        same_period ? "I2: it overlaps another buffer in time and in bytes" : "I8: it overlaps a buffer of the neighbouring period");
  }
  return {};
}

}  // namespace

Status check_memory(const Plan& plan, const model::Graph& graph, const VerifyContext& context, std::vector<InnerBuffer>& inner) {
  SLUICE_RETURN_IF_ERROR(check_offsets(plan, context));
  SLUICE_RETURN_IF_ERROR(check_regions(plan, graph, context));
  return check_disjoint(plan, inner);
}

}  // namespace sluice::plan
