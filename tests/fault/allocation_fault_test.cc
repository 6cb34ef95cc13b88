// Memory runs out at each place where it can: a request fails once, and that and all later ones. Whoever asked gets an error, nothing
// is lost, and what stood before stands and works. Places are chains of calls: a loop that asks a thousand times is one place.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>

#include "sluice/engine/engine.h"
#include "sluice/engine/shared_arena.h"
#include "sluice/plan/plan_file.h"
#include "sluice/planner/place/place.h"
#include "sluice/sluice_c.h"
#include "src/core/out_of_memory.h"
#include "tests/cli/temporary.h"
#include "tests/fault/failing_memory.h"
#include "tests/fault/small_models.h"
#include "tests/importer/onnx_builder.h"
#include "tests/planner/placement_problems.h"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Whether nothing was lost between the two. A session reads through a ring, one descriptor; where that is not to be had, with a thread for
/// each read in flight, and it looks for a ring again whenever its budget changes.
bool as_much(const Held& before, const Held& after) {
  constexpr std::int64_t kThreadsForRing = 4;
  const auto rings = static_cast<std::int64_t>(after.descriptors) - static_cast<std::int64_t>(before.descriptors);
  return before.blocks == after.blocks && before.mapped_bytes == after.mapped_bytes &&
         before.threads - after.threads == kThreadsForRing * rings;
}

