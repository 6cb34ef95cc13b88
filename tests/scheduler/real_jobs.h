// Toy networks as models of a scheduler, jobs with their own tensors, and a scheduler that is ready.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "sluice/scheduler/scheduler.h"
#include "tests/executor/toy_file.h"

namespace sluice::scheduler {

/// A toy network as a file, opened; seeds give other weights, inputs and answers.
struct Net {
  explicit Net(std::uint32_t seed = 1, std::vector<std::int64_t> widths = {64, 256, 128, 10})
      : toy(toy::make_toy_model({.rows = 2, .widths = std::move(widths), .seed = seed})), path("real_test." + std::to_string(seed)) {
    REQUIRE(toy::write_toy_file(toy, path.str()));
    auto opened = sluice::Model::open(path.str());
    REQUIRE(opened);
    model = *opened;
  }
  ModelOptions options(bool urgent = false) const {
    const auto bytes = std::as_bytes(std::span(toy.input));
    return {.name = path.str(), .urgent = urgent, .reference_inputs = {{bytes.begin(), bytes.end()}}};
  }

  toy::ToyModel toy;
  toy::TemporaryPath path;
  std::shared_ptr<const sluice::Model> model;
};

/// One job of a net: its tensors, which outlive it.
struct ToyJob {
  explicit ToyJob(const Net& of) : net(of), output(of.toy.expected.size(), -1.0f) {
    input = std::as_bytes(std::span(net.toy.input));
    room = std::as_writable_bytes(std::span(output));
  }
  JobTensors tensors() const { return {{&input, 1}, {&room, 1}}; }
  bool right() const { return std::memcmp(output.data(), net.toy.expected.data(), output.size() * sizeof(float)) == 0; }
  bool untouched() const {
    return std::all_of(output.begin(), output.end(), [](float value) { return value == -1.0f; });
  }

  const Net& net;
  std::vector<float> output;
  std::span<const std::byte> input;
  std::span<std::byte> room;
};

inline std::unique_ptr<Scheduler> make_scheduler(const SchedulerOptions& options,
                                                 const std::vector<std::pair<const Net*, ModelOptions>>& nets) {
  auto scheduler = Scheduler::create(options);
  REQUIRE(scheduler);
  for (const auto& [net, model] : nets) REQUIRE((*scheduler)->add_model(net->model, model));
  const Status started = (*scheduler)->start();
  if (!started) FAIL(started.error().to_string());
  return std::move(*scheduler);
}

/// Jobs of one scheduler, kept until it has ended.
struct Jobs {
  explicit Jobs(Scheduler& of) : scheduler(of) {}
  Ticket submit(const Net& net, std::size_t model, const JobOptions& options = {}) {
    jobs.emplace_back(net);
    const auto submission = scheduler.submit(ModelId(model), jobs.back().tensors(), options);
    if (!submission) FAIL(submission.error().to_string());
    tickets.push_back(submission->ticket);
    return submission->ticket;
  }
  JobResult wait(Ticket ticket) const {
    const auto result = scheduler.wait(ticket);
    if (!result) FAIL(result.error().to_string());
    return *result;
  }
  std::vector<JobResult> wait_all() const {
    std::vector<JobResult> results;
    for (const Ticket ticket : tickets) results.push_back(wait(ticket));
    return results;
  }
  bool all_right() const {
    return std::all_of(jobs.begin(), jobs.end(), [](const ToyJob& job) { return job.right(); });
  }

  Scheduler& scheduler;
  std::deque<ToyJob> jobs;
  std::vector<Ticket> tickets;
};

inline ProcessorOptions timed(std::vector<Time> times) { return {.kind = ProcessorOptions::Kind::kTimed, .times = std::move(times)}; }
/// One that does nothing but compute the answers of the timed ones: so slow that no policy gives it work that another can do.
inline ProcessorOptions slow_cpu() { return {.compute_slowdown = 1000}; }

/// A slowdown that makes a step of a toy network long beside a decision: milliseconds. The thread sanitizer slows kernels itself, some 30 times.
#if defined(__SANITIZE_THREAD__)
inline constexpr double kLongSteps = 10;
#else
inline constexpr double kLongSteps = 300;
#endif
/// For tests in which no processor is lost, however long a busy machine keeps one waiting.
inline constexpr Time kPatience = 1000 * kSecond;

}  // namespace sluice::scheduler
