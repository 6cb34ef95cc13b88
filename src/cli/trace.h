// `run --trace FILE`: the last run as a timeline in Chrome's trace format, which Perfetto and chrome://tracing open.
//
//     compute   | conv1 | stall: load 7 | conv2 | conv3 |        a slice a step; a stall says which load it waited for and why
//     loads     |== load 6 ==|== load 7 ==|                      from the first read started to the last stretch checked;
//     loads 2                |== load 8 ==|                      a row more for each that is under way at the same time
//     decode           |=|        |=|                            checksums (decryption, expansion): the end of a load
//     arena     ~~~~~~~~~~~~~~~~~~~~~~~~~                        bytes of the buffers that live in each step
#pragma once

#include <span>
#include <string>

#include "sluice/executor/executor.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::cli {

/// The measurements of one run, by step and by load of the plan.
struct RunTimes {
  std::span<const executor::StepTime> steps;
  std::span<const executor::LoadTime> loads;
};

/// Why a step waited for a load.
enum class StallCause { kDisk, kPlace };
/// kPlace: when the wait began, the load's place was still in use (its gate was closed). Else the disk had begun and was not done.
StallCause cause_of_stall(const executor::StepTime& step, const executor::LoadTime& load) noexcept;

/// The load that a step waited for longest: of those that it needs and the steps before it did not, the one that ended last. -1: none.
std::int64_t awaited_load(const plan::Plan& plan, const RunTimes& times, std::size_t step) noexcept;

/// The JSON object. Times are microseconds from the first event on.
std::string trace_of(const plan::Plan& plan, const model::Graph& graph, const RunTimes& times);

}  // namespace sluice::cli
