#include "sluice/core/threads.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

namespace sluice {

TEST_CASE("every task runs once, whatever the number of threads") {
  for (int threads : {1, 2, 3, 8}) {
    auto pool = make_thread_pool(threads);
    REQUIRE(pool);
    CHECK((*pool)->thread_count() == threads);
    for (std::int64_t count : {0, 1, 2, 7, 1000}) {
      if (count == 7) (*pool)->rest();
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      std::atomic<bool> thread_in_range{true};
      parallel_for(**pool, count, [&](std::int64_t index, int thread) noexcept {
        runs[static_cast<std::size_t>(index)].fetch_add(1);
        if (thread < 0 || thread >= threads) thread_in_range = false;
      });
      for (const auto& n : runs) REQUIRE(n.load() == 1);
      REQUIRE(thread_in_range);
    }
  }
}

TEST_CASE("a step that is kept to the caller wakes nobody") {
  auto pool = *make_thread_pool(3);
  pool->keep_to_caller(true);
  std::vector<int> runs(100), order;
  parallel_for(*pool, 100, [&](std::int64_t index, int thread) noexcept {
    CHECK(thread == 0);
    order.push_back(static_cast<int>(index));
    ++runs[static_cast<std::size_t>(index)];
  });
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(std::count(runs.begin(), runs.end(), 1) == 100);
  pool->keep_to_caller(false);
  std::atomic<int> shared{0};
  parallel_for(*pool, 100, [&](std::int64_t, int) noexcept { ++shared; });
  CHECK(shared == 100);
}

TEST_CASE("a pool of no or too many threads is refused") {
  CHECK_FALSE(make_thread_pool(0));
  CHECK_FALSE(make_thread_pool(-3));
  CHECK_FALSE(make_thread_pool(100000));
}

TEST_CASE("a pool that is stopped begins no more tasks, and goes on where it is not") {
  for (const int threads : {1, 2, 4}) {
    const auto pool = *make_thread_pool(threads);
    std::atomic<bool> stop{false};
    pool->stop_when(&stop);
    std::atomic<int> begun{0};
    parallel_for(*pool, 1'000'000, [&](std::int64_t, int) {
      if (begun.fetch_add(1) == 2) stop = true;
    });
    // Each thread may have looked before the third task ran.
    CHECK(begun >= 3);
    CHECK(begun <= 3 + threads);
    begun = 0;
    parallel_for(*pool, 1, [&](std::int64_t, int) { ++begun; });
    CHECK(begun == 0);
    stop = false;
    parallel_for(*pool, 100, [&](std::int64_t, int) { ++begun; });
    CHECK(begun == 100);
    stop = true;
    pool->stop_when(nullptr);
    parallel_for(*pool, 100, [&](std::int64_t, int) { ++begun; });
    CHECK(begun == 200);
  }
}

TEST_CASE("a caller that is wanted elsewhere pauses between two tasks of a call, and each task runs once") {
  for (const int threads : {1, 2, 4}) {
    for (const bool alone : {false, true}) {
      const auto pool = *make_thread_pool(threads);
      pool->keep_to_caller(alone);
      struct Elsewhere {
        std::atomic<bool> wanted{false};
        int pauses = 0;
        std::unique_ptr<ThreadPool> other = *make_thread_pool(2);
        std::atomic<int> others{0};
      } elsewhere;
      pool->pause_when({&elsewhere.wanted,
                        [](void* context) noexcept {
                          Elsewhere& self = *static_cast<Elsewhere*>(context);
                          self.wanted = false;
                          ++self.pauses;
                          parallel_for(*self.other, 10, [&](std::int64_t, int) noexcept { ++self.others; });
                        },
                        &elsewhere});
      std::vector<std::atomic<int>> runs(1000);
      int asked = 0;
      parallel_for(*pool, 1000, [&](std::int64_t index, int thread) noexcept {
        runs[static_cast<std::size_t>(index)].fetch_add(1);
        if (thread != 0 || index % 7 != 0) return;
        ++asked;
        elsewhere.wanted = true;
      });
      for (const auto& n : runs) REQUIRE(n.load() == 1);
      // Of one thread the last task may be too late to be told.
      CHECK(elsewhere.pauses + elsewhere.wanted.load() == asked);
      CHECK(elsewhere.others == 10 * elsewhere.pauses);
      if (threads == 1 || alone) CHECK(asked == 143);
      elsewhere.wanted = true;
      pool->pause_when({});
      const int before = elsewhere.pauses;
      parallel_for(*pool, 100, [](std::int64_t, int) noexcept {});
      CHECK(elsewhere.pauses == before);
    }
  }
}

}  // namespace sluice
