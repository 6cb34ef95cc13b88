// A toy model on disk and the least budget at which most of its weights are streamed: what is done wrong to sessions is done to these.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "tests/executor/toy_file.h"

namespace sluice::test {

using namespace literals;
using executor::ReadMethod;

struct Fixture {
  explicit Fixture(const toy::ToyOptions& options = {.rows = 2, .widths = {64, 512, 384, 512, 10}}) : toy(toy::make_toy_model(options)) {
    REQUIRE(toy::write_toy_file(toy, path.str()));
    auto opened = Model::open(path.str());
    REQUIRE(opened);
    model = *opened;
    const auto minimum = minimum_budget(*model, {.tuning = {.read_method = ReadMethod::kThreads}});  // needs the most
    REQUIRE(minimum);
    budget = *minimum + std::min(64_KiB, Bytes(toy.file.size() / 16));  // most weights are streamed
  }
  std::unique_ptr<Session> create(ReadMethod method = ReadMethod::kAuto, bool repeat = false) const {
    auto session = Session::create(model, {.budget = budget, .repeat = repeat, .tuning = {.read_method = method}});
    REQUIRE(session);
    return std::move(*session);
  }
  /// io_uring is refused in some containers, and where the disk has no direct reads.
  std::vector<ReadMethod> methods() const {
    std::vector<ReadMethod> found = {ReadMethod::kThreads};
    if (Session::create(model, {.budget = budget, .tuning = {.read_method = ReadMethod::kRing}})) found.push_back(ReadMethod::kRing);
    return found;
  }
  Status set_and_run(Session& session) const {
    SLUICE_RETURN_IF_ERROR(session.set_input(0, DType::kF32, std::as_bytes(std::span(toy.input))));
    return session.run();
  }
  bool right(Session& session) const {
    std::vector<float> output(toy.expected.size());
    return session.get_output(0, std::as_writable_bytes(std::span(output))) && output == toy.expected;
  }

  toy::ToyModel toy;
  toy::TemporaryPath path{"fault_test.sluice"};
  std::shared_ptr<const Model> model;
  Bytes budget;
};

}  // namespace sluice::test
