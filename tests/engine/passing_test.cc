// Outputs taken as they are made, and activations that go through a scratch file: what a program sees of either.
#include "sluice/plan/passing.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "sluice/plan/peak.h"
#include "tests/core/fake_file_ops.h"
#include "tests/engine/fixture.h"
#include "tests/planner/nets.h"
#include "tests/property/filled_run.h"

namespace sluice {
namespace {

/// Puts an output together from its blocks, each element once.
struct Taken {
  std::vector<float> values;
  std::vector<int> times;
  std::size_t blocks = 0;
  std::size_t refuse_at = ~std::size_t{0};

  explicit Taken(std::size_t count) : values(count), times(count) {}

  OutputHook hook() {
    return {[](void* self, const OutputBlock& block) noexcept { return static_cast<Taken*>(self)->take(block); }, this};
  }
  Status take(const OutputBlock& block) {
    if (blocks++ == refuse_at) return fail(ErrorCode::kIo, "there", "is no more room");
    std::vector<float> dense(static_cast<std::size_t>(block.shape.element_count()));
    block.copy(0, std::as_writable_bytes(std::span(dense)));
    for (std::int64_t row = 0; row < block.shape[0]; ++row)
      for (std::int64_t c = 0; c < block.shape[1]; ++c) {
        const auto at = static_cast<std::size_t>((block.begin[0] + row) * width + block.begin[1] + c);
        values[at] = dense[static_cast<std::size_t>(row * block.shape[1] + c)];
        ++times[at];
        const auto* in_place = reinterpret_cast<const float*>(block.data + row * block.strides[0] + c * block.strides[1]);
        same = same && *in_place == values[at];
      }
    return {};
  }
  std::int64_t width = 0;
  bool same = true;
};

/// A last layer that is by far the largest.
toy::ToyOptions wide() { return {.rows = 4, .widths = {16, 32, 20000}}; }

Result<bool> run_taking(const Fixture& fixture, Session& session, Taken& taken) {
  SLUICE_RETURN_IF_ERROR(session.set_input(0, DType::kF32, fixture.input()));
  SLUICE_RETURN_IF_ERROR(session.run());
  return taken.values == fixture.toy.expected && taken.same &&
         std::all_of(taken.times.begin(), taken.times.end(), [](int times) { return times == 1; });
}

/// Maps that wait while one value for each channel is made of the last of them: no bands reach past that.
struct Waiting {
  static constexpr int kSide = 64;
  static constexpr std::uint64_t kMapBytes = kSide * kSide * 32 * 4;

  Waiting() : filled(graph()) {
    REQUIRE(toy::write_toy_file(toy::ToyModel{filled.graph, filled.file, {}, {}}, path.str()));
    auto opened = Model::open(path.str());
    REQUIRE(opened);
    model = *opened;
  }

  Status run(Session& session) const {
    std::vector<float> input(kSide * kSide * 8);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 17) / 8 - 1;
    SLUICE_RETURN_IF_ERROR(session.set_input(0, DType::kF32, std::as_bytes(std::span(input))));
    return session.run();
  }
  std::vector<float> output_of(Session& session) const {
    const Status status = run(session);
    INFO((status ? std::string() : status.error().to_string()));
    REQUIRE(status);
    std::vector<float> output(kSide * kSide * 8);
    REQUIRE(session.get_output(0, std::as_writable_bytes(std::span(output))));
    return output;
  }
  std::vector<float> output_of(const SessionOptions& options) const {
    auto session = Session::create(model, options);
    REQUIRE(session);
    return output_of(**session);
  }

  planner::Filled filled;
  toy::TemporaryPath path{"passing_test.sluice"};
  std::shared_ptr<const Model> model;

 private:
  static model::Graph graph() {
    planner::NetBuilder net("waiting");
    std::vector<TensorId> maps{net.conv(net.input({1, kSide, kSide, 8}), {.channels = 32, .kernel = 3})};
    while (maps.size() < 6) maps.push_back(net.conv(maps.back(), {.channels = 32, .kernel = 3}));
    const TensorId share = net.conv(net.pool(maps.back(), kSide, kSide), {.channels = 32});
    TensorId y = net.binary(maps.back(), share, model::BinaryFunction::kMul);
    for (auto map = maps.rbegin() + 1; map != maps.rend(); ++map) y = net.binary(y, *map);
    net.output(net.conv(y, {.channels = 8}));
    return net.finish();
  }
};

struct Directory {
  Directory() { std::filesystem::create_directory(path); }
  ~Directory() { std::filesystem::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
  }
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("sluice-passing-test." + std::to_string(::getpid()));
};

}  // namespace

