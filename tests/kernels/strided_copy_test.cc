// The movement engine against an element-by-element walk: random axes and the patterns that have loops of their own, every element size,
// instruction set and share. Source and target are exactly as large as the copy needs, so that a sanitizer sees what lies beyond.
#include "src/kernels/movement/strided_copy.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "src/kernels/movement/regions.h"

using namespace sluice;
using namespace sluice::kernels::movement;

namespace {

constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 33, 65};

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{Isa::kScalar};
#if defined(__aarch64__)
  const Isa others[] = {Isa::kNeon};
#else
  const Isa others[] = {Isa::kAvx2, Isa::kAvx512};
#endif
  for (Isa isa : others)
    if (isa <= active_isa()) isas.push_back(isa);
  return isas;
}

/// The bytes from the first to behind the last that the axes reach, and where the first element lies among them.
struct Reach {
  std::int64_t size = 0, origin = 0;
};
Reach reach_of(const StridedCopy& copy, std::int64_t CopyAxis::*step) {
  std::int64_t low = 0, high = 0;
  for (int i = 0; i < copy.rank; ++i) {
    const CopyAxis& a = copy.axes[static_cast<std::size_t>(i)];
    const std::int64_t far = (a.extent - 1) * a.*step;
    (far < 0 ? low : high) += far;
  }
  return {high - low + copy.element, -low};
}

/// The simple equivalent.
void walk(const StridedCopy& copy, const std::byte* from, std::byte* to, int axis = 0) {
  if (axis == copy.rank) {
    std::memcpy(to, from, static_cast<std::size_t>(copy.element));
    return;
  }
  const CopyAxis& a = copy.axes[static_cast<std::size_t>(axis)];
  for (std::int64_t i = 0; i < a.extent; ++i) walk(copy, from + i * a.from, to + i * a.to, axis + 1);
}

/// Runs `copy`, whose pointers are not set, in every way and compares.
void check(StridedCopy copy) {
  const Reach source = reach_of(copy, &CopyAxis::from), target = reach_of(copy, &CopyAxis::to);
  std::mt19937 random(7);
  std::vector<std::byte> from(static_cast<std::size_t>(source.size)), want(static_cast<std::size_t>(target.size), std::byte{0xa5});
  for (std::byte& b : from) b = static_cast<std::byte>(random());
  copy.from = from.data() + source.origin;
  walk(copy, copy.from, want.data());
  const auto same = [&](const auto& body) {
    const std::unique_ptr<std::byte[]> got(new std::byte[want.size()]);
    std::fill_n(got.get(), want.size(), std::byte{0xa5});
    copy.to = got.get();
    body();
    return std::equal(want.begin(), want.end(), got.get());
  };
  for (const Isa isa : available_isas()) {
    INFO("isa " << static_cast<int>(isa) << ", element " << copy.element);
    for (int i = 0; i < copy.rank; ++i) {
      const CopyAxis& a = copy.axes[static_cast<std::size_t>(i)];
      UNSCOPED_INFO("axis " << a.extent << " from " << a.from << " to " << a.to);
    }
    CHECK(same([&] { run(copy, isa); }));
    CHECK(same([&] {
      for (std::int64_t part = 0; part < 3; ++part) run(part_of(copy, part, 3), isa);
    }));
  }
}

StridedCopy copy_of(std::int64_t element, std::initializer_list<CopyAxis> axes) {
  StridedCopy copy;
  copy.element = element;
  for (const CopyAxis& a : axes) copy.add(a.extent, a.from * element, a.to * element);
  return copy;
}

}  // namespace

TEST_CASE("matrices turn over, dense and with gaps") {
  for (const std::int64_t e : {1, 2, 4, 8})
    for (const std::int64_t p : kSizes)
      for (const std::int64_t q : kSizes) {
        check(copy_of(e, {{q, 1, p}, {p, q, 1}}));
        check(copy_of(e, {{2, p * q + 3, p * q + 1}, {q, 1, p}, {p, q, 1}}));
        check(copy_of(e, {{q, 1, p + 2}, {p, q + 1, 1}}));
      }
}

