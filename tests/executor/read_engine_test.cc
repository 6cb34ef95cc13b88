#include "src/executor/read_engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <random>

#include "tests/executor/coded_stretches.h"

namespace sluice::executor {
namespace {

constexpr std::uint64_t kBlock = 4096;
constexpr std::byte kUntouched{0xA5};

/// The time of these tests: it passes only where somebody waits.
std::int64_t now = 0;
constexpr ReadClock kClock{[]() noexcept { return now; }, [](std::int64_t ns) noexcept { now += ns; }};

/// Reads that bring their bytes when, and in the order in which, a test lets them end.
class FakeQueue final : public model::ReadQueue {
 public:
  struct Read {
    int slot;
    model::FileRange range;
    std::byte* target;
  };
  explicit FakeQueue(const std::vector<std::byte>& file) : file_(file) {}

  void start(int slot, model::FileRange range, std::byte* target) noexcept override {
    started.push_back({slot, range, target});
    ++starts;
  }
  Ended wait(std::int64_t timeout_ns) noexcept override {
    if (stuck || started.empty()) {
      now += timeout_ns;
      return {};
    }
    const auto read = started.begin() + static_cast<std::ptrdiff_t>(choose ? choose(started.size()) : 0);
    const Read ended = *read;
    started.erase(read);
    if (starts - static_cast<int>(started.size()) - 1 == fail_at) return {ended.slot, fail(make_io_error("fake", "it failed", EIO))};
    // A direct read brings whole blocks.
    std::memset(ended.target, 0x77, align_up(ended.range.size.count(), kBlock));
    std::memcpy(ended.target, file_.data() + ended.range.offset.count(), ended.range.size.count());
    return {ended.slot, {}};
  }

  std::deque<Read> started;
  int starts = 0;
  bool stuck = false;
  int fail_at = -1;  // the read that ends as the so-and-so-manieth
  std::function<std::size_t(std::size_t)> choose;

 private:
  const std::vector<std::byte>& file_;
};

/// Which stretches were decoded, in order.
class NotingDecoder final : public Decoder {
 public:
  NotingDecoder(std::unique_ptr<Decoder> decoder, std::vector<std::uint32_t>& noted) : decoder_(std::move(decoder)), noted_(noted) {}
  Status decode(const StretchBytes& bytes) noexcept override {
    noted_.push_back(bytes.index);
    return decoder_->decode(bytes);
  }

 private:
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::uint32_t>& noted_;
};

struct BenchOptions {
  ReadOptions read{.size = Bytes(2 * kBlock), .in_flight = 4};
  int requests = 3;
  int stretches = 5;  // of each request
  std::size_t stretch_bytes = 3 * 1024;
  bool coded = false;
  std::uint32_t seed = 1;
};

/// A file of requests, their regions with a canary after each, and an engine over a fake queue.
struct Bench {
  explicit Bench(const BenchOptions& options = {}) : engine(graph, options.read, kClock) {
    now = 0;
    graph.name = "fake";
    std::mt19937 random(options.seed);
    for (int r = 0; r < options.requests; ++r) {
      const auto first = static_cast<std::uint32_t>(graph.stretches.size());
      file.resize(align_up(file.size(), kBlock) + 64 * (random() % 8), std::byte{0x11});
      const Bytes begin(align_down(file.size(), kBlock));
      values.emplace_back();
      for (int s = 0; s < options.stretches; ++s) {
        const std::vector<std::byte> raw = toy::draw_coarse_values(options.stretch_bytes + 64 * (random() % 16), random());
        graph.stretches.push_back(toy::append_stretch(file, raw, options.coded && random() % 3 != 0));
        values.back().insert(values.back().end(), raw.begin(), raw.end());
      }
      const model::FileRange range{begin, Bytes(align_up(file.size(), kBlock)) - begin};
      const Bytes room = region_bytes(range, Bytes(values.back().size()), !options.coded);
      regions.emplace_back(room.count() + kBlock, kUntouched);
      requests.push_back(lay_out(graph, range, first, static_cast<std::uint32_t>(options.stretches), regions.back().data()));
    }
    file.resize(align_up(file.size(), kBlock));
    auto owned = std::make_unique<FakeQueue>(file);
    queue = owned.get();
    Decoders decoders = *toy::make_halves_decoders(graph);
    for (std::unique_ptr<Decoder>& decoder : decoders)
      if (decoder) decoder = std::make_unique<NotingDecoder>(std::move(decoder), decoded);
    engine.open(std::move(owned), std::move(decoders));
  }

