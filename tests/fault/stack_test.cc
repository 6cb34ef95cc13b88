// How much of the calling thread's stack the doors take: measured on a stack that is painted first, and what happens where there is less.
#include "src/core/stack.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "sluice/engine/engine.h"
#include "tests/cli/temporary.h"
#include "tests/fault/small_models.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::byte kPaint{0xA5};

/// A stack with a page below it that nobody may touch.
class PaintedStack {
 public:
  explicit PaintedStack(std::size_t bytes) : bytes_(bytes) {
    void* const all = ::mmap(nullptr, bytes + kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    begin_ = static_cast<std::byte*>(all) + kGuard;
    REQUIRE(::mprotect(begin_, bytes, PROT_READ | PROT_WRITE) == 0);
    std::fill(begin_, begin_ + bytes, kPaint);
  }
  PaintedStack(const PaintedStack&) = delete;
  PaintedStack& operator=(const PaintedStack&) = delete;
  ~PaintedStack() { ::munmap(begin_ - kGuard, bytes_ + kGuard); }

  /// Calls `what` in a thread on this stack. The bytes from the lowest that was written to the top.
  std::size_t call(std::function<void()> what) {
    pthread_attr_t attributes;
    REQUIRE(::pthread_attr_init(&attributes) == 0);
    REQUIRE(::pthread_attr_setstack(&attributes, begin_, bytes_) == 0);
    pthread_t thread;
    const auto body = [](void* given) -> void* {
      (*static_cast<std::function<void()>*>(given))();
      return nullptr;
    };
    REQUIRE(::pthread_create(&thread, &attributes, body, &what) == 0);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    ::pthread_attr_destroy(&attributes);
    const std::byte* lowest = std::find_if(begin_, begin_ + bytes_, [](std::byte b) { return b != kPaint; });
    return static_cast<std::size_t>(begin_ + bytes_ - lowest);
  }

 private:
  static constexpr std::size_t kGuard = 64 << 10;
  std::size_t bytes_;
  std::byte* begin_;
};

struct Opened {
  std::shared_ptr<const Model> model;
  std::vector<std::vector<std::byte>> inputs;
};

Opened open_small(const SmallModel& small, const TemporaryFolder& folder) {
  write_file(folder.path("m.onnx"), small.onnx);
  importer::ConvertReport report;
  REQUIRE(importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), small.options, report));
  auto opened = Model::open(folder.path("m.sluice"));
  REQUIRE(opened);
  return {*opened, inputs_for((*opened)->graph())};
}

Status run(Session& session, const Opened& opened) {
  for (std::size_t i = 0; i < opened.inputs.size(); ++i) {
    const model::Graph& graph = session.model().graph();
    SLUICE_RETURN_IF_ERROR(session.set_input(i, graph.tensor(graph.inputs[i].tensor).dtype, opened.inputs[i]));
  }
  return session.run();
}

}  // namespace

TEST_CASE("what is stated of the stack is enough, for every kind of model") {
  std::size_t planning = 0, running = 0, base = 0;
  base = PaintedStack(1 << 20).call([] {});
  for (const SmallModel& small : small_models()) {
    CAPTURE(small.name);
    const TemporaryFolder folder;
    const Opened opened = open_small(small, folder);
    Result<std::unique_ptr<Session>> session = fail(ErrorCode::kInternal, "", "");
    planning = std::max(planning, PaintedStack(1 << 20).call([&] { session = Session::create(opened.model, {.threads = 1}); }));
    REQUIRE(session);
    Status status;
    running = std::max(running, PaintedStack(1 << 20).call([&] { status = run(**session, opened); }));
    REQUIRE(status);
  }
  // Of what a thread begins with, its control block and its first frames, a caller has some as well.
  WARN("planning takes " << planning << " bytes of stack, running " << running << ", a thread alone " << base);
#if !defined(SLUICE_FOREIGN_MEMORY) && defined(NDEBUG)
  CHECK(std::max(planning, running) - base < kLeastStack.count() * 3 / 4);
#endif
}

#if !defined(SLUICE_FOREIGN_MEMORY)
TEST_CASE("a thread with too little stack is refused with what is needed, and one with enough runs") {
  const TemporaryFolder folder;
  const Opened opened = open_small(small_models().front(), folder);
  auto session = Session::create(opened.model, {});
  REQUIRE(session);
  Status narrow, wide;
  bool created = true;
  PaintedStack(32 << 10).call([&] {
    narrow = (*session)->run();
    created = Session::create(opened.model, {}).has_value();
  });
  REQUIRE_FALSE(narrow);
  CHECK(narrow.error().code == ErrorCode::kInvalidArgument);
  CHECK(narrow.error().needed == kLeastStack.count());
  CHECK_FALSE(created);
  PaintedStack(kLeastStack.count() + (16 << 10)).call([&] { wide = run(**session, opened); });
  CHECK(wide);
}

TEST_CASE("what is left of a stack is found, again and again, and on the main thread's that grows") {
  CHECK(stack_has(1 << 20));
  bool little = false, again = false, much = true, all = true;
  PaintedStack(128 << 10).call([&] {
    little = stack_has(64 << 10);
    again = stack_has(64 << 10);
    much = stack_has(129 << 10);
    all = stack_has(~std::size_t{0});
  });
  CHECK(little);
  CHECK(again);
  CHECK_FALSE(much);
  CHECK_FALSE(all);
}

TEST_CASE("a guard of one page is found at every distance, whatever was asked before, although there is memory below it") {
  constexpr std::size_t kPage = 4096, kBelow = 8 * kPage, kStack = 128 << 10, kAll = kBelow + kPage + kStack;
  void* const all = ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED);
  auto* const guard = static_cast<std::byte*>(all) + kBelow;
  REQUIRE(::mprotect(guard, kPage, PROT_NONE) == 0);
  struct Question {
    const std::byte* lowest;
    std::size_t before;
    bool answer;
  };
  const auto ask = [&](const std::byte* lowest, std::size_t before) {
    Question question{lowest, before, false};
    pthread_attr_t attributes;
    REQUIRE(::pthread_attr_init(&attributes) == 0);
    REQUIRE(::pthread_attr_setstack(&attributes, guard + kPage, kStack) == 0);
    pthread_t thread;
    const auto body = [](void* given) -> void* {
      auto& q = *static_cast<Question*>(given);
      static_cast<void>(stack_has(q.before, false));
      q.answer = stack_has(static_cast<std::size_t>(static_cast<std::byte*>(__builtin_frame_address(0)) - q.lowest), false);
      return nullptr;
    };
    REQUIRE(::pthread_create(&thread, &attributes, body, &question) == 0);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    ::pthread_attr_destroy(&attributes);
    return question.answer;
  };
  for (const std::size_t before : {0, 1000, 20000})
    for (std::size_t below = 64; below < 3 * kPage; below += 64) {
      CAPTURE(before, below);
      CHECK_FALSE(ask(guard - below, before));
    }
  ::munmap(all, kAll);
}
#endif