TEST_CASE("matrices turn over whose rows share sets of the cache") {
  for (const std::int64_t e : {1, 2, 4, 8})
    for (const std::int64_t p : kSizes)
      for (const std::int64_t q : kSizes) check(copy_of(e, {{q, 1, p}, {p, 4096 / e, 1}}));
}

TEST_CASE("lines of every step, forwards and backwards") {
  for (const std::int64_t e : {1, 2, 4, 8})
    for (const std::int64_t n : kSizes)
      for (const std::int64_t step : {-3, -2, -1, 0, 1, 2, 3, 4, 5}) {
        check(copy_of(e, {{n, step, 1}}));
        check(copy_of(e, {{3, 9, 2 * n}, {n, step, 2}}));
        check(copy_of(e, {{3, 0, n}, {n, step, 1}}));
      }
}

TEST_CASE("runs of any number of bytes") {
  for (std::int64_t bytes = 1; bytes < 140; ++bytes)
    check(copy_of(1, {{5, bytes + 3, bytes}, {3, 11 * bytes, 5 * bytes + 1}, {bytes, 1, 1}}));
}

TEST_CASE("random permutations of random axes") {
  std::mt19937 random(3);
  for (int problem = 0; problem < 300; ++problem) {
    const std::int64_t element = std::int64_t{1} << random() % 4;
    const auto rank = static_cast<std::size_t>(1 + random() % 5);
    std::vector<std::int64_t> extents(rank), from(rank), to(rank);
    for (auto& extent : extents) extent = 1 + random() % 9;
    const auto lay_out = [&](std::vector<std::int64_t>& steps) {
      std::vector<std::size_t> order(rank);
      std::iota(order.begin(), order.end(), 0u);
      std::shuffle(order.begin(), order.end(), random);
      std::int64_t step = element;
      for (const std::size_t axis : order) {
        steps[axis] = step;
        step *= extents[axis];
        if (random() % 4 == 0) step += element;  // a gap
      }
    };
    lay_out(from);
    lay_out(to);
    StridedCopy copy;
    copy.element = element;
    for (std::size_t axis = 0; axis < rank; ++axis) copy.add(extents[axis], random() % 5 == 0 ? -from[axis] : from[axis], to[axis]);
    check(copy);
  }
}

TEST_CASE("a copy without elements or onto itself touches nothing") {
  std::vector<std::byte> bytes(8, std::byte{1});
  StridedCopy copy = copy_of(4, {{0, 1, 1}, {2, 1, 1}});
  run(copy, nullptr, active_isa());
  copy = copy_of(4, {{2, 1, 1}});
  copy.from = copy.to = bytes.data();
  run(copy, nullptr, active_isa());
  CHECK(bytes == std::vector<std::byte>(8, std::byte{1}));
}

TEST_CASE("large copies are shared among threads") {
  const auto pool = make_thread_pool(3).value();
  std::vector<std::uint32_t> from(600 * 500), got(from.size());
  std::iota(from.begin(), from.end(), 0u);
  StridedCopy copy = copy_of(4, {{600, 500, 1}, {500, 1, 600}});
  copy.from = reinterpret_cast<const std::byte*>(from.data());
  copy.to = reinterpret_cast<std::byte*>(got.data());
  run(copy, pool.get(), active_isa());
  bool same = true;
  for (std::size_t i = 0; i < 600; ++i)
    for (std::size_t k = 0; k < 500; ++k) same = same && got[k * 600 + i] == from[i * 500 + k];
  CHECK(same);
}

TEST_CASE("an axis falls into pieces of one step") {
  Pieces pieces;
  REQUIRE(pieces.find(8, 4, [](std::int64_t i) { return i < 2 ? 2 - i : i < 6 ? i - 2 : 8 - i; }));  // 2 1 0 1 2 3 2 1
  std::int64_t covered = 0;
  for (int i = 0; i < pieces.count(); ++i) {
    CHECK(pieces[i].first == covered);
    covered += pieces[i].count;
  }
  CHECK(covered == 8);
  CHECK(pieces.count() == 3);
  CHECK_FALSE(pieces.find(100, 2, [](std::int64_t i) { return i / 2 % 2; }));
}