TEST_CASE("an output that is taken as it is made needs no place in the budget") {
  const Fixture fixture(wide());
  const Bytes whole = *minimum_budget(*fixture.model, {});
  for (const int threads : {1, 2}) {
    Taken taken(fixture.toy.expected.size());
    taken.width = 20000;
    SessionOptions options{.threads = threads, .outputs = taken.hook()};
    const Bytes least = *minimum_budget(*fixture.model, options);
    CHECK(least + Bytes(200'000) < whole);  // of the output's 320,000 bytes
    options.budget = least;
    auto session = Session::create(fixture.model, options);
    REQUIRE(session);
    CHECK(run_taking(fixture, **session, taken).value_or(false));
    CHECK(taken.blocks > 1);
    std::vector<float> output(fixture.toy.expected.size());
    CHECK(code_of((*session)->get_output(0, std::as_writable_bytes(std::span(output)))) == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("an ample budget hands outputs over too, and a change of the budget goes on with it") {
  const Fixture fixture(wide());
  Taken taken(fixture.toy.expected.size());
  taken.width = 20000;
  auto session = Session::create(fixture.model, {.largest_budget = kUnlimitedBytes, .outputs = taken.hook()});
  REQUIRE(session);
  CHECK(run_taking(fixture, **session, taken).value_or(false));
  REQUIRE((*session)->set_budget(*minimum_budget(*fixture.model, {.outputs = taken.hook()})));
  std::fill(taken.times.begin(), taken.times.end(), 0);
  CHECK(run_taking(fixture, **session, taken).value_or(false));
}

TEST_CASE("who takes no more ends the run with its own error, and the session goes on") {
  const Fixture fixture(wide());
  Taken taken(fixture.toy.expected.size());
  taken.width = 20000;
  SessionOptions options{.outputs = taken.hook()};
  options.budget = *minimum_budget(*fixture.model, options);
  auto session = Session::create(fixture.model, options);
  REQUIRE(session);
  taken.refuse_at = 1;
  const auto refused = run_taking(fixture, **session, taken);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK(refused.error().to_string().find("no more room") != std::string::npos);
  taken.refuse_at = ~std::size_t{0};
  std::fill(taken.times.begin(), taken.times.end(), 0);
  CHECK(run_taking(fixture, **session, taken).value_or(false));
}

TEST_CASE("activations larger than the budget go through a scratch file, which leaves nothing behind") {
  const Waiting net;
  const Directory directory;
  const std::vector<float> expected = net.output_of({});
  for (const int threads : {1, 2}) {
    SessionOptions options{.threads = threads};
    const Bytes without = *minimum_budget(*net.model, options);
    options.scratch_directory = directory.path.string();
    options.budget = *minimum_budget(*net.model, options);
    CHECK(options.budget + Bytes(2 * Waiting::kMapBytes) < without);
    auto session = Session::create(net.model, options);
    REQUIRE(session);
    const plan::Passed passed = plan::passed_bytes((*session)->plan(), net.model->graph());
    CHECK(passed.written >= Bytes(3 * Waiting::kMapBytes));
    CHECK(plan::scratch_bytes((*session)->plan(), net.model->graph()) >= passed.written);
    for (int run = 0; run < 2; ++run) {
      CHECK(net.output_of(**session) == expected);
      CHECK((*session)->stats().scratch_written == passed.written);
      CHECK((*session)->stats().scratch_read == passed.read);
    }
    REQUIRE((*session)->set_budget(4 * without));  // now all of it fits
    CHECK(plan::scratch_bytes((*session)->plan(), net.model->graph()) == Bytes());
    CHECK(net.output_of(**session) == expected);
    CHECK(directory.files() == 0);
  }
}

TEST_CASE("a net whose activations are twice the budget runs by a plan of the planner's own") {
  const Waiting net;
  const Directory directory;
  const auto ample = Session::create(net.model, {.scope = BudgetScope::kLibrary});
  REQUIRE(ample);
  const Bytes activations = plan::activation_peak((*ample)->plan()).bytes;
  const std::vector<float> expected = net.output_of(**ample);
  SessionOptions options{.budget = Bytes(activations.count() / 2), .scope = BudgetScope::kLibrary};
  const auto refused = Session::create(net.model, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  options.scratch_directory = directory.path.string();
  CHECK(net.output_of(options) == expected);
}

TEST_CASE("a scratch file that cannot be made, written or read is an error that says so") {
  const Waiting net;
  const Directory directory;
  SessionOptions options{.scratch_directory = directory.path.string()};
  options.budget = *minimum_budget(*net.model, options);
  SessionOptions nowhere = options;
  nowhere.scratch_directory = (directory.path / "absent").string();
  const auto absent = Session::create(net.model, nowhere);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kIo);
  auto session = Session::create(net.model, options);
  REQUIRE(session);
  const std::vector<float> expected = net.output_of(**session);
  FileOps full = system_file_ops();
  full.pwrite = [](int, const void*, std::size_t, std::int64_t) noexcept -> std::int64_t { return errno = ENOSPC, -1; };
  {
    const ScopedFileOps ops(full);
    const Status status = net.run(**session);
    CHECK(code_of(status) == ErrorCode::kIo);
    CHECK(status.error().os_error == ENOSPC);
    CHECK(status.error().to_string().find("the scratch file cannot be written") != std::string::npos);
  }
  CHECK(net.output_of(**session) == expected);
  full.truncate = [](int, std::int64_t) noexcept { return errno = ENOSPC, -1; };
  {
    const ScopedFileOps ops(full);
    const auto refused = Session::create(net.model, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().os_error == ENOSPC);
  }
  CHECK(directory.files() == 0);
}

}  // namespace sluice
