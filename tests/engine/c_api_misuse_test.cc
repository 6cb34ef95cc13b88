// The C interface used wrongly, call by call: each pointer null in turn, sizes and numbers that are none, names that nobody has, before a
// run and after it, from several threads at the same time, and in a forked child. Each call says SLUICE_INVALID_ARGUMENT (or what its
// contract names besides), leaves a text that says what was wrong, writes nothing where it was refused, and what stood before still works.
//
// Not here, because a C pointer cannot tell: a handle that was closed before. The header says that it must not be used.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <climits>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/sluice_c.h"
#include "tests/engine/misuse.h"

namespace sluice {
namespace {

using test::attempt;
using test::kNone;
using test::Misuse;
using test::Subject;

sluice_status create_with(Subject& s, const std::function<void(sluice_session_options&)>& change) {
  sluice_session_options options = sluice_default_options();
  change(options);
  return sluice_session_create(s.model, &options, &s.made);
}

std::vector<Misuse> of_models(Subject& s) {
  static const sluice_reader nobody{nullptr, nullptr, 100};
  static const sluice_key no_key{nullptr, nullptr};
  static sluice_port_info info;
  static sluice_dimension_info dimension;
  static const std::string long_path(100'000, 'x');
  static const sluice_dim nameless{nullptr, 1}, unknown{"nobody", 1};
  return {
      {"open: no path", [&] { return sluice_model_open(nullptr, &s.made_model); }},
      {"open: no place", [&] { return sluice_model_open(s.path.str().c_str(), nullptr); }},
      {"open: an empty path", [&] { return sluice_model_open("", &s.made_model); }, SLUICE_IO},
      {"open: a folder", [&] { return sluice_model_open("/", &s.made_model); }, SLUICE_IO},
      {"open: a path without end", [&] { return sluice_model_open(long_path.c_str(), &s.made_model); }, SLUICE_IO},
      {"buffer: none", [&] { return sluice_model_open_buffer(nullptr, 100, &s.made_model); }},
      {"buffer: empty", [&] { return sluice_model_open_buffer("", 0, &s.made_model); }, SLUICE_INVALID_MODEL},
      {"buffer: no place", [&] { return sluice_model_open_buffer("x", 1, nullptr); }},
      {"part: no descriptor", [&] { return sluice_model_open_part(INT_MAX, 0, 100, &s.made_model); }, SLUICE_IO},
      {"part: no place", [&] { return sluice_model_open_part(0, 0, 100, nullptr); }},
      {"reader: none", [&] { return sluice_model_open_reader(nullptr, &s.made_model); }},
      {"reader: without a function", [&] { return sluice_model_open_reader(&nobody, &s.made_model); }},
      {"key: none", [&] { return sluice_model_open_with_key(s.path.str().c_str(), nullptr, &s.made_model); }},
      {"key: without a function", [&] { return sluice_model_open_with_key(s.path.str().c_str(), &no_key, &s.made_model); }},
      {"key: no path", [&] { return sluice_model_open_with_key(nullptr, &no_key, &s.made_model); }},
      {"key: no reader", [&] { return sluice_model_open_reader_with_key(nullptr, &no_key, &s.made_model); }},
      {"dims: no model", [&] { return sluice_model_with_dims(nullptr, &unknown, 1, &s.made_model); }},
      {"dims: none", [&] { return sluice_model_with_dims(s.model, nullptr, 1, &s.made_model); }},
      {"dims: no place", [&] { return sluice_model_with_dims(s.model, &unknown, 1, nullptr); }},
      {"dims: without a name", [&] { return sluice_model_with_dims(s.model, &nameless, 1, &s.made_model); }},
      {"dims: a name that nobody has", [&] { return sluice_model_with_dims(s.model, &unknown, 1, &s.made_model); }},
      {"dimension: no model", [&] { return sluice_model_dimension_info(nullptr, 0, &dimension); }},
      {"dimension: no place", [&] { return sluice_model_dimension_info(s.model, 0, nullptr); }},
      {"dimension: that is none", [&] { return sluice_model_dimension_info(s.model, kNone, &dimension); }},
      {"input: no model", [&] { return sluice_input_info(nullptr, 0, &info); }},
      {"input: no place", [&] { return sluice_input_info(s.model, 0, nullptr); }},
      {"input: that is none", [&] { return sluice_input_info(s.model, 1, &info); }},
      {"output: no model", [&] { return sluice_output_info(nullptr, 0, &info); }},
      {"output: no place", [&] { return sluice_output_info(s.model, 0, nullptr); }},
      {"output: that is none", [&] { return sluice_output_info(s.model, kNone, &info); }},
  };
}

std::vector<Misuse> of_options(Subject& s) {
  static std::uint64_t bytes;
  static sluice_prediction prediction;
  return {
      {"create: no model", [&] { return sluice_session_create(nullptr, nullptr, &s.made); }},
      {"create: no place", [&] { return sluice_session_create(s.model, nullptr, nullptr); }},
      {"create: a scope that is none", [&] { return create_with(s, [](auto& o) { o.scope = 7; }); }},
      {"create: fewer threads than none", [&] { return create_with(s, [](auto& o) { o.threads = -1; }); }},
      {"create: threads without number", [&] { return create_with(s, [](auto& o) { o.threads = INT_MAX; }); }},
      {"create: a level that is none", [&] { return create_with(s, [](auto& o) { o.log.least = -1; }); }},
      {"create: no budget", [&] { return create_with(s, [](auto& o) { o.budget_bytes = 0; }); }, SLUICE_BUDGET_TOO_SMALL},
      {"create: a budget of one", [&] { return create_with(s, [](auto& o) { o.budget_bytes = 1; }); }, SLUICE_BUDGET_TOO_SMALL},
      {"create: all reserved",
       [&] {
         return create_with(s, [](auto& o) {
           o.scope = SLUICE_SCOPE_PROCESS;
           o.budget_bytes = 64 << 20;
           o.reserve_bytes = UINT64_MAX;
         });
       },
       SLUICE_BUDGET_TOO_SMALL},
      {"minimum: no model", [&] { return sluice_minimum_budget(nullptr, nullptr, &bytes); }},
      {"minimum: no place", [&] { return sluice_minimum_budget(s.model, nullptr, nullptr); }},
      {"predict: no model", [&] { return sluice_predict(nullptr, nullptr, &prediction); }},
      {"predict: no place", [&] { return sluice_predict(s.model, nullptr, nullptr); }},
      {"arena: no place", [&] { return sluice_arena_create(1 << 20, SLUICE_SCOPE_LIBRARY, 1, nullptr); }},
      {"arena: a scope that is none", [&] { return sluice_arena_create(1 << 20, -1, 1, &s.made_arena); }},
      {"arena: threads without number", [&] { return sluice_arena_create(1 << 20, SLUICE_SCOPE_LIBRARY, INT_MAX, &s.made_arena); }},
      {"arena: no arena", [&] { return sluice_arena_set_budget(nullptr, 1 << 20); }},
  };
}

std::vector<Misuse> of_sessions(Subject& s) {
  static sluice_tensor tensor;
  static sluice_port_info info;
  static sluice_run_stats stats;
  static sluice_memory memory;
  const auto input = [&s](std::size_t port, const void* data, std::size_t bytes) {
    return [&s, port, data, bytes] { return sluice_session_set_input(s.fresh, port, data, bytes); };
  };
  const auto got = [&s](std::size_t port, std::size_t bytes) {
    return [&s, port, bytes] { return sluice_session_get_output(s.session, port, s.output.data(), bytes); };
  };
  const auto part = [&s](std::uint64_t first, std::size_t bytes) {
    return [&s, first, bytes] { return sluice_session_get_output_part(s.session, 0, first, s.output.data(), bytes); };
  };
  return {
      {"set_input: no session", [&] { return sluice_session_set_input(nullptr, 0, s.toy.input.data(), s.input_bytes); }},
      {"set_input: no data", input(0, nullptr, s.input_bytes)},
      {"set_input: a byte less", input(0, s.toy.input.data(), s.input_bytes - 1)},
      {"set_input: a byte more", input(0, s.toy.input.data(), s.input_bytes + 1)},
      {"set_input: no bytes", input(0, s.toy.input.data(), 0)},
      {"set_input: all bytes there are", input(0, s.toy.input.data(), SIZE_MAX)},
      {"set_input: another port", input(1, s.toy.input.data(), s.input_bytes)},
      {"set_input: no port", input(kNone, s.toy.input.data(), s.input_bytes)},
      {"in place: no session", [&] { return sluice_session_input_in_place(nullptr, 0, &tensor); }},
      {"in place: no place", [&] { return sluice_session_input_in_place(s.fresh, 0, nullptr); }},
      {"in place: no port", [&] { return sluice_session_input_in_place(s.fresh, kNone, &tensor); }},
      {"run: no session", [&] { return sluice_session_run(nullptr); }},
      {"run: without inputs", [&] { return sluice_session_run(s.fresh); }},
      {"run within: without inputs", [&] { return sluice_session_run_within(s.fresh, 1'000'000'000); }},
      {"run within: no session", [&] { return sluice_session_run_within(nullptr, 1); }},
      {"run within: less than no time", [&] { return sluice_session_run_within(s.session, -1); }, SLUICE_CANCELLED},
      {"run within: no time", [&] { return sluice_session_run_within(s.session, 0); }, SLUICE_CANCELLED},
      {"async: no session", [&] { return sluice_session_run_async(nullptr, nullptr, nullptr); }},
      {"wait: no session", [&] { return sluice_session_wait(nullptr); }},
      {"cancel: no session", [&] { return sluice_session_cancel(nullptr); }},
      {"stats: no session", [&] { return sluice_session_stats(nullptr, &stats); }},
      {"stats: no place", [&] { return sluice_session_stats(s.session, nullptr); }},
      {"memory: no session", [&] { return sluice_session_memory(nullptr, &memory); }},
      {"memory: no place", [&] { return sluice_session_memory(s.session, nullptr); }},
      {"set_budget: no session", [&] { return sluice_session_set_budget(nullptr, 1); }},
      {"set_budget: none", [&] { return sluice_session_set_budget(s.fresh, 0); }, SLUICE_BUDGET_TOO_SMALL},
      {"get_output: before a run", [&] { return sluice_session_get_output(s.fresh, 0, s.output.data(), s.output_bytes); }},
      {"get_output: no session", [&] { return sluice_session_get_output(nullptr, 0, s.output.data(), s.output_bytes); }},
      {"get_output: no data", [&] { return sluice_session_get_output(s.session, 0, nullptr, s.output_bytes); }},
      {"get_output: a byte less", got(0, s.output_bytes - 1)},
      {"get_output: a byte more", got(0, s.output_bytes + 1)},
      {"get_output: no bytes", got(0, 0)},
      {"get_output: no port", got(kNone, s.output_bytes)},
      {"part: no session", [&] { return sluice_session_get_output_part(nullptr, 0, 0, s.output.data(), 4); }},
      {"part: no data", [&] { return sluice_session_get_output_part(s.session, 0, 0, nullptr, 4); }},
      {"part: beyond the end", part(s.toy.expected.size(), 4)},
      {"part: over the end", part(s.toy.expected.size() - 1, 8)},
      {"part: far beyond the end", part(UINT64_MAX, 4)},
      {"part: half an element", part(0, 3)},
      {"output: no session", [&] { return sluice_session_output_in_place(nullptr, 0, &tensor); }},
      {"output: no place", [&] { return sluice_session_output_in_place(s.session, 0, nullptr); }},
      {"output: no port", [&] { return sluice_session_output_in_place(s.session, kNone, &tensor); }},
      {"output: before a run", [&] { return sluice_session_output_in_place(s.fresh, 0, &tensor); }},
      {"output info: no session", [&] { return sluice_session_output_info(nullptr, 0, &info); }},
      {"output info: no place", [&] { return sluice_session_output_info(s.session, 0, nullptr); }},
      {"output info: no port", [&] { return sluice_session_output_info(s.session, kNone, &info); }},
  };
}

std::vector<Misuse> all_of(Subject& s) {
  std::vector<Misuse> all = of_models(s);
  for (std::vector<Misuse>& more : std::array{of_options(s), of_sessions(s)}) std::move(more.begin(), more.end(), std::back_inserter(all));
  return all;
}

std::string attempt_all(const std::vector<Misuse>& all) {
  for (const Misuse& misuse : all)
    if (std::string wrong = attempt(misuse); !wrong.empty()) return wrong;
  return "";
}

}  // namespace

TEST_CASE("each wrong call in C is refused with a text, writes nothing, and what stood before works") {
  Subject subject;
  for (const Misuse& misuse : all_of(subject)) {
    CHECK(attempt(misuse) == "");
    INFO(misuse.name);
    CHECK(subject.untouched());
    CHECK(subject.works());
  }
  sluice_session_close(nullptr);
  sluice_model_close(nullptr);
  CHECK(sluice_input_count(nullptr) == 0);
  CHECK(sluice_output_count(nullptr) == 0);
  CHECK(sluice_dimension_count(nullptr) == 0);
}

TEST_CASE("wrong calls from several threads, each with its own session, keep their texts apart") {
  constexpr int kThreads = 4, kRounds = 20;
  std::vector<std::unique_ptr<Subject>> subjects;
  for (int t = 0; t < kThreads; ++t) subjects.push_back(std::make_unique<Subject>());
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&subject = *subjects[t], &first = wrong[t]] {
      for (int round = 0; round < kRounds && first.empty(); ++round) {
        first = attempt_all(all_of(subject));
        if (first.empty() && !subject.works()) first = "a session that was misused does not work";
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& first : wrong) CHECK(first == "");
}

TEST_CASE("wrong calls on one session from several threads at the same time are refused, and it works after") {
  constexpr int kThreads = 4, kRounds = 50;
  Subject subject;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&subject, &first = wrong[t]] {
      const std::vector<Misuse> all = of_sessions(subject);
      for (int round = 0; round < kRounds && first.empty(); ++round) first = attempt_all(all);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& first : wrong) CHECK(first == "");
  CHECK(subject.untouched());
  CHECK(subject.works());
}

// The thread sanitizer does not follow threads into a forked child.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child that uses and closes its parent's handles in C is refused, and harms nobody") {
  Subject subject;
  sluice_arena* arena = nullptr;
  REQUIRE(sluice_arena_create(8 << 20, SLUICE_SCOPE_LIBRARY, 2, &arena) == SLUICE_OK);
  REQUIRE(sluice_session_run_async(subject.session, nullptr, nullptr) == SLUICE_OK);  // it has a thread now
  REQUIRE(sluice_session_wait(subject.session) == SLUICE_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const auto refused = [](sluice_status status) { return status == SLUICE_INVALID_ARGUMENT && sluice_last_error()[0] != '\0'; };
    int wrong = 0;
    wrong += !refused(sluice_session_set_input(subject.session, 0, subject.toy.input.data(), subject.input_bytes));
    wrong += !refused(sluice_session_run(subject.session));
    wrong += !refused(sluice_session_run_within(subject.session, 1'000'000'000));
    wrong += !refused(sluice_session_get_output(subject.session, 0, subject.output.data(), subject.output_bytes));
    wrong += !refused(sluice_session_set_budget(subject.session, SLUICE_UNLIMITED));
    wrong += !refused(sluice_arena_set_budget(arena, 4 << 20));
    wrong += attempt_all(of_models(subject)) != "";
    sluice_session_cancel(subject.session);
    sluice_session_close(subject.session);
    sluice_arena_close(arena);
    ::_exit(wrong);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(subject.works());
  sluice_arena_close(arena);
}
#endif

}  // namespace sluice
