#include "sluice/plan/plan_file.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "sluice/core/hash.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"

namespace sluice::plan {
namespace {

constexpr std::size_t kPrefixSize = 32;

Plan sample_plan() {
  Plan plan;
  plan.policy = "sluice";
  plan.model_hash = 0x0123456789abcdef;
  plan.threads = 2;
  plan.repeat = true;
  plan.capacity = kUnlimitedBytes;
  plan.arena_bytes = Bytes(81920);
  plan.resident_bytes = Bytes(4096);
  plan.streamed_bytes = Bytes(65536);
  plan.minimum_capacity = Bytes(40960);
  plan.buffers = {{BufferKind::kInput, Bytes(768), 64, Bytes(0), {0, 1}, false},
                  {BufferKind::kWeight, Bytes(65536), 4096, Bytes(8192), {-1, 2}, true},
                  {BufferKind::kWorkspace, Bytes(1000), 64, Bytes(77824), {1, 2}, false},
                  {BufferKind::kSums, Bytes(512), 64, Bytes(79872), {0, 2}, false}};
  plan.tensors = {{BufferId(0), Bytes(64), 96, 12, 3}, {}};
  plan.operands = {{WeightId(5), {2, 4}, LoadId(0)}};
  plan.steps = {{NodeId(0), KernelId{7}, {0, 4}, {16, 32}, BufferId(2), 0, 1, 1}, {NodeId(1), KernelId{9}, {0, 1}, {0, 8}, {}, 1, 0, 0}};
  plan.loads = {{{Bytes(std::uint64_t{5} << 32), Bytes(65536)}, BufferId(1), 3, 2, false, -1, {0, 2}}};
  plan.loads[0].form = model::StretchForm::kCoded;
  plan.steps[1].sums = BufferId(3);
  plan.steps[1].alone = true;
  plan.steps[1].reduction = {64, 129};
  plan.passing = {{TensorId(4), true, Bytes(4096)}, {TensorId(6), false, Bytes()}};
  plan.blocks = {{0, TensorId(4), {0, 4}, {0, 32}, Bytes(128), Passage::kStored},
                 {1, TensorId(6), {0, 1}, {0, 8}, Bytes(64), Passage::kHandedOver}};
  plan.prediction = {1.5, 1.25, 1.0, 0.75, 0.5};
  return plan;
}

/// The sample with plans of two subgraphs.
Plan nested_plan() {
  Plan plan = sample_plan();
  plan.subplans = {sample_plan(), sample_plan()};
  plan.subplans[1].policy = "of a branch";
  return plan;
}

/// The bytes that `save_plan` writes.
std::string saved(const Plan& plan) {
  const TemporaryDirectory directory;
  REQUIRE(save_plan(plan, directory.file("p")));
  return read_text(directory.file("p"));
}

Result<Plan> load_bytes(const std::string& bytes) {
  const ScopedFileOps memory(MemoryFile::ops());
  MemoryFile::bytes() = bytes;
  return load_plan("memory");
}

/// `text` with its hash made right again, so that what lies behind the hash is reached.
std::string with_hash(std::string text) {
  const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(text)).subspan(kPrefixSize));
  text.replace(24, sizeof hash, reinterpret_cast<const char*>(&hash), sizeof hash);
  return text;
}

}  // namespace

TEST_CASE("a plan comes back as it was saved") {
  const Plan plan = sample_plan();
  const std::string bytes = saved(plan);
  const auto loaded = load_bytes(bytes);
  INFO((loaded ? "" : loaded.error().to_string()));
  REQUIRE(loaded);
  CHECK(loaded->policy == "sluice");
  CHECK(loaded->model_hash == plan.model_hash);
  CHECK(loaded->capacity == kUnlimitedBytes);
  CHECK(loaded->buffers[1].lifetime == StepRange{-1, 2});
  CHECK_FALSE(loaded->tensors[1].buffer.valid());
  CHECK(loaded->steps[0].kernel == KernelId{7});
  CHECK(loaded->operands[0].panels == PanelRange{2, 4});
  CHECK(loaded->loads[0].file == plan.loads[0].file);
  CHECK(loaded->loads[0].gate == -1);
  CHECK(loaded->loads[0].form == model::StretchForm::kCoded);
  CHECK(loaded->steps[0].reduction == kWholeReduction);
  CHECK_FALSE(loaded->steps[0].sums.valid());
  CHECK_FALSE(loaded->steps[0].alone);
  CHECK(loaded->steps[1].alone);
  CHECK(loaded->steps[1].reduction == ReductionRange{64, 129});
  CHECK(loaded->steps[1].sums == BufferId(3));
  REQUIRE(loaded->passing.size() == 2);
  CHECK(loaded->passing[0].tensor == TensorId(4));
  CHECK(loaded->passing[0].spilled);
  CHECK(loaded->passing[0].file_offset == Bytes(4096));
  CHECK_FALSE(loaded->passing[1].spilled);
  REQUIRE(loaded->blocks.size() == 2);
  CHECK(loaded->blocks[1].step == 1);
  CHECK(loaded->blocks[1].tensor == TensorId(6));
  CHECK(loaded->blocks[0].rows == RowRange{0, 4});
  CHECK(loaded->blocks[0].channels == ChannelRange{0, 32});
  CHECK(loaded->blocks[0].offset == Bytes(128));
  CHECK(loaded->blocks[0].passage == Passage::kStored);
  CHECK(loaded->prediction.compute_ms == 0.5);
  CHECK(saved(*loaded) == bytes);
}