  Status step(Verdict verdict = Verdict::kGoOn) {
    return engine.step([verdict] { return verdict; });
  }
  Status run() {
    for (std::size_t next = 0; engine.published() < requests.size();) {
      for (engine.fill(); next < requests.size() && engine.has_room(); ++next) engine.push(requests[next]);
      SLUICE_RETURN_IF_ERROR(step());
    }
    return {};
  }
  bool right(std::size_t r) const {
    return std::memcmp(requests[r].raw, values[r].data(), values[r].size()) == 0 &&
           std::all_of(regions[r].end() - kBlock, regions[r].end(), [](std::byte b) { return b == kUntouched; });
  }

  model::Graph graph;
  std::vector<std::byte> file;
  std::vector<std::vector<std::byte>> values;   // of each request
  std::vector<std::vector<std::byte>> regions;  // and where it goes
  std::vector<ReadRequest> requests;
  std::vector<std::uint32_t> decoded;
  FakeQueue* queue = nullptr;
  ReadEngine engine;
};

}  // namespace

TEST_CASE("reads end in any order; stretches are decoded and requests published in theirs") {
  for (const bool coded : {false, true}) {
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
      CAPTURE(coded, seed);
      std::mt19937 random(seed);
      Bench bench({.read = {.size = Bytes(kBlock * (1 + seed % 3)), .in_flight = 1 + static_cast<int>(seed % 7)},
                   .requests = 4,
                   .stretches = 1 + static_cast<int>(seed % 9),
                   .coded = coded,
                   .seed = seed});
      bench.queue->choose = [&](std::size_t n) { return random() % n; };
      std::uint64_t published = 0;
      std::size_t next = 0;
      while (bench.engine.published() < bench.requests.size()) {
        for (bench.engine.fill(); next < bench.requests.size() && bench.engine.has_room(); ++next) bench.engine.push(bench.requests[next]);
        REQUIRE(bench.engine.in_flight() <= 1 + static_cast<int>(seed % 7));
        REQUIRE(bench.step());
        for (; published < bench.engine.published(); ++published) REQUIRE(bench.right(published));
      }
      CHECK(std::is_sorted(bench.decoded.begin(), bench.decoded.end()));
      CHECK(bench.decoded.size() == bench.graph.stretches.size());
      CHECK_FALSE(bench.engine.pending());
      Bytes bytes;
      for (const ReadRequest& request : bench.requests) bytes += request.range.size;
      CHECK(bench.engine.take_bytes_read() == bytes);
      CHECK(bench.engine.take_bytes_read() == Bytes());
    }
  }
}

TEST_CASE("an empty request is published in turn, and reads nothing") {
  Bench bench({.requests = 3});
  const std::vector<ReadRequest> whole = bench.requests;
  for (const std::size_t empty : {0u, 1u, 2u}) {
    bench.requests = whole;
    bench.requests[empty] = {.range = {whole[empty].range.offset, Bytes()}, .stored = whole[empty].stored, .raw = whole[empty].raw};
    std::fill(bench.regions[empty].begin(), bench.regions[empty].end(), kUntouched);
    bench.decoded.clear();
    const std::uint64_t before = bench.engine.published();
    for (std::size_t next = 0; bench.engine.published() < before + 3;) {
      for (bench.engine.fill(); next < 3 && bench.engine.has_room(); ++next) bench.engine.push(bench.requests[next]);
      const std::uint64_t published = bench.engine.published() - before;
      if (published > empty) CHECK(bench.decoded.size() >= empty * 5);
      REQUIRE(bench.step());
    }
    CHECK(bench.decoded.size() == 10);
    for (std::size_t r = 0; r < 3; ++r)
      if (r != empty) CHECK(bench.right(r));
    CHECK(std::all_of(bench.regions[empty].begin(), bench.regions[empty].end(), [](std::byte b) { return b == kUntouched; }));
    CHECK(bench.engine.take_bytes_read() == whole[(empty + 1) % 3].range.size + whole[(empty + 2) % 3].range.size);
  }
}

TEST_CASE("stretches stored as used are read to where they stay, all others behind what they expand to") {
  const Bench raw;
  for (const ReadRequest& request : raw.requests) {
    CHECK(request.in_place);
    CHECK(request.raw - request.stored ==
          static_cast<std::ptrdiff_t>((raw.graph.stretches[request.first_stretch].offset - request.range.offset).count()));
  }
  const Bench coded({.coded = true});
  for (std::size_t r = 0; r < coded.requests.size(); ++r) {
    const ReadRequest& request = coded.requests[r];
    REQUIRE_FALSE(request.in_place);
    CHECK(request.raw == coded.regions[r].data());
    const std::size_t room = coded.regions[r].size() - kBlock;
    CHECK(room == align_up(coded.values[r].size(), kBlock) + 2 * kBlock);
    CHECK(request.stored + request.range.size.count() == request.raw + room);
    CHECK((request.stored - request.raw) % static_cast<std::ptrdiff_t>(kBlock) == 0);
  }
}

