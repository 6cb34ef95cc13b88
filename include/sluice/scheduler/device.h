// What is scheduled on what: the processors of a device, and models as graphs of units. The first words of the scheduler; start here.
//
//     graph --cut_units--> units --+                         (cut.h)
//     processors ------------------+--> Profile              (profile.h: expected times, kept true by measurements)
//     jobs ----------------------------> State --policy--> Decisions --> workers, or the simulator
//                                        (state.h)  (policy.h)  (decision.h)
//
// A *unit* is a run of operators that one processor runs together; what it needs of another unit is copied where the two lie on
// processors that do not share memory. Units are numbered in an order in which they can run, so any range of them is a graph with ports,
// and a run of units on one processor (a merged unit) pays one dispatch.
//
// Times are whole nanoseconds in 64 bits: sums do not depend on their order, so a plan, its execution in the simulator and the exact
// optimum agree to the last bit on every machine, equal times are equal, and 146 years are more than enough. Ratios are doubles.
//
// Invariants: (D1) a unit comes after all units it reads from; (D2) a unit has one time for each processor, > 0, `kNever` where the
// processor does not support it; (D3) some processor supports it; (D4) a transfer from a processor to itself costs nothing. `check_model`
// and `check_device` check these; nothing below them checks again. The number of units has no limit of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/ids.h"
#include "sluice/core/units.h"

namespace sluice::scheduler {

using Time = std::int64_t;  // nanoseconds; a moment counts from the start of the scheduler
inline constexpr Time kNever = std::numeric_limits<Time>::max() / 8;
inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kMillisecond = 1000 * kMicrosecond;
inline constexpr Time kSecond = 1000 * kMillisecond;

using ProcessorId = Id<struct ProcessorTag>;
using ModelId = Id<struct ModelTag>;
using UnitIndex = std::uint32_t;  // a position in its model's order: ranges of them are what is run

struct Unit {
  std::vector<Time> times;            // by processor; kNever: unsupported
  std::vector<UnitIndex> reads_from;  // units whose outputs it reads
  Bytes output;                       // what a reader on another processor must have copied
};

struct Model {
  std::string name;
  std::vector<Unit> units;

  /// Does each unit read from the one before it and from nothing else?
  bool is_chain() const noexcept {
    for (UnitIndex u = 0; u < units.size(); ++u) {
      const std::vector<UnitIndex>& from = units[u].reads_from;
      if (u == 0 ? !from.empty() : from.size() != 1 || from[0] != u - 1) return false;
    }
    return true;
  }
};

struct Processor {
  std::string name;
  Time dispatch = 0;  // to begin something else than the next unit of what it ran last
  Time step = 0;      // the longest way to a step boundary; 0: a unit is never interrupted
};

/// Copying from one processor's memory to another's, done by the one that reads.
struct Transfer {
  Time fixed = 0;
  Time per_kib = 0;

  /// Whole KiB apart from the rest: no product leaves 64 bits within what `check_device` and `check_model` allow.
  Time of(Bytes bytes) const noexcept {
    const auto count = static_cast<Time>(bytes.count());
    return fixed + count / 1024 * per_kib + count % 1024 * per_kib / 1024;
  }
};

struct Device {
  static constexpr std::size_t kMostProcessors = 32;

  std::vector<Processor> processors;
  std::vector<Transfer> transfers;  // [from * processors + to]

  std::size_t count() const noexcept { return processors.size(); }
  Time transfer(std::size_t from, std::size_t to, Bytes bytes) const noexcept {
    return from == to ? 0 : transfers[from * processors.size() + to].of(bytes);
  }
};

/// D4, and that the tables have the sizes that they must have.
inline Status check_device(const Device& device) {
  const std::size_t n = device.count();
  const auto refuse = [](const char* reason) { return tl::unexpected(make_error(ErrorCode::kInvalidArgument, "processors", reason)); };
  if (n == 0 || n > Device::kMostProcessors) return refuse("a device has 1 to 32 processors");
  if (device.transfers.size() != n * n) return refuse("each pair of processors needs a cost of copying");
  for (const Processor& processor : device.processors)
    if (processor.dispatch < 0 || processor.step < 0 || processor.dispatch > kSecond) return refuse("a time is negative or absurd");
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to) {
      const Transfer& transfer = device.transfers[from * n + to];
      if (transfer.fixed < 0 || transfer.per_kib < 0 || transfer.fixed > kSecond || transfer.per_kib > kSecond)
        return refuse("a time is negative or absurd");
      if (from == to && (transfer.fixed != 0 || transfer.per_kib != 0)) return refuse("a processor copies nothing to itself");
    }
  return {};
}

/// D1 to D3.
inline Status check_model(const Device& device, const Model& model) {
  const auto refuse = [&](const char* reason) { return tl::unexpected(make_error(ErrorCode::kInvalidArgument, model.name, reason)); };
  if (model.units.empty()) return refuse("a model has at least one unit");
  for (UnitIndex u = 0; u < model.units.size(); ++u) {
    const Unit& unit = model.units[u];
    if (unit.times.size() != device.count()) return refuse("a unit needs a time for each processor, or that it is not supported");
    if (unit.output.count() > (std::uint64_t{1} << 40)) return refuse("a unit's output is absurdly large");
    bool supported = false;
    for (const Time time : unit.times) {
      if (time <= 0 || (time > 1000 * kSecond && time != kNever)) return refuse("a unit's time is not positive or is absurd");
      supported |= time != kNever;
    }
    if (!supported) return refuse("no processor supports a unit");
    for (const UnitIndex from : unit.reads_from)
      if (from >= u) return refuse("a unit reads from one that does not come before it");
  }
  return {};
}

}  // namespace sluice::scheduler
