#include "sluice/engine/shared_arena.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "src/engine/process_memory.h"
#include "tests/engine/open_descriptors.h"
#include "tests/executor/toy_file.h"

namespace sluice {
namespace {

using namespace literals;

#if defined(SLUICE_FOREIGN_MEMORY)
constexpr bool kResidentIsOurs = false;
#else
constexpr bool kResidentIsOurs = true;
#endif

/// A toy network as a file, opened; seeds give other weights, inputs and answers.
struct Net {
  explicit Net(std::uint32_t seed = 1, std::vector<std::int64_t> widths = {64, 512, 384, 512, 10})
      : toy(toy::make_toy_model({.rows = 2, .widths = std::move(widths), .seed = seed})),
        path("shared_arena_test." + std::to_string(seed) + "." + std::to_string(toy.file.size())) {
    REQUIRE(toy::write_toy_file(toy, path.str()));
    auto opened = Model::open(path.str());
    REQUIRE(opened);
    model = *opened;
  }
  Status set(Session& session) const { return session.set_input(0, DType::kF32, std::as_bytes(std::span(toy.input))); }
  Result<bool> right(Session& session) const {
    std::vector<float> output(toy.expected.size());
    SLUICE_RETURN_IF_ERROR(session.get_output(0, std::as_writable_bytes(std::span(output))));
    return std::memcmp(output.data(), toy.expected.data(), output.size() * sizeof(float)) == 0;
  }
  Result<bool> run(Session& session) const {
    SLUICE_RETURN_IF_ERROR(set(session));
    SLUICE_RETURN_IF_ERROR(session.run());
    return right(session);
  }
  Bytes minimum() const { return minimum_budget(*model, {}).value_or(Bytes()); }

