// What the engine's tests open and run: the toy network in a file, with the right answer beside it.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "sluice/engine/engine.h"
#include "tests/executor/toy_file.h"

namespace sluice {

/// The toy network as a file, opened.
struct Fixture {
  explicit Fixture(const toy::ToyOptions& options = {.rows = 2, .widths = {64, 512, 384, 512, 10}}) : toy(toy::make_toy_model(options)) {
    REQUIRE(toy::write_toy_file(toy, path.str()));
    auto opened = Model::open(path.str());
    REQUIRE(opened);
    model = *opened;
  }

  std::span<const std::byte> input() const { return std::as_bytes(std::span(toy.input)); }
  /// One run: its error, or whether the output is the right one.
  Result<bool> run(Session& session) const {
    SLUICE_RETURN_IF_ERROR(session.set_input(0, DType::kF32, input()));
    SLUICE_RETURN_IF_ERROR(session.run());
    std::vector<float> output(toy.expected.size());
    SLUICE_RETURN_IF_ERROR(session.get_output(0, std::as_writable_bytes(std::span(output))));
    return std::memcmp(output.data(), toy.expected.data(), output.size() * sizeof(float)) == 0;
  }

  toy::ToyModel toy;
  toy::TemporaryPath path{"engine_test.sluice"};
  std::shared_ptr<const Model> model;
};

inline ErrorCode code_of(const Status& status) {
  REQUIRE_FALSE(status);
  return status.error().code;
}

}  // namespace sluice