TEST_CASE("no more is under way than may be, and the next request waits until the one before is") {
  Bench bench({.read = {.size = Bytes(kBlock), .in_flight = 2}, .stretches = 4});
  REQUIRE(bench.engine.has_room());
  bench.engine.push(bench.requests[0]);
  CHECK(bench.engine.in_flight() == 2);
  CHECK_FALSE(bench.engine.has_room());
  bench.queue->choose = [](std::size_t n) { return n - 1; };  // the front piece ends last
  while (bench.engine.in_flight() > 0 && bench.queue->started.size() > 1) REQUIRE(bench.step());
  CHECK(bench.engine.published() == 0);
  REQUIRE(bench.run());
}

TEST_CASE("a rate limit costs the time that the bytes would take") {
  constexpr double kRate = 20e6;
  Bench bench({.read = {.size = Bytes(2 * kBlock), .in_flight = 4, .bytes_per_second_limit = kRate}});
  REQUIRE(bench.run());
  const double bytes = static_cast<double>(bench.engine.take_bytes_read().count());
  CHECK(static_cast<double>(now) == Approx(bytes / kRate * 1e9).epsilon(1e-5));
  // A device that nobody asks gives nothing away.
  now += 1'000'000'000;
  const std::int64_t later = now;
  bench.engine.push(bench.requests[0]);
  while (bench.engine.pending()) REQUIRE(bench.step());
  CHECK(static_cast<double>(now - later) == Approx(static_cast<double>(bench.requests[0].range.size.count()) / kRate * 1e9).epsilon(1e-5));
}

TEST_CASE("a pause of the rate limit ends when the run is called off") {
  Bench bench({.read = {.in_flight = 4, .bytes_per_second_limit = 1}});  // hours
  bench.engine.push(bench.requests[0]);
  REQUIRE(bench.step());
  const std::int64_t before = now;
  int looks = 0;
  const std::uint64_t published = bench.engine.published();
  while (bench.engine.published() == published && bench.engine.pending())
    static_cast<void>(bench.engine.step([&] { return ++looks == 3 ? Verdict::kCallOff : Verdict::kGoOn; }));
  CHECK(now - before == 2 * kPauseNs);
}

TEST_CASE("what is started during a pause of the rate limit follows without a gap") {
  constexpr double kRate = 20e6;
  Bench bench({.read = {.in_flight = 4, .bytes_per_second_limit = kRate}});
  REQUIRE(bench.requests.size() >= 2);
  const std::int64_t before = now;
  bench.engine.push(bench.requests[0]);
  REQUIRE(bench.step());  // the read has ended
  REQUIRE(bench.step());  // a part of the pause
  CHECK(bench.engine.published() == 0);
  CHECK(now - before == kPauseNs);
  REQUIRE(bench.engine.has_room());
  bench.engine.push(bench.requests[1]);
  while (bench.engine.pending()) REQUIRE(bench.step());
  const auto bytes = static_cast<double>((bench.requests[0].range.size + bench.requests[1].range.size).count());
  CHECK(static_cast<double>(now - before) == Approx(bytes / kRate * 1e9).epsilon(1e-5));
}

