// A loop without end: a limit of turns, a cancellation and the end of its session all end it.
#include "sluice/kernels/turns.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "sluice/engine/async.h"
#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int64_t kWithoutEnd = std::int64_t{1} << 62;

/// v + x for each turn, as often as the input "n" says; with `inner`, in a loop of that many turns within each.
OnnxBuilder loop_of(std::int64_t inner) {
  OnnxBuilder body;
  body.input("i", {}, 7).input("go", {}, 9).input("v", {1, 4});
  if (inner == 0) {
    body.node("Add", {"v", "x"}, {"w"});
  } else {
    OnnxBuilder within;
    within.input("j", {}, 7).input("on", {}, 9).input("u", {1, 4}).node("Add", {"u", "x"}, {"t"});
    within.node("Identity", {"on"}, {"stay"}).output("stay").output("t");
    body.initializer(tensor("inner", {}, Ints{inner})).node("Loop", {"inner", "", "v"}, {"w"}, {attribute("body", within)});
  }
  body.node("Identity", {"go"}, {"still"}).output("still").output("w");
  OnnxBuilder b;
  b.input("x", {1, 4}).input("n", {}, 7).node("Loop", {"n", "", "x"}, {"y"}, {attribute("body", body)}).output("y");
  return b;
}

struct Fixture {
  explicit Fixture(std::int64_t inner = 0) {
    write_file(folder.path("m.onnx"), loop_of(inner).bytes());
    importer::ConvertReport report;
    const Status converted = importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), {}, report);
    for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(problem.message);
    REQUIRE(converted);
    auto opened = Model::open(folder.path("m.sluice"));
    REQUIRE(opened);
    model = *opened;
  }
  std::unique_ptr<Session> session(std::int64_t max_turns) const {
    auto made = Session::create(model, {.max_turns = max_turns});
    REQUIRE(made);
    const Floats x = {1, 2, 3, 4};
    REQUIRE((*made)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
    return *std::move(made);
  }
  static void set_turns(Session& session, std::int64_t turns) {
    REQUIRE(session.set_input(1, DType::kI64, std::as_bytes(std::span(&turns, 1))));
  }
  TemporaryFolder folder;
  std::shared_ptr<const Model> model;
};

}  // namespace

TEST_CASE("a loop takes as many turns as it may, and one more is an error that says how to allow it") {
  const Fixture fixture;
  const auto session = fixture.session(1000);
  Fixture::set_turns(*session, 1000);
  REQUIRE(session->run());
  Floats y(4);
  REQUIRE(session->get_output(0, std::as_writable_bytes(std::span(y))));
  CHECK(y == Floats{1001, 2002, 3003, 4004});
  Fixture::set_turns(*session, 1001);
  const Status refused = session->run();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().to_string().find("--max-turns") != std::string::npos);
  Fixture::set_turns(*session, 1000);
  CHECK(session->run());
  CHECK_FALSE(Session::create(fixture.model, {.max_turns = -1}));
}

TEST_CASE("turns of loops within loops are counted together") {
  const Fixture fixture(1000);  // far too many to be unrolled
  const auto session = fixture.session(10 + 10 * 1000);
  Fixture::set_turns(*session, 10);
  CHECK(session->run());
  Fixture::set_turns(*session, 11);
  CHECK_FALSE(session->run());
}

TEST_CASE("a loop without end ends by default") {
  const Fixture fixture;
  const auto session = fixture.session(kernels::kDefaultMaxTurns);
  Fixture::set_turns(*session, kWithoutEnd);
  CHECK_FALSE(session->run());
}

TEST_CASE("cancel ends a loop without end, and the session runs again") {
  const Fixture fixture;
  const auto session = fixture.session(kWithoutEnd);
  for (int round = 0; round < 3; ++round) {
    Fixture::set_turns(*session, kWithoutEnd);
    std::atomic<bool> begun{false};
    Status status;
    std::thread runner([&] {
      begun = true;
      status = session->run();
    });
    while (!begun) std::this_thread::yield();
    session->cancel();  // of this run, or the one to come: both are this one
    runner.join();
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kCancelled);
    Fixture::set_turns(*session, 5);
    CHECK(session->run());
  }
}

TEST_CASE("a run that may take only so long ends in a loop without end, and the session runs again") {
  const Fixture fixture;
  const auto session = fixture.session(kWithoutEnd);
  auto runs = AsyncSession::create(*session);
  REQUIRE(runs);
  Fixture::set_turns(*session, kWithoutEnd);
  const Status status = (*runs)->run_within(std::chrono::milliseconds(1));
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kCancelled);
  Fixture::set_turns(*session, 5);
  CHECK(session->run());
}

TEST_CASE("a step that would take an hour ends where its run is cancelled or late, and the session runs again") {
  // A transposed convolution whose kernel of 200,000 taps comes at run.
  constexpr std::int64_t kPlaces = 400'000, kTaps = 200'000;
  OnnxBuilder b;
  b.input("x", {1, 1, kPlaces}).input("w", {1, 1, kTaps}).node("ConvTranspose", {"x", "w"}, {"y"}).output("y");
  const TemporaryFolder folder;
  write_file(folder.path("m.onnx"), b.bytes());
  importer::ConvertReport report;
  REQUIRE(importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), {}, report));
  auto model = Model::open(folder.path("m.sluice"));
  REQUIRE(model);
  std::atomic<bool> begun{false};
  const auto begins = [](void* context, const executor::StepEvent&) noexcept { *static_cast<std::atomic<bool>*>(context) = true; };
  auto session = Session::create(*model, {.before_step = {begins, &begun}});
  REQUIRE(session);
  const Floats zeros(kPlaces);
  REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(zeros))));
  REQUIRE((*session)->set_input(1, DType::kF32, std::as_bytes(std::span(zeros).first(kTaps))));
  for (int round = 0; round < 3; ++round) {
    begun = false;
    Status status;
    std::thread runner([&] { status = (*session)->run(); });
    while (!begun) std::this_thread::yield();
    (*session)->cancel();
    runner.join();
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kCancelled);
  }
  auto runs = AsyncSession::create(**session);
  REQUIRE(runs);
  const Status late = (*runs)->run_within(std::chrono::milliseconds(1));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kCancelled);
}

TEST_CASE("the end of a session ends the loop that it runs") {
  const Fixture fixture;
  auto session = fixture.session(kWithoutEnd);
  Fixture::set_turns(*session, kWithoutEnd);
  Session* const used = session.get();
  Status status;
  // Whichever of the two threads comes second is told that the session is in use. The run tries again then; the other call goes on until
  // it is told so itself: then the run has begun.
  const auto in_use = [](const Status& told) { return !told && told.error().subject() == "session"; };
  std::thread runner([&] {
    do status = used->run();
    while (in_use(status));
  });
  Floats y(4);
  while (!in_use(used->get_output(0, std::as_writable_bytes(std::span(y))))) std::this_thread::yield();
  session.reset();
  runner.join();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kCancelled);
}