TEST_CASE("a plan without loads, as of a model without weights, comes back") {
  for (std::size_t steps = 0; steps < 4; ++steps) {  // what comes before an empty list decides where it lies
    Plan plan = sample_plan();
    plan.loads.clear();
    plan.operands.clear();
    plan.steps.resize(steps, plan.steps.front());
    plan.blocks.clear();
    for (Step& step : plan.steps) step.first_operand = step.operand_count = step.loads_needed = 0;
    const auto loaded = load_bytes(saved(plan));
    INFO((loaded ? "" : loaded.error().to_string()));
    REQUIRE(loaded);
    CHECK(loaded->loads.empty());
    CHECK(loaded->steps.size() == steps);
  }
}

TEST_CASE("sub-plans come back, and theirs, as deep as subgraphs lie in each other") {
  const Plan plan = nested_plan();
  const std::string bytes = saved(plan);
  const auto loaded = load_bytes(bytes);
  INFO((loaded ? "" : loaded.error().to_string()));
  REQUIRE(loaded);
  REQUIRE(loaded->subplans.size() == 2);
  CHECK(loaded->subplans[1].policy == "of a branch");
  CHECK(loaded->subplans[0].steps[1].reduction == ReductionRange{64, 129});
  CHECK(saved(*loaded) == bytes);

  Plan deep = sample_plan();
  for (int depth = 0; depth < model::kMaxNested; ++depth) {
    Plan around = sample_plan();
    around.subplans = {std::move(deep)};
    deep = std::move(around);
  }
  const auto nested = load_bytes(saved(deep));
  REQUIRE(nested);
  CHECK(saved(*nested) == saved(deep));
  Plan deeper = sample_plan();
  deeper.subplans = {std::move(deep)};
  CHECK(load_bytes(saved(deeper)).error().code == ErrorCode::kInvalidPlan);
  Plan broken = plan;
  broken.subplans[1].threads = 0;
  CHECK(load_bytes(saved(broken)).error().code == ErrorCode::kInvalidPlan);
}

TEST_CASE("sub-plans that share their parts in the file do not grow in memory") {
  // Two hundred entries, all of them led to the plan of the last, which has many steps.
  constexpr std::uint32_t kEntries = 200;
  Plan plan = sample_plan();
  Plan small = sample_plan();
  small.steps.clear();
  plan.subplans.assign(kEntries, small);
  plan.subplans.back().steps.assign(2000, sample_plan().steps[1]);
  std::string bytes = saved(plan);
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  std::size_t vector = kPrefixSize;
  while (word(vector) != kEntries) vector += 4;
  const std::size_t last = vector + 4 * std::size_t{kEntries};
  for (std::size_t at = vector + 4; at < last; at += 4) {
    const auto offset = static_cast<std::uint32_t>(last + word(last) - at);
    std::memcpy(bytes.data() + at, &offset, sizeof offset);
  }
  const auto loaded = load_bytes(with_hash(bytes));
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().to_string().find("more than once") != std::string::npos);
}

TEST_CASE("a plan cut anywhere is refused") {
  const std::string whole = saved(nested_plan());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    REQUIRE_FALSE(load_bytes(whole.substr(0, size)));
    if (size >= kPrefixSize) static_cast<void>(load_bytes(with_hash(whole.substr(0, size) + std::string(whole.size() - size, '\0'))));
  }
}

TEST_CASE("a plan with any bit flipped is refused, and is safe where the hash agrees") {
  const std::string whole = saved(nested_plan());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE_FALSE(load_bytes(flipped));
    if (bit / 8 >= kPrefixSize) static_cast<void>(load_bytes(with_hash(flipped)));
  }
}

