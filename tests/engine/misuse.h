// A wrong call of the C interface, how it is judged, and what it is made on (c_api_misuse_test.cc, scheduler/c_misuse_test.cc).
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/sluice_c.h"
#include "tests/executor/toy_file.h"

namespace sluice::test {

constexpr std::size_t kNone = SIZE_MAX;

/// A call that is refused, and what else than SLUICE_INVALID_ARGUMENT it may say.
struct Misuse {
  const char* name;
  std::function<sluice_status()> call;
  sluice_status other = SLUICE_INVALID_ARGUMENT;
};

/// A model, a session that has run, and memory for what a refused call must not write.
struct Subject {
  Subject() {
    REQUIRE(toy::write_toy_file(toy, path.str()));
    REQUIRE(sluice_model_open(path.str().c_str(), &model) == SLUICE_OK);
    REQUIRE(sluice_session_create(model, nullptr, &session) == SLUICE_OK);
    REQUIRE(sluice_session_create(model, nullptr, &fresh) == SLUICE_OK);
    REQUIRE(works());
    output.assign(output.size(), -7);
  }
  ~Subject() {
    sluice_session_close(fresh);
    sluice_session_close(session);
    sluice_model_close(model);
  }
  static int number() {
    static int made = 0;
    return made++;
  }
  bool works() {
    std::vector<float> found(toy.expected.size());
    return sluice_session_set_input(session, 0, toy.input.data(), input_bytes) == SLUICE_OK && sluice_session_run(session) == SLUICE_OK &&
           sluice_session_get_output(session, 0, found.data(), output_bytes) == SLUICE_OK && found == toy.expected;
  }
  bool untouched() const {
    return std::all_of(output.begin(), output.end(), [](float value) { return value == -7; }) && made == nullptr && made_model == nullptr &&
           made_arena == nullptr && made_scheduler == nullptr;
  }

  toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 128, 10}});
  toy::TemporaryPath path{"misuse." + std::to_string(number()) + ".sluice"};
  sluice_model* model = nullptr;
  sluice_session *session = nullptr, *fresh = nullptr;
  std::size_t input_bytes = toy.input.size() * sizeof(float), output_bytes = toy.expected.size() * sizeof(float);
  std::vector<float> output = std::vector<float>(toy.expected.size() + 16);
  sluice_session* made = nullptr;
  sluice_model* made_model = nullptr;
  sluice_arena* made_arena = nullptr;
  sluice_scheduler* made_scheduler = nullptr;
};

/// "" where the call is refused as it should be.
inline std::string attempt(const Misuse& misuse) {
  const sluice_status status = misuse.call();
  const std::string text = sluice_last_error();
  if (status != SLUICE_INVALID_ARGUMENT && status != misuse.other)
    return std::string(misuse.name) + ": status " + std::to_string(status) + ", " + text;
  if (text.find(": ") == std::string::npos) return std::string(misuse.name) + ": says '" + text + "'";
  return "";
}

}  // namespace sluice::test