  toy::ToyModel toy;
  toy::TemporaryPath path;
  std::shared_ptr<const Model> model;
};

std::shared_ptr<SharedArena> make_arena(const SharedArenaOptions& options) {
  auto arena = SharedArena::create(options);
  REQUIRE(arena);
  return *arena;
}

std::unique_ptr<Session> join(const Net& net, const std::shared_ptr<SharedArena>& arena, SessionOptions options = {.repeat = true}) {
  options.arena = arena;
  auto session = Session::create(net.model, options);
  if (!session) FAIL(session.error().to_string());
  return std::move(*session);
}

bool within(const SharedArena& arena) {
  const MemoryReport memory = arena.memory();
  return memory.overhead + memory.arena <= memory.budget;
}

ErrorCode code_of(const Status& status) {
  REQUIRE_FALSE(status);
  return status.error().code;
}

}  // namespace

TEST_CASE("sessions of one model read resident weights once") {
  const Net net;
  const auto arena = make_arena({.budget = 16_MiB});
  const auto first = join(net, arena);
  REQUIRE(net.run(*first) == true);
  const Bytes all = first->stats().bytes_read;
  REQUIRE(all >= first->plan().resident_bytes);
  REQUIRE(first->plan().streamed_bytes == 0_B);
  SECTION("that ask for the same plan") {
    const auto second = join(net, arena);
    CHECK(&second->plan() == &first->plan());
    REQUIRE(net.run(*second) == true);
    CHECK(second->stats().bytes_read == 0_B);
  }
  SECTION("opened twice") {
    auto opened = Model::open(net.path.str());
    REQUIRE(opened);
    auto second = Session::create(*opened, {.repeat = true, .arena = arena});
    REQUIRE(second);
    REQUIRE(net.run(**second) == true);
    CHECK((*second)->stats().bytes_read == 0_B);
  }
  SECTION("before the second exists or after") {
    const auto second = join(net, arena);
    REQUIRE(net.run(*first) == true);
    CHECK(first->stats().bytes_read == 0_B);
    REQUIRE(net.run(*second) == true);
    CHECK(second->stats().bytes_read == 0_B);
  }
  SECTION("also where their plans differ") {
    const auto second = join(net, arena, {.repeat = true, .keep_inputs = false});
    CHECK(&second->plan() != &first->plan());
    REQUIRE(net.run(*second) == true);
    CHECK(4 * second->stats().bytes_read < all);
  }
}

TEST_CASE("models whose weights fit together are read once") {
  const Net a(1), b(2, {64, 256, 640, 10}), c(3, {32, 768, 10});
  const auto arena = make_arena({.budget = 16_MiB});
  const auto x = join(a, arena), y = join(b, arena), z = join(c, arena);
  CHECK(within(*arena));
  for (int round = 0; round < 3; ++round) {
    for (const auto& [net, session] : {std::pair(&a, x.get()), std::pair(&b, y.get()), std::pair(&c, z.get())}) {
      REQUIRE(net->run(*session) == true);
      if (round > 0) CHECK(session->stats().bytes_read == 0_B);
    }
  }
}

TEST_CASE("any sessions in turn give the bits that each gives alone, in any budget") {
  const Net a(1), b(2, {64, 256, 640, 10}), c(3, {32, 768, 10});
  const Bytes least = std::max({a.minimum(), b.minimum(), c.minimum()});
  for (const Bytes budget : {least + 640_KiB, least + 900_KiB, least + 2_MiB, 32_MiB}) {
    for (const int threads : {1, 2}) {
      for (const bool repeat : {true, false}) {
        CAPTURE(budget.count(), threads, repeat);
        const auto arena = make_arena({.budget = budget, .threads = threads});
        const SessionOptions options{.repeat = repeat};
        const std::unique_ptr<Session> sessions[] = {join(a, arena, options), join(b, arena, options), join(a, arena, options),
                                                     join(c, arena, options)};
        const Net* const nets[] = {&a, &b, &a, &c};
        CHECK(within(*arena));
        std::uint32_t random = 7;
        for (int turn = 0; turn < 40; ++turn) {
          random = random * 1664525u + 1013904223u;
          const std::size_t which = (random >> 16) % 4;
          CAPTURE(turn, which);
          REQUIRE(nets[which]->run(*sessions[which]) == true);
          if (random >> 30 == 0) REQUIRE((sessions[which]->run() && nets[which]->right(*sessions[which]) == true));
        }
      }
    }
  }
}

TEST_CASE("a plan that fits beside a newcomer's tables by less than a page is made anew") {
  const Net a(1), b(2, {64, 256, 640, 10}), c(3, {32, 768, 10});
  const Net* const nets[] = {&a, &b, &c};
  const auto join_all = [&](const std::shared_ptr<SharedArena>& arena) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (const Net* net : nets) sessions.push_back(join(*net, arena));
    return sessions;
  };
  // Where the first net's plan, with all its weights, just fits beside the tables of all.
  const auto alone = make_arena({.budget = 32_MiB}), roomy = make_arena({.budget = 32_MiB});
  const Bytes whole = join(a, alone)->plan().arena_bytes;
  const auto there = join_all(roomy);
  const Bytes enough = roomy->memory().overhead + whole;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr Bytes kApart = 512_B;  // planning is slow there, and is looked at elsewhere
#else
  constexpr Bytes kApart = 64_B;
#endif
  for (Bytes budget = enough - 6_KiB; budget < enough + 6_KiB; budget += kApart) {
    CAPTURE(budget.count());
    const auto arena = make_arena({.budget = budget});
    const auto sessions = join_all(arena);
    REQUIRE(within(*arena));
    for (std::size_t turn = 0; turn < 6; ++turn) REQUIRE(nets[turn % 3]->run(*sessions[turn % 3]) == true);
  }
}

TEST_CASE("what does not fit is a matter of the whole arena, and named") {
  const Net a(1), b(2, {64, 256, 640, 10});
  const auto arena = make_arena({.budget = a.minimum() + 4_KiB});
  const auto session = join(a, arena);
  REQUIRE(a.run(*session) == true);
  const auto refused = Session::create(b.model, {.arena = arena});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(refused.error().needed > refused.error().available);
  CHECK(a.run(*session) == true);
  // What was named works, and no byte less.
  Bytes needed = Bytes(refused.error().needed);
  for (int tries = 0; tries < 3; ++tries) {
    REQUIRE(arena->set_budget(needed));
    const auto again = Session::create(b.model, {.arena = arena});
    if (again) break;
    needed = Bytes(again.error().needed);
  }
  const auto second = join(b, arena);
  CHECK(a.run(*session) == true);
  CHECK(b.run(*second) == true);
  CHECK(code_of(arena->set_budget(needed - 1_B)) == ErrorCode::kBudgetTooSmall);
  CHECK(b.run(*second) == true);
}