TEST_CASE("plans with numbers that lead nowhere are refused") {
  using Break = void (*)(Plan&);
  const Break breaks[] = {
      [](Plan& p) { p.threads = 0; },
      [](Plan& p) { p.block = 1000; },
      [](Plan& p) { p.arena_bytes = Bytes(std::numeric_limits<std::uint64_t>::max()); },
      [](Plan& p) { p.buffers[0].alignment = 0; },
      [](Plan& p) { p.buffers[0].alignment = 48; },
      [](Plan& p) { p.buffers[0].size = Bytes(std::numeric_limits<std::uint64_t>::max()); },
      [](Plan& p) { p.buffers[0].offset = Bytes(std::uint64_t{1} << 63); },
      [](Plan& p) {
        p.buffers[0].lifetime = {2, 1};
      },
      [](Plan& p) { p.buffers[0].kind = static_cast<BufferKind>(8); },
      [](Plan& p) { p.tensors[0].buffer = BufferId(4); },
      [](Plan& p) { p.tensors[0].row_pitch = -1; },
      [](Plan& p) { p.tensors[0].ring_rows = std::numeric_limits<std::int64_t>::min(); },
      [](Plan& p) { p.steps[0].node = {}; },
      [](Plan& p) {
        p.steps[0].rows = {0, std::numeric_limits<std::int64_t>::max()};
      },
      [](Plan& p) {
        p.steps[0].channels = {-16, 0};
      },
      [](Plan& p) { p.steps[0].workspace = BufferId(4); },
      [](Plan& p) { p.steps[0].sums = BufferId(4); },
      [](Plan& p) {
        p.steps[0].reduction = {3, 2};
      },
      [](Plan& p) {
        p.steps[0].reduction = {1, std::numeric_limits<std::int64_t>::max()};
      },
      [](Plan& p) { p.loads[0].form = static_cast<model::StretchForm>(4); },
      [](Plan& p) { p.steps[0].first_operand = std::numeric_limits<std::uint32_t>::max(); },
      [](Plan& p) { p.steps[0].operand_count = 2; },
      [](Plan& p) { p.steps[0].loads_needed = 2; },
      [](Plan& p) { p.operands[0].weight = {}; },
      [](Plan& p) { p.operands[0].load = LoadId(1); },
      [](Plan& p) {
        p.operands[0].panels = {4, 2};
      },
      [](Plan& p) { p.loads[0].target = {}; },
      [](Plan& p) { p.loads[0].target = BufferId(4); },
      [](Plan& p) { p.loads[0].gate = std::numeric_limits<std::int64_t>::min(); },
      [](Plan& p) { p.loads[0].file.size = Bytes(std::numeric_limits<std::uint64_t>::max()); },
      [](Plan& p) { p.passing[0].tensor = {}; },
      [](Plan& p) { p.passing[0].file_offset = Bytes(std::numeric_limits<std::uint64_t>::max()); },
      [](Plan& p) { p.blocks[0].tensor = {}; },
      [](Plan& p) {
        p.blocks[0].rows = {0, std::numeric_limits<std::int64_t>::max()};
      },
      [](Plan& p) {
        p.blocks[0].channels = {8, 0};
      },
      [](Plan& p) { p.blocks[0].offset = Bytes(std::numeric_limits<std::uint64_t>::max()); },
      [](Plan& p) { p.blocks[0].passage = static_cast<Passage>(5); },
      [](Plan& p) { p.prediction.cold_ms = std::numeric_limits<double>::quiet_NaN(); },
  };
  for (std::size_t i = 0; i < std::size(breaks); ++i) {
    INFO("break " << i);
    Plan plan = sample_plan();
    breaks[i](plan);
    const auto loaded = load_bytes(saved(plan));
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == ErrorCode::kInvalidPlan);
  }
}

TEST_CASE("plans of other machines and versions are refused by name") {
  const std::string whole = saved(sample_plan());
  std::string other = whole;
  std::swap(other[8], other[11]);
  std::swap(other[9], other[10]);
  CHECK(load_bytes(other).error().code == ErrorCode::kUnsupportedVersion);
  for (const char version : {1, 2, 3, 5}) {
    other = whole;
    other[12] = version;
    CHECK(load_bytes(other).error().code == ErrorCode::kUnsupportedVersion);
  }
  CHECK(load_bytes("#!/bin/sh\necho this is not a plan, whatever it is called\n").error().code == ErrorCode::kInvalidPlan);
  const TemporaryDirectory directory;
  CHECK(load_plan(directory.file("absent")).error().code == ErrorCode::kIo);
}

TEST_CASE("a plan that cannot be written leaves nothing behind") {
  const TemporaryDirectory directory;
  for (int n = 0;; ++n) {
    FaultPlan::current() = {.fail_at = n, .error = ENOSPC};
    const ScopedFileOps ops(FaultPlan::ops());
    const Status status = save_plan(sample_plan(), directory.file("p"));
    FaultPlan::current() = {};
    if (status) {
      CHECK(n == 8);  // open, two writes, sync, the directory, link, rename, its sync
      break;
    }
    REQUIRE(status.error().os_error == ENOSPC);
    REQUIRE(directory.entries() == 0);
  }
}

}  // namespace sluice::plan