/// Which requests of `attempt()` are to fail: of each chain of calls that leads to one the first and the last, or with SLUICE_EVERY_REQUEST in
/// the environment (scripts/nightly) every one. One past the end is among them. Two attempts are looked at: some go up and down in turn.
template <class Attempt>
std::vector<std::int64_t> requests_of(const Attempt& attempt) {
  std::vector<std::int64_t> numbers;
  std::int64_t end = 0;
  for (int i = 0; i < 2; ++i) {
    const RecordedRequests requests;
    const Status status = attempt();
    const std::vector<std::int64_t> distinct = requests.distinct();
    REQUIRE(status);
    numbers.insert(numbers.end(), distinct.begin(), distinct.end());
    end = std::max(end, requests.count());
  }
  numbers.push_back(end);
  if (std::getenv("SLUICE_EVERY_REQUEST") != nullptr) {
    numbers.resize(static_cast<std::size_t>(end) + 1);
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// Of the requests that could fail, those that do: each so-manieth, and about so many.
struct Share {
  std::size_t stride = 1;
  std::size_t most = std::numeric_limits<std::size_t>::max();
};
constexpr Share kSome{.most = 40};  // where there are too many to fail each

/// `attempt()` with its requests failing; then `check()`. Both return a Status; the attempt has given back all when it returns.
/// A request may be one that need not be granted: then the attempt succeeds.
template <class Attempt, class Check>
void exhaust(const std::string& what, const Attempt& attempt, const Check& check, Share share = {}) {
  INFO(what);
  REQUIRE(attempt());  // what is made once and kept (tables, names of locales) is there
  const std::vector<std::int64_t> requests = requests_of(attempt);
  const std::size_t stride = std::max(share.stride, requests.size() / share.most + 1);
  int failed = 0;
  for (const Failing failing : {Failing::kOnce, Failing::kFromThenOn}) {
    for (std::size_t i = 0; i < requests.size(); i += stride) {
      const std::int64_t n = requests[i];
      const Held before = held();
      Status status;
      std::int64_t failures = 0;
      {
        const FailingMemory memory(n, failing);
        status = attempt();
        failures = memory.failures();
      }
      const Held after = held();
      const Status checked = check();
      failed += !status;
      if (!(status ? as_much(before, after) : after == before) || !checked ||
          (!status && (failures == 0 || status.error().code != ErrorCode::kOutOfMemory))) {
        CAPTURE(static_cast<int>(failing), n, failures, after.blocks - before.blocks, after.mapped_bytes - before.mapped_bytes);
        CAPTURE(after.threads - before.threads, after.descriptors, before.descriptors);
        CAPTURE(status ? "" : status.error().to_string(), checked ? "" : checked.error().to_string());
        FAIL("a failed request was not told, or lost something");
      }
    }
  }
  CHECK(failed > 0);
}

template <class Attempt>
void exhaust(const std::string& what, const Attempt& attempt) {
  exhaust(what, attempt, [] { return Status(); });
}

using Values = std::vector<std::vector<std::byte>>;

/// A model on disk, and what it makes of its inputs.
class Subject {
 public:
  Subject(const TemporaryFolder& folder, const SmallModel& small)
      : onnx(folder.path(small.name + ".onnx")), file(folder.path(small.name + ".sluice")), name(small.name), options(small.options) {
    write_file(onnx, small.onnx);
    importer::ConvertReport report;
    const Status converted = importer::convert(onnx, file, options, report);
    for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(name + ": " + problem.op_type + ": " + problem.message);
    REQUIRE(converted);
    model = *Model::open(file);
    inputs = inputs_for(model->graph());
    for (const model::Port& port : model->graph().outputs) found.emplace_back(model->graph().tensor(port.tensor).bytes().count());
    const auto least = minimum_budget(*model, {});
    REQUIRE(least);
    budget = *least;
    auto session = Session::create(model, {});
    REQUIRE(session);
    REQUIRE(run(**session, found));
    expected = found;
  }

  /// Sets, runs, reads; allocates nothing here.
  Status run(Session& session, Values& outputs) const noexcept {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      SLUICE_RETURN_IF_ERROR(session.set_input(i, model->graph().tensor(model->graph().inputs[i].tensor).dtype, inputs[i]));
    SLUICE_RETURN_IF_ERROR(session.run());
    for (std::size_t i = 0; i < outputs.size(); ++i) SLUICE_RETURN_IF_ERROR(session.get_output(i, outputs[i]));
    return {};
  }
  Status run_rightly(Session& session) const noexcept {
    SLUICE_RETURN_IF_ERROR(run(session, found));
    if (found != expected) return fail(ErrorCode::kOutputMismatch, name, "the outputs are others");
    return {};
  }
  Status create_and_run(const SessionOptions& session_options) const noexcept {
    SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::create(model, session_options));
    return run_rightly(*session);
  }

  std::string onnx, file, name;
  importer::ConvertOptions options;
  std::shared_ptr<const Model> model;
  Values inputs, expected;
  mutable Values found;
  Bytes budget;
};

std::vector<Subject> subjects(const TemporaryFolder& folder) {
  std::vector<Subject> made;
  for (const SmallModel& small : small_models()) made.emplace_back(folder, small);
  return made;
}

std::size_t files_in(const TemporaryFolder& folder) {
  const std::filesystem::directory_iterator files(folder.path("."));
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

}  // namespace

TEST_CASE("of a loop the first and the last request fail, of other places each") {
  const RecordedRequests requests;
  std::vector<std::unique_ptr<int>> made;
  made.reserve(100);                                                     // request 0
  for (int i = 0; i < 7; ++i) made.push_back(std::make_unique<int>(i));  // 1 to 7
  auto other = std::make_unique<int>(8);                                 // 8
  const std::vector<std::int64_t> distinct = requests.distinct();
  CHECK(*other == 8);
  CHECK(requests.count() == 9);
  CHECK(distinct == std::vector<std::int64_t>{0, 1, 7, 8});
}

TEST_CASE("convert") {
  const TemporaryFolder folder;
  for (const Subject& subject : subjects(folder)) {
    const std::string other = folder.path("other.sluice");
    const auto attempt = [&]() -> Status {
      ::unlink(other.c_str());
      importer::ConvertReport report;
      const Status status = importer::convert(subject.onnx, other, subject.options, report);
      const bool written = ::access(other.c_str(), F_OK) == 0;
      return written == status.has_value() ? status : fail(ErrorCode::kInternal, other, "a model was left, or is not there");
    };
    const std::size_t files = files_in(folder);
    exhaust(subject.name, attempt);
    CHECK(files_in(folder) == files + 1);
    ::unlink(other.c_str());
  }
}

TEST_CASE("open") {
  const TemporaryFolder folder;
  for (const Subject& subject : subjects(folder)) {
    exhaust(subject.name, [&]() -> Status {
      SLUICE_ASSIGN_OR_RETURN(const auto model, Model::open(subject.file));
      return {};
    });
    if (subject.model->file().dimensions().empty()) continue;
    const model::Extents other{{"N", 2}};
    exhaust(subject.name + " at another extent", [&]() -> Status {
      SLUICE_ASSIGN_OR_RETURN(const auto model, subject.model->with_dims(other));
      return {};
    });
  }
}

TEST_CASE("plan") {
  const TemporaryFolder folder;
  for (const Subject& subject : subjects(folder)) {
    const SessionOptions options{.budget = subject.budget, .tuning = {.search_ms = 0}};
    exhaust(subject.name, [&]() -> Status {
      SLUICE_ASSIGN_OR_RETURN(const PlannedBudget planned, plan_session(*subject.model, options));
      return {};
    });
    exhaust(subject.name + ": smallest budget", [&]() -> Status {
      SLUICE_ASSIGN_OR_RETURN(const Bytes least, minimum_budget(*subject.model, options));
      return least == subject.budget ? Status() : fail(ErrorCode::kInternal, subject.name, "another budget is the smallest");
    });
  }
}

TEST_CASE("create, run and close a session") {
  const TemporaryFolder folder;
  for (const Subject& subject : subjects(folder)) {
    exhaust(subject.name, [&] { return subject.create_and_run({.budget = subject.budget, .tuning = {.search_ms = 0}}); });
    const auto planned = plan_session(*subject.model, {.threads = 2, .tuning = {.search_ms = 0}});
    REQUIRE(planned);
    exhaust(
        subject.name + " with threads and a given plan",
        [&] {
          return subject.create_and_run({.threads = 2,
                                         .time_steps = true,
                                         .plan = &planned->plan,
                                         .tuning = {.read_method = model::ReadMethod::kThreads, .reads_in_flight = 2}});
        },
        [] { return Status(); }, {.stride = 5});
  }
}

TEST_CASE("a session whose budget cannot be changed for want of memory runs on as before") {
  constexpr Share kShare{.stride = 3};  // most requests are those of planning, each of which fails in "plan"
  const TemporaryFolder folder;
  const std::vector<Subject> all = subjects(folder);
  for (std::size_t i = 1; i < all.size(); i += 3) {
    const Subject& subject = all[i];
    // Above the smallest, for which every plan is looked for: here it is the change that counts.
    const Bytes less = subject.budget + Bytes(64 * 1024), more = less + Bytes(256 * 1024);
    auto session = Session::create(subject.model, {.budget = less, .largest_budget = more, .tuning = {.search_ms = 0}});
    REQUIRE(session);
    REQUIRE(subject.run_rightly(**session));
    const auto run = [&] { return subject.run_rightly(**session); };
    // Up, and from there down: what a session holds beside its arena differs with its plan.
    const auto up = [&] { return (*session)->set_budget(more); };
    const auto down = [&]() -> Status {
      SLUICE_RETURN_IF_ERROR(run());
      return (*session)->set_budget(less);
    };
    exhaust(subject.name, up, down, kShare);
  }
}

TEST_CASE("sessions of an arena run on where another could not join, nor their budget change") {
  constexpr Share kShare{.stride = 11};  // as above
  const TemporaryFolder folder;
  const std::vector<Subject> all = subjects(folder);
  for (std::size_t i = 0; i + 1 < all.size(); i += 5) {
    const Subject& first = all[i];
    const Subject& second = all[i + 1];
    const Bytes budget = first.budget + second.budget + Bytes(2 << 20);
    const auto arena = SharedArena::create({.budget = budget, .threads = 2});
    REQUIRE(arena);
    const SessionOptions options{.repeat = true, .arena = *arena, .tuning = {.search_ms = 0}};
    auto standing = Session::create(first.model, options);
    REQUIRE(standing);
    const auto run = [&] { return first.run_rightly(**standing); };
    REQUIRE(run());
    exhaust(
        first.name + " and " + second.name, [&] { return second.create_and_run(options); }, run, kShare);
    auto beside = Session::create(second.model, options);
    REQUIRE(beside);
    const auto run_both = [&]() -> Status {
      SLUICE_RETURN_IF_ERROR(first.run_rightly(**standing));
      return second.run_rightly(**beside);
    };
    bool lower = false;
    const auto change = [&] {
      lower = !lower;
      return (*arena)->set_budget(lower ? budget - Bytes(1 << 20) : budget);
    };
    exhaust(first.name + " beside " + second.name, change, run_both, kShare);
  }
}

TEST_CASE("the arena itself") {
  const SharedArenaOptions options{.budget = Bytes(1 << 20), .compute_cpus = {0}};
  exhaust("arena", [&]() -> Status {
    SLUICE_ASSIGN_OR_RETURN(const auto arena, SharedArena::create(options));
    return {};
  });
}

namespace {

/// A status of the C API with its text as a Status.
Status of_c(sluice_status status) noexcept {
  if (status == SLUICE_OK) return {};
  const bool told = status == SLUICE_OUT_OF_MEMORY && std::strncmp(sluice_last_error(), "out of memory", 13) == 0;
  return fail(told ? ErrorCode::kOutOfMemory : ErrorCode::kInternal, "C", "what the C API says");
}

}  // namespace

TEST_CASE("the C API says so in its status and its text") {
  const TemporaryFolder folder;
  const Subject subject(folder, small_models().back());
  exhaust("arena", [&] {
    sluice_arena* arena = nullptr;
    const Status status = of_c(sluice_arena_create(1 << 20, SLUICE_SCOPE_LIBRARY, 1, &arena));
    sluice_arena_close(arena);
    return status;
  });
  exhaust("open", [&] {
    sluice_model* model = nullptr;
    const Status status = of_c(sluice_model_open(subject.file.c_str(), &model));
    sluice_model_close(model);
    return status;
  });
  sluice_model* model = nullptr;
  REQUIRE(sluice_model_open(subject.file.c_str(), &model) == SLUICE_OK);
  exhaust("other extents", [&] {
    const sluice_dim dim{"N", 2};
    sluice_model* other = nullptr;
    const Status status = of_c(sluice_model_with_dims(model, &dim, 1, &other));
    sluice_model_close(other);
    return status;
  });
  exhaust("smallest budget", [&] {
    uint64_t least = 0;
    return of_c(sluice_minimum_budget(model, nullptr, &least));
  });
  exhaust("session", [&] {
    sluice_session* session = nullptr;
    Status status = of_c(sluice_session_create(model, nullptr, &session));
    if (status) status = of_c(sluice_session_set_input(session, 0, subject.inputs[0].data(), subject.inputs[0].size()));
    if (status) status = of_c(sluice_session_run(session));
    sluice_session_close(session);
    return status;
  });
  sluice_session* session = nullptr;
  REQUIRE(sluice_session_create(model, nullptr, &session) == SLUICE_OK);
  exhaust("budget", [&] { return of_c(sluice_session_set_budget(session, subject.budget.count() + (1 << 20))); });
  sluice_session_close(session);
  sluice_model_close(model);
}

TEST_CASE("plans go to files and come back") {
  const TemporaryFolder folder;
  const Subject subject(folder, small_models()[1]);
  const auto planned = plan_session(*subject.model, {.budget = subject.budget});
  REQUIRE(planned);
  const std::string path = folder.path("a.plan");
  exhaust("save", [&] { return plan::save_plan(planned->plan, path); });
  exhaust("load", [&]() -> Status {
    SLUICE_ASSIGN_OR_RETURN(const plan::Plan plan, plan::load_plan(path));
    return plan.steps.size() == planned->plan.steps.size() ? Status() : fail(ErrorCode::kInternal, path, "another plan");
  });
  exhaust("checksums", [&] { return model::verify_weights(subject.model->file()); });
}

// By name only: the search for a problem that is hard enough takes most of a minute.
TEST_CASE("a placement whose helping threads find no memory", "[.slow]") {
  std::mt19937 random(3);
  planner::PlaceOptions options{.goal = planner::PlaceGoal::kFit, .search = planner::SearchLimit::of_milliseconds(24), .threads = 3};
  planner::PlacementProblem problem;
  do {
    problem.rectangles = planner::random_rectangles(random, 40);
    problem.capacity = ~std::uint64_t{0};
    problem.capacity = planner::place(problem).bound;
  } while (planner::place(problem, options).settled);
  std::int64_t with_helpers = 0;
  const auto attempt = [&]() -> Status {
    const std::int64_t before = threads_started();
    return or_out_of_memory("placement", [&]() -> Status {
      planner::place(problem, options);
      with_helpers += threads_started() > before;
      return {};
    });
  };
  exhaust(
      "placement", attempt, [] { return Status(); }, kSome);
  CHECK(with_helpers > 0);
}

// Models from elsewhere, where they are at hand; too many requests to fail each.
TEST_CASE("real models") {
  const char* const named = std::getenv("SLUICE_SHARED_DIR");
  const std::string shared = named != nullptr ? named : *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
  for (const char* name : {"classification/mnist-8", "classification/cct_2_32_32_128_opset20", "audio/micro_kws_m_static_fp32",
                           "detection/ultraface_RFB_320"}) {
    const std::string onnx = shared + "/models/" + name + ".onnx";
    if (!std::filesystem::exists(onnx)) continue;
    const TemporaryFolder folder;
    const std::string file = folder.path("m.sluice");
    const auto attempt = [&]() -> Status {
      importer::ConvertReport report;
      SLUICE_RETURN_IF_ERROR(importer::convert(onnx, file, {}, report));
      SLUICE_ASSIGN_OR_RETURN(const auto model, Model::open(file));
      SLUICE_ASSIGN_OR_RETURN(const auto session, Session::create(model, {.tuning = {.search_ms = 0}}));
      return {};
    };
    INFO(name);
    const Status status = attempt();
    if (!status) FAIL(status.error().to_string());
    exhaust(
        name, attempt, [] { return Status(); }, kSome);
  }
}
