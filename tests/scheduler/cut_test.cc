#include "sluice/scheduler/cut.h"

#include <catch2/catch.hpp>

#include "tests/scheduler/small_instances.h"

namespace sluice::scheduler {
namespace {

CutOperator op(std::vector<Time> times, std::vector<std::size_t> reads_from, std::uint64_t bytes) {
  return {std::move(times), std::move(reads_from), Bytes(bytes)};
}

TEST_CASE("units end where the processors that support an operator change") {
  const Device device = make_device(2);
  const std::vector<CutOperator> operators = {op({1, 1}, {}, 8), op({2, 2}, {0}, 8), op({3, kNever}, {1}, 8), op({4, 4}, {2, 0}, 8)};
  CHECK(cut_ends(operators) == std::vector<std::size_t>{2, 3, 4});
  const Result<Model> model = cut_units(device, "net", operators);
  REQUIRE(model);
  CHECK(model->units[0].times == std::vector<Time>{3, 3});
  CHECK(model->units[1].times == std::vector<Time>{3, kNever});
  CHECK(model->units[2].reads_from == std::vector<UnitIndex>{0, 1});
  CHECK(model->units[0].output == Bytes(16));  // operator 1 for the next unit, operator 0 for the last
  CHECK_FALSE(model->is_chain());
}

TEST_CASE("a long piece is cut where little is live") {
  std::vector<CutOperator> operators;
  for (std::size_t i = 0; i < 8; ++i)
    operators.push_back(op({kMs}, i > 0 ? std::vector<std::size_t>{i - 1} : std::vector<std::size_t>{}, i == 4 ? 10 : 1000));
  CHECK(cut_ends(operators, {.longest = 6 * kMs}) == std::vector<std::size_t>{5, 8});
  CHECK(cut_ends(operators, {.longest = 8 * kMs}) == std::vector<std::size_t>{8});
  CHECK(cut_ends(operators, {.longest = 1}).size() == 8);
}

TEST_CASE("what cannot run anywhere or reads ahead is refused") {
  const Device device = make_device(1);
  CHECK_FALSE(cut_units(device, "net", std::vector{op({kNever}, {}, 8)}));
  CHECK_FALSE(cut_units(device, "net", std::vector{op({1}, {0}, 8)}));
  CHECK_FALSE(cut_units(device, "net", std::vector{op({1, 1}, {}, 8)}));
  CHECK_FALSE(cut_units(device, "net", {}));
  Model model = make_chain({{5}, {5}});
  CHECK(check_model(device, model));
  model.units[0].reads_from = {1};
  CHECK_FALSE(check_model(device, model));
  Device broken = make_device(2);
  CHECK(check_device(broken));
  broken.transfers[0].fixed = 1;
  CHECK_FALSE(check_device(broken));
}

}  // namespace
}  // namespace sluice::scheduler