TEST_CASE("a session's own budget leaves the arena to others") {
  const Net a(1, {64, 512, 512, 512, 512, 512, 10}), b(2, {64, 512, 512, 512, 512, 512, 10});
  const auto arena = make_arena({.budget = 6_MiB});
  // Together they do not fit; divided, each keeps a part.
  const SessionOptions half{.budget = 3_MiB, .repeat = true};
  const auto x = join(a, arena, half), y = join(b, arena, half);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(a.run(*x) == true);
    if (round > 0) CHECK(x->stats().bytes_read <= x->plan().streamed_bytes);
    REQUIRE(b.run(*y) == true);
    if (round > 0) CHECK(y->stats().bytes_read <= y->plan().streamed_bytes);
  }
  CHECK(x->plan().resident_bytes > 1_MiB);
  const auto refused = Session::create(a.model, {.budget = 64_KiB, .arena = arena});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(refused.error().available == 64 * 1024);
  CHECK(Session::create(a.model, {.budget = Bytes(refused.error().needed), .arena = arena}));
}

TEST_CASE("inputs and outputs hold until another session's turn, and no longer") {
  const Net a(1), b(2);
  const auto arena = make_arena({.budget = 16_MiB});
  const auto x = join(a, arena), y = join(b, arena);
  REQUIRE(a.set(*x));
  REQUIRE(b.set(*y));  // takes the turn
  CHECK(code_of(x->run()) == ErrorCode::kInvalidArgument);
  CHECK(b.right(*y).error().code == ErrorCode::kInvalidArgument);  // has not run
  REQUIRE(y->run());
  CHECK(b.right(*y) == true);
  CHECK(code_of(x->run()) == ErrorCode::kInvalidArgument);  // a refused run takes no turn
  CHECK(b.right(*y) == true);
  REQUIRE(a.run(*x) == true);
  CHECK(b.right(*y).error().code == ErrorCode::kInvalidArgument);
  CHECK(y->output_shape(0) == b.model->graph().outputs[0].onnx_shape);
  CHECK(x->run());  // inputs that are kept serve many runs of one turn
  CHECK(a.right(*x) == true);
  const auto third = join(a, arena);  // coming is a turn
  CHECK(a.right(*x).error().code == ErrorCode::kInvalidArgument);
  CHECK(a.run(*x) == true);
}

TEST_CASE("the budget of an arena goes up and down under its sessions") {
  const Net a(1, {64, 1024, 1024, 10}), b(2, {64, 1024, 768, 10});
  const Bytes least = std::max(a.minimum(), b.minimum()) + 512_KiB;
  const auto arena = make_arena({.budget = 16_MiB});
  const auto x = join(a, arena), y = join(b, arena), z = join(a, arena);
  const auto run_all = [&] {
    for (int round = 0; round < 2; ++round) REQUIRE((a.run(*x) == true && b.run(*y) == true && a.run(*z) == true));
  };
  run_all();
  const auto refused = arena->set_budget(1_KiB);
  CHECK(code_of(refused) == ErrorCode::kBudgetTooSmall);
  CHECK(arena->memory().budget == 16_MiB);
  run_all();
  CHECK(x->stats().bytes_read == 0_B);
  for (const Bytes budget : {least, 4_MiB, 2_MiB + 512_KiB, 64_MiB, least, 16_MiB, 8_MiB}) {
    CAPTURE(budget.count());
    const Bytes before = engine::read_process_memory().resident;
    const Bytes arena_before = arena->memory().arena;
    REQUIRE(arena->set_budget(budget));
    CHECK(within(*arena));
    const Bytes now = arena->memory().arena;
    if (kResidentIsOurs && now + 2_MiB < arena_before)
      CHECK(engine::read_process_memory().resident + Bytes((arena_before - now).count() / 2) < before);
    CHECK(code_of(x->run()) == ErrorCode::kInvalidArgument);
    run_all();
  }
  CHECK(code_of(x->set_budget(8_MiB)) == ErrorCode::kInvalidArgument);
}

