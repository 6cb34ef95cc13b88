// Many runs, many sessions, many models: what is lost a little each time shows here.
//
// Counts are for the gate; SLUICE_SOAK_RUNS and SLUICE_SOAK_SESSIONS give those of a release (scripts/nightly: a million and 1,000).
#include <cstdlib>

#include "sluice/engine/shared_arena.h"
#include "src/engine/process_memory.h"
#include "tests/engine/open_descriptors.h"
#include "tests/fault/fixture.h"

namespace sluice {
namespace {

using test::Fixture;
using namespace literals;

int count_of(const char* variable, int at_the_gate) {
  const char* const stated = std::getenv(variable);
  return stated == nullptr ? at_the_gate : std::atoi(stated);
}

/// What the process holds now must still be what it holds when `work` is over: within a hundredth, or what the kernel's counter wobbles by.
template <class Work>
void require_nothing_lost(const Work& work) {
  engine::release_free_heap();
  const std::size_t descriptors = test::open_descriptors();
  REQUIRE(descriptors > 0);
  [[maybe_unused]] const Bytes resident = engine::read_process_memory().resident;
  work();
  engine::release_free_heap();
  CHECK(test::open_descriptors() == descriptors);
#if !defined(SLUICE_FOREIGN_MEMORY)  // a sanitizer keeps freed memory on purpose, an emulator what it translated
  constexpr Bytes kCounterError = 256_KiB;
  CHECK(engine::read_process_memory().resident <= resident + std::max(kCounterError, Bytes(resident.count() / 100)));
#endif
}

/// In the least budget of its way of reading: more, and all weights would stay.
std::unique_ptr<Session> streaming_session(const Fixture& fixture, executor::ReadMethod method, bool repeat) {
  SessionOptions options{.repeat = repeat, .tuning = {.read_method = method}};
  const auto least = minimum_budget(*fixture.model, options);
  REQUIRE(least);
  options.budget = *least;
  auto session = Session::create(fixture.model, options);
  REQUIRE(session);
  return std::move(*session);
}

}  // namespace

TEST_CASE("streamed runs of one session, a great many, lose nothing and give the same bits") {
  // Small: the count matters here, not the size. Few layers are few reads, and each read that threads make for
  // each other waits for the system to wake three of them, which on a busy machine is what a run costs.
  const Fixture fixture({.rows = 1, .widths = {64, 128, 128, 10}});
  const std::vector<executor::ReadMethod> methods = fixture.methods();
  for (const executor::ReadMethod method : methods) {
    for (const bool repeat : {false, true}) {
      // soak_test "streamed*" -c "by threads, repeated" runs one of the four: several programs soak in the time of one.
      DYNAMIC_SECTION((method == executor::ReadMethod::kRing ? "by a ring" : "by threads")
                      << (repeat ? ", repeated" : ", each by itself")) {
        const std::unique_ptr<Session> session = streaming_session(fixture, method, repeat);
        const auto run = [&](int times) {
          for (int i = 0; i < times; ++i) {
            if (!fixture.set_and_run(*session) || !fixture.right(*session)) FAIL("run " << i << " of " << times << " went wrong");
          }
        };
        run(100);
        REQUIRE(session->stats().bytes_read != Bytes());
        require_nothing_lost([&] { run(count_of("SLUICE_SOAK_RUNS", 500) / (2 * static_cast<int>(methods.size()))); });
      }
    }
  }
}

TEST_CASE("sessions come and go without losing descriptors or memory") {
  const Fixture fixture;
  const auto cycle = [&](int times) {
    for (int i = 0; i < times; ++i) {
      auto model = Model::open(fixture.path.str());
      REQUIRE(model);
      auto session = Session::create(*model, {.budget = fixture.budget, .threads = 1 + i % 2});
      REQUIRE(session);
      REQUIRE(fixture.set_and_run(**session));
      REQUIRE(fixture.right(**session));
    }
  };
  cycle(20);
  require_nothing_lost([&] { cycle(count_of("SLUICE_SOAK_SESSIONS", 100)); });
}

TEST_CASE("a hundred models take turns in one arena, and nothing of them stays") {
  constexpr std::uint32_t kModels = 100;
  const auto turns = [] {
    auto arena = SharedArena::create({.budget = 4_MiB});
    REQUIRE(arena);
    for (std::uint32_t seed = 1; seed <= kModels; ++seed) {
      const toy::ToyModel toy = toy::make_toy_model({.rows = 1, .widths = {16 + seed % 7 * 16, 64 + seed % 5 * 48, 10}, .seed = seed});
      const toy::TemporaryPath path("soak_test." + std::to_string(seed));
      REQUIRE(toy::write_toy_file(toy, path.str()));
      auto model = Model::open(path.str());
      REQUIRE(model);
      auto session = Session::create(*model, {.repeat = true, .arena = *arena});
      REQUIRE(session);
      std::vector<float> output(toy.expected.size());
      REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(toy.input))));
      REQUIRE((*session)->run());
      REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(output))));
      REQUIRE(output == toy.expected);
    }
  };
  turns();
  require_nothing_lost(turns);
}

}  // namespace sluice
