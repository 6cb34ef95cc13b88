#include "sluice/executor/executor.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "src/kernels/reference/kernels.h"
#include "tests/executor/bench.h"

namespace sluice::executor {
namespace {

using toy::Bench;

constexpr KernelId kDense = kernels::offset_id(kernels::kernel_id::kReferenceBase, static_cast<int>(model::OpKind::kDense));

/// The dense kernel with a sleep of a millisecond before it.
const kernels::KernelDescriptor* find_lasting_kernel(KernelId id) noexcept {
  static const kernels::KernelDescriptor lasting = [] {
    kernels::KernelDescriptor kernel = *kernels::find_kernel(kDense);
    kernel.resolve = [](const model::Graph& graph, const model::Node& node, Isa isa) noexcept {
      kernels::ResolvedCall call = kernels::find_kernel(kDense)->resolve(graph, node, isa);
      call.run = [](const kernels::KernelCall& step) noexcept {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        kernels::reference::dense(step);
      };
      return call;
    };
    return kernel;
  }();
  return id == kDense ? &lasting : toy::find_toy_kernel(id);
}

std::int64_t count_loads(const plan::Plan& plan, bool resident) {
  return std::count_if(plan.loads.begin(), plan.loads.end(), [&](const plan::Load& load) { return load.resident == resident; });
}

}  // namespace

TEST_CASE("every cut, number of slots and delay gives the same bits, in the prologue and in each period") {
  for (std::int64_t panels : {1, 2, 6}) {
    for (int steps_per_load : {1, 3}) {
      for (int slots : {1, 2, 5}) {
        for (std::uint32_t threads : {1u, 2u}) {
          CAPTURE(panels, steps_per_load, slots, threads);
          Bench bench({.panels_per_step = panels, .steps_per_load = steps_per_load, .slots = slots, .threads = threads});
          bench.source.max_delay_us = 30;
          auto executor = bench.create();
          REQUIRE(executor);
          bench.set_input(**executor);
          for (int run = 0; run < 3; ++run) {
            bench.spoil(**executor);
            REQUIRE((*executor)->run());
            REQUIRE(bench.right(**executor));
          }
          CHECK(toy::touched_canaries(bench.plan, bench.arena) == 0);
        }
      }
    }
  }
}

TEST_CASE("a period reads the streamed loads only, and a resident plan nothing") {
  SECTION("streamed") {
    Bench bench;
    auto executor = bench.create();
    REQUIRE(executor);
    bench.set_input(**executor);
    REQUIRE((*executor)->run());
    CHECK(bench.source.reads == static_cast<std::int64_t>(bench.plan.loads.size()));
    REQUIRE((*executor)->run());
    CHECK(bench.source.reads == static_cast<std::int64_t>(bench.plan.loads.size()) + count_loads(bench.plan, false));
    Bytes streamed;
    for (const plan::Load& load : bench.plan.loads)
      if (!load.resident) streamed += load.file.size;
    CHECK((*executor)->stats().bytes_read == streamed);
  }
  SECTION("resident") {
    Bench bench({.resident = true});
    auto executor = bench.create();
    REQUIRE(executor);
    bench.set_input(**executor);
    REQUIRE((*executor)->run());
    const std::int64_t reads = bench.source.reads;
    bench.spoil(**executor);
    REQUIRE((*executor)->run());
    CHECK(bench.source.reads == reads);
    CHECK((*executor)->stats().bytes_read == Bytes(0));
    CHECK(bench.right(**executor));
  }
}

TEST_CASE("derived panels are prepared in the prologue, and their raw panels never read again") {
  for (std::int64_t panels : {1, 2}) {
    for (int layers : {1, 2, 4}) {
      CAPTURE(panels, layers);
      Bench bench({.panels_per_step = panels, .derived_layers = layers});
      bench.source.max_delay_us = 30;
      auto executor = bench.create();
      REQUIRE(executor);
      bench.set_input(**executor);
      const auto prepare_steps =
          std::count_if(bench.plan.steps.begin(), bench.plan.steps.end(), [](const plan::Step& s) { return s.prepare; });
      REQUIRE(prepare_steps > 0);
      const int before = toy::prepare_count();
      const auto loads = static_cast<std::int64_t>(bench.plan.loads.size());
      const auto repeated =
          std::count_if(bench.plan.loads.begin(), bench.plan.loads.end(), [](const plan::Load& load) { return load.streamed(); });
      for (int run = 0; run < 3; ++run) {
        bench.spoil(**executor);
        REQUIRE((*executor)->run());
        REQUIRE(bench.right(**executor));
        CHECK(toy::prepare_count() == before + prepare_steps);
        CHECK(bench.source.reads == loads + run * repeated);
      }
      CHECK(toy::touched_canaries(bench.plan, bench.arena) == 0);
      if (repeated == 0) continue;
      bench.source.fail_at = bench.source.reads;
      REQUIRE_FALSE((*executor)->run());
      bench.spoil(**executor);
      REQUIRE((*executor)->run());
      CHECK(bench.right(**executor));
      CHECK(toy::prepare_count() == before + 2 * prepare_steps);  // a clean prologue
    }
  }
}

TEST_CASE("an executor that leaves the arena writes nothing to it, and comes back to what it is told is held") {
  Bench bench({.slots = 5, .wrap = true, .derived_layers = 1});
  bench.source.max_delay_us = 100;
  auto created = bench.create();
  REQUIRE(created);
  Executor& executor = **created;
  const auto prepare_steps =
      std::count_if(bench.plan.steps.begin(), bench.plan.steps.end(), [](const plan::Step& step) { return step.prepare; });
  const auto streamed = std::count_if(bench.plan.loads.begin(), bench.plan.loads.end(), [](const plan::Load& l) { return l.streamed(); });
  const auto resident = count_loads(bench.plan, true);
  const auto run_after = [&](bool resident_held, bool derived_held) {
    CAPTURE(resident_held, derived_held);
    REQUIRE(executor.leave(nullptr));
    REQUIRE(executor.leave(nullptr));  // done twice, it is done
    executor.held().loads.assign(bench.plan.loads.size(), resident_held);
    executor.held().derived = derived_held;
    // Another's turn: what is not held is overwritten, and nothing comes in between.
    std::vector<std::byte> before(bench.plan.arena_bytes.count());
    std::vector<bool> kept(bench.plan.buffers.size(), false);
    for (const plan::Load& load : bench.plan.loads) kept[load.target.index()] = load.resident && resident_held;
    for (std::size_t b = 0; b < kept.size(); ++b) {
      const plan::Buffer& buffer = bench.plan.buffers[b];
      if (kept[b] || (buffer.kind == plan::BufferKind::kDerived && derived_held)) continue;
      std::memset(bench.arena.data() + buffer.offset.count(), 0x7F, buffer.size.count());
    }
    std::memcpy(before.data(), bench.arena.data(), before.size());
    const std::int64_t reads = bench.source.reads;
    const int prepared = toy::prepare_count();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(bench.source.reads == reads);
    REQUIRE(std::memcmp(before.data(), bench.arena.data(), before.size()) == 0);
    bench.set_input(executor);
    REQUIRE(executor.run());
    CHECK(bench.right(executor));
    CHECK(toy::prepare_count() == prepared + (derived_held ? 0 : prepare_steps));
    return bench.source.reads - reads;
  };
  bench.set_input(executor);
  REQUIRE(executor.run());
  REQUIRE(resident > 0);
  const auto raw = static_cast<std::int64_t>(bench.plan.loads.size()) - streamed - resident;  // what prepare steps read
  REQUIRE(raw > 0);
  for (int turn = 0; turn < 3; ++turn) {
    CHECK(run_after(true, false) >= streamed + raw);
    CHECK(run_after(false, true) >= streamed + resident);
    CHECK(run_after(false, false) >= streamed + raw + resident);
    REQUIRE(executor.leave(nullptr));
    CHECK((executor.held().derived && executor.held().loads == [&] {
      std::vector<bool> loads;
      for (const plan::Load& load : bench.plan.loads) loads.push_back(load.resident);
      return loads;
    }()));
    bench.set_input(executor);
    REQUIRE(executor.run());
    REQUIRE(bench.right(executor));
  }
  executor.cancel();
  REQUIRE(executor.leave(nullptr));  // a cancellation is of the next run
  REQUIRE_FALSE(executor.run());
  REQUIRE(executor.leave(nullptr));
  CHECK(executor.held().loads == std::vector<bool>(bench.plan.loads.size(), false));
  CHECK_FALSE(executor.held().derived);
}

TEST_CASE("weights that others keep are read by no run, after an error neither") {
  Bench bench({.slots = 5, .wrap = true, .derived_layers = 1});
  auto first = bench.create();
  REQUIRE(first);
  bench.set_input(**first);
  REQUIRE((*first)->run());
  REQUIRE((*first)->leave(nullptr));
  auto second = bench.create();
  REQUIRE(second);
  (*second)->keep_weights();
  (*second)->read_ahead(false);
  const auto streamed = std::count_if(bench.plan.loads.begin(), bench.plan.loads.end(), [](const plan::Load& l) { return l.streamed(); });
  REQUIRE(streamed > 0);
  const int prepared = toy::prepare_count();
  for (int run = 0; run < 6; ++run) {
    CAPTURE(run);
    const std::int64_t reads = bench.source.reads;
    if (run == 2) bench.source.fail_at = reads + streamed / 2;
    if (run == 4) (*second)->cancel();
    bench.set_input(**second);
    const Status status = (*second)->run();
    CHECK(status.has_value() == (run != 2 && run != 4));
    if (!status) continue;
    CHECK(bench.right(**second));
    CHECK(bench.source.reads == reads + streamed);  // not more, ahead
    REQUIRE((*second)->leave(nullptr));
  }
  CHECK(toy::prepare_count() == prepared);
}

TEST_CASE("an executor reads ahead only where that is wanted") {
  Bench bench({.slots = 5, .wrap = true});
  const auto streamed = std::count_if(bench.plan.loads.begin(), bench.plan.loads.end(), [](const plan::Load& l) { return l.streamed(); });
  auto executor = bench.create();
  REQUIRE(executor);
  for (int run = 0; run < 6; ++run) {
    CAPTURE(run);
    (*executor)->read_ahead(run >= 3);
    const std::int64_t reads = bench.source.reads;
    bench.set_input(**executor);
    REQUIRE((*executor)->run());
    CHECK(bench.right(**executor));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (run == 1 || run == 2) CHECK(bench.source.reads == reads + streamed);
    if (run == 3) CHECK(bench.source.reads > reads + streamed);
  }
}

TEST_CASE("wrapped loads go into the run before, and every run gives the same bits") {
  for (int slots : {3, 5, 15}) {
    for (int in_flight : {1, 4}) {
      for (unsigned delay_us : {0u, 100u}) {
        CAPTURE(slots, in_flight, delay_us);
        Bench bench({.slots = slots, .wrap = true});
        const auto wrapped =
            std::count_if(bench.plan.loads.begin(), bench.plan.loads.end(), [](const plan::Load& l) { return l.gate < 0; });
        REQUIRE(wrapped > 0);
        bench.source.max_delay_us = delay_us;
        auto executor = bench.create({.read = {.in_flight = in_flight}});
        REQUIRE(executor);
        bench.set_input(**executor);
        Bytes streamed;
        for (const plan::Load& load : bench.plan.loads)
          if (load.streamed()) streamed += load.file.size;
        for (int run = 0; run < 6; ++run) {
          bench.spoil(**executor);
          REQUIRE((*executor)->run());
          REQUIRE(bench.right(**executor));
          if (run > 0) CHECK((*executor)->stats().bytes_read == streamed);
          if (run == 3) usleep(3000);  // all that is wrapped has arrived
          if (run == 3 && delay_us == 0) {
            const std::int64_t loads = static_cast<std::int64_t>(bench.plan.loads.size());
            CHECK(bench.source.reads <= loads + run * count_loads(bench.plan, false) + wrapped);
          }
        }
        executor->reset();
        CHECK(toy::touched_canaries(bench.plan, bench.arena) == 0);
      }
    }
  }
}

TEST_CASE("whichever read of a plan with wrapped loads fails, one run says so and all others are right") {
  const Bench counting({.slots = 5, .wrap = true});
  const auto loads = static_cast<std::int64_t>(counting.plan.loads.size());
  for (std::int64_t n = 0; n < loads + 2 * count_loads(counting.plan, false); ++n) {
    CAPTURE(n);
    Bench bench({.slots = 5, .wrap = true});
    bench.source.fail_at = n;
    auto executor = bench.create();
    REQUIRE(executor);
    bench.set_input(**executor);
    int failures = 0;
    for (int run = 0; run < 5; ++run) {
      bench.spoil(**executor);
      const Status status = (*executor)->run();
      failures += !status;
      if (status) {
        CHECK(bench.right(**executor));
      } else {
        CHECK(status.error().os_error == EIO);
      }
    }
    CHECK(failures == 1);
  }
}

TEST_CASE("a run that is called off says so, and the next one is right") {
  for (bool wrap : {false, true}) {
    for (unsigned after_us : {0u, 100u, 300u, 1000u, 3000u}) {
      CAPTURE(wrap, after_us);
      Bench bench({.slots = 5, .wrap = wrap});
      bench.source.max_delay_us = 200;
      auto executor = bench.create();
      REQUIRE(executor);
      bench.set_input(**executor);
      int cancelled = 0;
      for (int round = 0; round < 5; ++round) {
        std::thread caller([&] {
          usleep(after_us);
          (*executor)->cancel();
        });
        for (int run = 0; run < 3; ++run) {
          bench.spoil(**executor);
          const Status status = (*executor)->run();
          if (status) {
            CHECK(bench.right(**executor));
          } else {
            CHECK(status.error().code == ErrorCode::kCancelled);
            ++cancelled;
          }
        }
        caller.join();
      }
      // The last cancellation may have come after the last run: then it is the next one's.
      if (!(*executor)->run()) ++cancelled;
      CHECK(cancelled == 5);
      REQUIRE((*executor)->run());
      CHECK(bench.right(**executor));
    }
  }
}

TEST_CASE("an executor ends while wrapped loads are under way") {
  for (int runs : {1, 2}) {
    Bench bench({.slots = 15, .wrap = true});
    bench.source.max_delay_us = 2000;
    auto executor = bench.create();
    REQUIRE(executor);
    bench.set_input(**executor);
    for (int run = 0; run < runs; ++run) REQUIRE((*executor)->run());
    executor->reset();
    const std::int64_t reads = bench.source.reads;
    usleep(3000);
    CHECK(bench.source.reads == reads);
    CHECK(toy::touched_canaries(bench.plan, bench.arena) == 0);
  }
}

TEST_CASE("whichever read fails, the run says so and the next one is right") {
  for (int slots : {1, 3}) {
    const Bench counting({.steps_per_load = 2, .slots = slots});
    const auto loads = static_cast<std::int64_t>(counting.plan.loads.size());
    for (std::int64_t n = 0; n < loads + count_loads(counting.plan, false); ++n) {
      CAPTURE(slots, n);
      Bench bench({.steps_per_load = 2, .slots = slots});
      bench.source.fail_at = n;
      auto executor = bench.create();
      REQUIRE(executor);
      bench.set_input(**executor);
      if (n >= loads) REQUIRE((*executor)->run());
      const Status failed = (*executor)->run();
      REQUIRE_FALSE(failed);
      CHECK(failed.error().code == ErrorCode::kIo);
      CHECK(failed.error().os_error == EIO);
      const std::int64_t reads = bench.source.reads;
      bench.spoil(**executor);
      REQUIRE((*executor)->run());
      CHECK(bench.right(**executor));
      CHECK(bench.source.reads == reads + loads);  // a clean prologue
      REQUIRE((*executor)->run());
      CHECK(bench.right(**executor));
    }
  }
}

TEST_CASE("a wrong bit anywhere in a payload is found before a step uses it") {
  const Bench counting;
  for (std::size_t n = 0; n < counting.plan.loads.size(); ++n) {
    const plan::Load& load = counting.plan.loads[n];
    for (std::uint32_t s = load.first_stretch; s < load.first_stretch + load.stretch_count; ++s) {
      const model::Stretch& stretch = counting.model.graph.stretches[s];
      for (Bytes at : {stretch.offset, stretch.offset + stretch.stored_size - Bytes(1)}) {
        CAPTURE(n, s, at.count());
        Bench bench;
        bench.source.corrupt_byte = static_cast<std::int64_t>(at.count());
        auto executor = bench.create();
        REQUIRE(executor);
        bench.set_input(**executor);
        const Status failed = (*executor)->run();
        REQUIRE_FALSE(failed);
        CHECK(failed.error().code == ErrorCode::kChecksumMismatch);
        CHECK_FALSE(failed.error().has_numbers);
        CHECK(failed.error().to_string().find(" at file offset " + std::to_string(stretch.offset.count()) + ":") != std::string::npos);
        bench.source.corrupt_byte = -1;
        REQUIRE((*executor)->run());
        CHECK(bench.right(**executor));
      }
    }
  }
}

TEST_CASE("a file that changed while it was read is an error of that run") {
  Bench bench;
  auto executor = bench.create();
  REQUIRE(executor);
  bench.set_input(**executor);
  REQUIRE((*executor)->run());
  bench.source.changed = true;
  const Status failed = (*executor)->run();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kFileChanged);
  bench.source.changed = false;
  REQUIRE((*executor)->run());
  CHECK(bench.right(**executor));
}