TEST_CASE("going up keeps what was resident") {
  const Net net(1, {64, 512, 512, 512, 512, 512, 10});
  const auto arena = make_arena({.budget = 3_MiB, .largest_budget = 32_MiB});
  const auto x = join(net, arena);
  REQUIRE(net.run(*x) == true);
  const Bytes kept = x->plan().resident_bytes;
  REQUIRE(kept > 2_MiB);
  REQUIRE(arena->set_budget(4_MiB));
  REQUIRE(net.run(*x) == true);
  REQUIRE(x->plan().resident_bytes > kept);
  CHECK(x->stats().bytes_read == x->plan().streamed_bytes + (x->plan().resident_bytes - kept));
}

TEST_CASE("a session that is called off takes its cancellation, the others run on") {
  const Net a(1), b(2);
  const auto arena = make_arena({.budget = std::max(a.minimum(), b.minimum()) + 512_KiB});
  const auto x = join(a, arena), y = join(b, arena);
  REQUIRE(a.run(*x) == true);
  x->cancel();
  REQUIRE(b.run(*y) == true);
  CHECK(a.run(*x).error().code == ErrorCode::kCancelled);
  CHECK(b.run(*y) == true);
  CHECK(a.run(*x) == true);
  y->cancel();
  REQUIRE(arena->set_budget(16_MiB));
  CHECK(b.run(*y).error().code == ErrorCode::kCancelled);
  CHECK(a.run(*x) == true);
  CHECK(b.run(*y) == true);
}

TEST_CASE("two threads in one arena: one is told so, none is wrong") {
  const Net a(1), b(2);
  const auto arena = make_arena({.budget = 16_MiB, .threads = 2});
  const auto x = join(a, arena), y = join(b, arena);
  std::atomic<int> right{0}, refused{0}, wrong{0};
  std::atomic<bool> ended{false};
  const auto work = [&](const Net& net, Session& session) {
    for (int i = 0; i < 200; ++i) {
      const auto result = net.run(session);
      if (!result) ++(result.error().code == ErrorCode::kInvalidArgument ? refused : wrong);
      if (result) ++(*result ? right : wrong);
    }
  };
  std::thread first([&] { work(a, *x); });
  std::thread second([&] { work(b, *y); });
  std::thread third([&] {
    while (!ended) {
      static_cast<void>(arena->set_budget(8_MiB));
      static_cast<void>(Session::create(a.model, {.arena = arena}));
      static_cast<void>(arena->memory());
    }
  });
  first.join();
  second.join();
  ended = true;
  third.join();
  CHECK(wrong == 0);
  CHECK(right + refused == 400);
  CHECK(a.run(*x) == true);
  CHECK(b.run(*y) == true);
}

TEST_CASE("arena and sessions end in any order, also beside a run") {
  const Net a(1), b(2);
  auto arena = make_arena({.budget = 16_MiB});
  auto x = join(a, arena), y = join(b, arena), z = join(a, arena);
  arena.reset();
  REQUIRE(a.run(*x) == true);
  REQUIRE(a.run(*z) == true);
  x.reset();
  CHECK(b.run(*y) == true);
  CHECK(a.run(*z) == true);
  CHECK(z->stats().bytes_read == 0_B);  // what x had read is z's too
  std::atomic<bool> begun{false};
  std::thread other([&] {
    begun = true;
    for (int i = 0; i < 50; ++i) static_cast<void>(b.run(*y));
  });
  while (!begun) std::this_thread::yield();
  z.reset();  // waits for the call that is under way
  other.join();
  CHECK(b.run(*y) == true);
}

TEST_CASE("sessions that an arena cannot have are refused") {
  const Net net;
  CHECK_FALSE(SharedArena::create({.threads = 0}));
  const auto arena = make_arena({.budget = 16_MiB, .threads = 2});
  CHECK_FALSE(Session::create(net.model, {.threads = 3, .arena = arena}));
  CHECK_FALSE(Session::create(net.model, {.scope = BudgetScope::kProcess, .arena = arena}));
  CHECK_FALSE(Session::create(net.model, {.arena = arena, .tuning = {.compute_cpus = {0}}}));
  CHECK_FALSE(Session::create(nullptr, {.arena = arena}));
  auto planned = plan_session(*net.model, {.threads = 2, .repeat = true});
  REQUIRE(planned);
  const auto session = join(net, arena, {.repeat = true, .plan = &planned->plan});
  CHECK(net.run(*session) == true);
  planned->plan.buffers.front().kind = plan::BufferKind::kState;
  CHECK_FALSE(Session::create(net.model, {.plan = &planned->plan, .arena = arena}));
  CHECK(net.run(*session) == true);
}