TEST_CASE("a read that does not end is given up after the time-out, and forgotten when it has ended") {
  Bench bench({.read = {.in_flight = 4, .timeout_ms = 1000}});
  bench.queue->stuck = true;
  bench.engine.push(bench.requests[0]);
  const int in_flight = bench.engine.in_flight();
  const Status stuck = bench.step();
  REQUIRE_FALSE(stuck);
  CHECK(stuck.error().code == ErrorCode::kIo);
  CHECK(stuck.error().os_error == ETIMEDOUT);
  CHECK(now == 1'000'000'000);
  CHECK_FALSE(bench.engine.settle(kPatienceNs));
  CHECK(now == 1'000'000'000 + 3 * kGlanceNs - (3 * kGlanceNs - kPatienceNs));
  CHECK(bench.engine.in_flight() == in_flight);
  const auto go_on = [] { return Verdict::kGoOn; };
  const Status still = bench.engine.clear(go_on);
  REQUIRE_FALSE(still);
  CHECK(still.error().os_error == ETIMEDOUT);
  CHECK(bench.engine.clear([] { return Verdict::kCallOff; }).error().code == ErrorCode::kCancelled);
  CHECK(bench.engine.in_flight() == in_flight);
  CHECK_FALSE(bench.engine.has_room());
  bench.queue->stuck = false;
  REQUIRE(bench.engine.clear(go_on));
  CHECK(bench.engine.in_flight() == 0);
  CHECK_FALSE(bench.engine.pending());
  REQUIRE(bench.run());
  for (std::size_t r = 0; r < bench.requests.size(); ++r) CHECK(bench.right(r));
}

TEST_CASE("a time-out counts from the last read that ended, and none may be set") {
  Bench bench({.read = {.size = Bytes(kBlock), .in_flight = 2, .timeout_ms = 1000}});
  bench.engine.push(bench.requests[0]);
  for (int glances = 0; bench.engine.published() == 0;) {
    bench.queue->stuck = ++glances % 40 != 0;
    if (bench.queue->stuck) {
      REQUIRE(bench.engine.step([&] { return Verdict::kLeave; }));
      continue;
    }
    bench.engine.fill();
    REQUIRE(bench.step());
  }
  CHECK(now > 1'000'000'000);
  Bench patient({.read = {.in_flight = 2, .timeout_ms = 0}});
  patient.queue->stuck = true;
  patient.engine.push(patient.requests[0]);
  const Status called_off = patient.engine.step([] { return now > 3'600'000'000'000 ? Verdict::kCallOff : Verdict::kGoOn; });
  CHECK(called_off.error().code == ErrorCode::kCancelled);
}

TEST_CASE("a wait is called off, or left, within a glance") {
  Bench bench;
  bench.queue->stuck = true;
  bench.engine.push(bench.requests[0]);
  REQUIRE(bench.step(Verdict::kLeave));
  CHECK(now == kGlanceNs);
  CHECK(bench.engine.status());
  CHECK(bench.step(Verdict::kCallOff).error().code == ErrorCode::kCancelled);
  CHECK(now == 2 * kGlanceNs);
}

TEST_CASE("the first error stays, and nothing is started or published after it") {
  for (int fail_at = 0; fail_at < 6; ++fail_at) {
    CAPTURE(fail_at);
    Bench bench;
    bench.queue->fail_at = fail_at;
    const Status failed = bench.run();
    REQUIRE_FALSE(failed);
    CHECK(failed.error().os_error == EIO);
    const std::uint64_t published = bench.engine.published();
    const int starts = bench.queue->starts;
    const std::size_t decoded = bench.decoded.size();
    CHECK_FALSE(bench.engine.has_room());
    bench.engine.fill();
    CHECK(bench.step().error().os_error == EIO);
    CHECK(bench.engine.call_off().error().os_error == EIO);
    CHECK(bench.queue->starts == starts);
    CHECK(bench.engine.published() == published);
    CHECK(bench.decoded.size() == decoded);
    bench.queue->fail_at = -1;
    REQUIRE(bench.engine.clear([] { return Verdict::kGoOn; }));
    CHECK(bench.engine.published() == published);
    bench.engine.push(bench.requests.back());
    while (bench.engine.published() == published) REQUIRE(bench.step());
    CHECK(bench.right(bench.requests.size() - 1));
  }
}

TEST_CASE("a wrong bit in a stretch, raw or coded, is found before its request is published") {
  for (const bool coded : {false, true}) {
    Bench counting({.coded = coded});
    for (std::size_t s = 0; s < counting.graph.stretches.size(); ++s) {
      for (const bool last : {false, true}) {
        CAPTURE(coded, s, last);
        Bench bench({.coded = coded});
        const model::Stretch& stretch = bench.graph.stretches[s];
        bench.file[(stretch.offset + (last ? stretch.stored_size - Bytes(1) : Bytes())).count()] ^= std::byte{1};
        const Status damaged = bench.run();
        REQUIRE_FALSE(damaged);
        CHECK(damaged.error().code == ErrorCode::kChecksumMismatch);
        CHECK(bench.engine.published() == s / 5);
      }
    }
  }
}

TEST_CASE("what a plan or a file gets wrong about its stretches is an error") {
  SECTION("a request that ends before its last stretch") {
    Bench bench;
    bench.requests[0].range.size -= Bytes(kBlock);
    const Status status = bench.run();
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kInvalidPlan);
  }
  SECTION("raw sizes that would expand over what is still to be read") {
    Bench bench({.coded = true});
    bench.requests[0].raw = bench.requests[0].stored;
    const Status status = bench.run();
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kInvalidModel);
  }
}

}  // namespace sluice::executor