TEST_CASE("an executor that never ran, or whose last run failed, ends cleanly") {
  for (bool run : {false, true}) {
    Bench bench;
    bench.source.fail_at = 3;
    auto executor = bench.create();
    REQUIRE(executor);
    bench.set_input(**executor);
    if (run) CHECK_FALSE((*executor)->run());
    executor->reset();
    CHECK(toy::touched_canaries(bench.plan, bench.arena) == 0);
  }
}

TEST_CASE("a rate limit holds reading back") {
  Bench bench;
  auto executor = bench.create({.read = {.bytes_per_second_limit = 20e6}});
  REQUIRE(executor);
  bench.set_input(**executor);
  REQUIRE((*executor)->run());
  CHECK(bench.right(**executor));
  const RunStats& stats = (*executor)->stats();
  CHECK(static_cast<double>(stats.load_ns) >= static_cast<double>(stats.bytes_read.count()) / 20e6 * 1e9);
  CHECK(stats.stall_ns > 0);
  CHECK(stats.wall_ns >= stats.stall_ns);
}

TEST_CASE("a slower CPU is emulated: each step takes so many times its time") {
  Bench bench({.resident = true});
  const auto create = [&](double slowdown) {
    return Executor::create(bench.model.graph, bench.plan, bench.source, bench.arena, *bench.pool,
                            {.time_steps = true, .compute_slowdown = slowdown, .find_kernel = &find_lasting_kernel});
  };
  auto executor = create(3);
  REQUIRE(executor);
  bench.set_input(**executor);
  REQUIRE((*executor)->run());
  CHECK(bench.right(**executor));
  for (std::size_t i = 0; i < bench.plan.steps.size(); ++i) {
    if (bench.plan.steps[i].kernel == kDense) CHECK((*executor)->step_times()[i].compute_ns >= 3'000'000);
  }
  for (const double refused : {0.5, 1e9, std::nan("")}) CHECK(create(refused).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a plan that the kernels cannot run is refused") {
  Bench bench({.threads = 1});
  const auto refused = [&] {
    auto executor = bench.create();
    return !executor && executor.error().code == ErrorCode::kInvalidPlan;
  };
  SECTION("it is accepted as it is") { CHECK_FALSE(refused()); }
  SECTION("an unknown kernel") {
    bench.plan.steps[1].kernel = KernelId{9999};
    CHECK(refused());
  }
  SECTION("a kernel of another operator") {
    bench.plan.steps[1].kernel = kernels::offset_id(kernels::kernel_id::kReferenceBase, static_cast<int>(model::OpKind::kPool));
    CHECK(refused());
  }
  SECTION("a weight that no load brings") {
    bench.plan.steps[1].operand_count = 1;
    CHECK(refused());
  }
  SECTION("a prepare step of a kernel that derives nothing") {
    bench.plan.steps[1].prepare = true;
    CHECK(refused());
  }
  SECTION("derived panels that are not the step's, or have no room") {
    Bench deriving({.derived_layers = 1});
    const auto last = std::find_if(deriving.plan.steps.rbegin(), deriving.plan.steps.rend(), [](const plan::Step& s) { return s.prepare; });
    REQUIRE(deriving.create());
    SECTION("not the step's") { last->derived.panels.end -= 1; }
    SECTION("more than the weight has") { last->derived.panels.end += 1; }
    SECTION("no room") { deriving.plan.buffers[last->derived.buffer.index()].size -= Bytes(1); }
    SECTION("not in a buffer of their kind") { deriving.plan.buffers[last->derived.buffer.index()].kind = plan::BufferKind::kWorkspace; }
    SECTION("none") { last->derived.buffer = BufferId(); }
    const auto executor = deriving.create();
    REQUIRE_FALSE(executor);
    CHECK(executor.error().code == ErrorCode::kInvalidPlan);
  }
  SECTION("a tensor without a place") {
    bench.plan.tensors[1].buffer = BufferId();
    CHECK(refused());
  }
  SECTION("a tensor read and written in place by a kernel that cannot") {
    bench.plan.tensors[1] = bench.plan.tensors[0];
    CHECK(refused());
  }
  SECTION("addresses beyond the arena") {
    bench.plan.arena_bytes = bench.arena.reserved() + Bytes(1);
    CHECK(refused());
  }
  SECTION("more threads than workspaces are for") {
    bench.pool = *make_thread_pool(2);
    CHECK(refused());
  }
  SECTION("a load off the disk's blocks") {
    bench.plan.buffers[bench.plan.loads[1].target.index()].offset += Bytes(64);
    CHECK(refused());
  }
}

}  // namespace sluice::executor