TEST_CASE("what a session has overwritten is read again by the others when it was closed in its turn") {
  for (const Bytes more : {0_B, 256_KiB, 1_MiB, 16_MiB}) {
    CAPTURE(more.count());
    const Net a(1), b(2);
    const auto arena = make_arena({.budget = std::max(a.minimum(), b.minimum()) + 512_KiB + more});
    const auto x = join(a, arena);
    auto y = join(b, arena);
    for (int round = 0; round < 2; ++round) REQUIRE((a.run(*x) == true && b.run(*y) == true));
    y.reset();
    CHECK(a.run(*x) == true);
    CHECK(a.run(*x) == true);
  }
}

TEST_CASE("memory of a session that ends goes back") {
  const Net a(1, {64, 2048, 1024, 10}), b(2);
  const auto arena = make_arena({});
  auto x = join(b, arena);
  Bytes held;
  {
    const auto y = join(a, arena);
    REQUIRE((b.run(*x) == true && a.run(*y) == true));
    held = engine::read_process_memory().resident;
  }
  if (kResidentIsOurs) CHECK(engine::read_process_memory().resident + 7_MiB < held);
  CHECK(b.run(*x) == true);
  CHECK(x->stats().bytes_read == 0_B);
  x.reset();
  CHECK(arena->memory().arena == 0_B);
  REQUIRE(arena->set_budget(4_MiB));
  const auto z = join(b, arena);
  CHECK(b.run(*z) == true);
}

TEST_CASE("a hundred models in turn through one arena take no memory and no descriptor") {
  std::vector<std::unique_ptr<Net>> nets;
  for (std::uint32_t seed = 1; seed <= 10; ++seed)
    nets.push_back(std::make_unique<Net>(seed, std::vector<std::int64_t>{64, 256 + 32 * seed, 384, 10}));
  Bytes least;
  for (const auto& net : nets) least = std::max(least, net->minimum());
  const auto arena = make_arena({.budget = least + 1_MiB});
  const auto resident = join(*nets[0], arena);
  const auto go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Net& net = *nets[static_cast<std::size_t>(i) % nets.size()];
      auto model = Model::open(net.path.str());
      REQUIRE(model);
      auto session = Session::create(*model, {.repeat = true, .arena = arena, .tuning = {.search_ms = 0}});
      if (!session) FAIL(session.error().to_string());
      REQUIRE(net.run(**session) == true);
      REQUIRE(nets[0]->run(*resident) == true);
      REQUIRE(within(*arena));
    }
    engine::release_free_heap();
  };
  go(20);
  const std::size_t descriptors = test::open_descriptors();
  REQUIRE(descriptors > 0);
  const Bytes before = engine::read_process_memory().resident;
  go(100);
  CHECK(test::open_descriptors() == descriptors);
  // The kernel's counter wobbles by a quarter of a MiB.
  if (kResidentIsOurs) CHECK(engine::read_process_memory().resident <= before + std::max(256_KiB, Bytes(before.count() / 100)));
}

TEST_CASE("many sessions at once stay in one budget, and so does the process") {
  std::vector<std::unique_ptr<Net>> nets;
  for (std::uint32_t seed = 1; seed <= 6; ++seed)
    nets.push_back(std::make_unique<Net>(seed, std::vector<std::int64_t>{64, 1024, 1024, 10}));
  const auto arena = make_arena({.budget = 12_MiB});
  const Bytes before = engine::read_process_memory().resident;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 24; ++i)
    sessions.push_back(join(*nets[static_cast<std::size_t>(i) % nets.size()], arena, {.repeat = true, .tuning = {.search_ms = 0}}));
  CHECK(within(*arena));
  for (int turn = 0; turn < 72; ++turn) {
    const std::size_t which = static_cast<std::size_t>(turn) % sessions.size();
    REQUIRE(nets[which % nets.size()]->run(*sessions[which]) == true);
    // What planning leaves on the free heap is not the arena's: a margin for it, of an arena of 10 MiB and weights of 24.
    if (kResidentIsOurs) REQUIRE(engine::read_process_memory().resident <= before + 12_MiB + 2_MiB);
  }
}

}  // namespace sluice
