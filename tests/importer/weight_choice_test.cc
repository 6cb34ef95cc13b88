// convert --weights auto: forms follow the disk and the budget, never cost more than is said, and the file runs.
#include "sluice/importer/weight_choice.h"

#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

using importer::ChosenWeight;
using importer::WeightChoice;
using importer::WeightPrice;
using kernels::PanelStorage;

constexpr std::int64_t kWidth = 512;
constexpr int kLayers = 4;

/// Uniform in [-1, 1), always the same.
Floats noise(std::int64_t count, std::uint32_t state) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f);
  }
  return values;
}

/// Dense layers behind each other. Those with spikes lose more by few bits: a spike is as large as all else of its scale together.
OnnxBuilder layers(float last = 0.0f) {
  OnnxBuilder b(13);
  b.input("x", {64, kWidth});
  std::string from = "x";
  for (int layer = 0; layer < kLayers; ++layer) {
    Floats values = noise(kWidth * kWidth, static_cast<std::uint32_t>(layer) + 1);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= layer % 2 == 1 && i % 97 == 0 ? 1.0f : 0.05f;
    if (layer + 1 == kLayers && last != 0.0f) values.back() = last;
    const std::string name = "w" + std::to_string(layer), to = "y" + std::to_string(layer);
    b.initializer(tensor(name, {kWidth, kWidth}, values)).node("MatMul", {from, name}, {to});
    from = to;
  }
  return b.output(from);
}

/// Plans of sessions whose disk reads so fast.
importer::PriceWeights priced(double bytes_per_second, Bytes budget) {
  return [=](const std::string& path) -> Result<WeightPrice> {
    SLUICE_ASSIGN_OR_RETURN(const auto model, Model::open(path));
    SessionOptions options{.budget = budget, .repeat = true};
    options.emulation.read_bytes_per_second = bytes_per_second;
    SLUICE_ASSIGN_OR_RETURN(const PlannedBudget planned, plan_session(*model, options));
    const plan::Prediction& p = planned.plan.prediction;
    return WeightPrice{p.period_ms, p.compute_ms, planned.plan.streamed_bytes};
  };
}

WeightChoice chosen(const TemporaryFolder& folder, const importer::PriceWeights& price, const OnnxBuilder& builder = layers()) {
  write_file(folder.path("m.onnx"), builder.bytes());
  WeightChoice choice;
  importer::ConvertReport report;
  REQUIRE(importer::choose_weights(folder.path("m.onnx"), folder.path("scratch"), {}, price, choice, report));
  CHECK_FALSE(std::filesystem::exists(folder.path("scratch")));
  return choice;
}

Bytes bytes_of(const WeightChoice& choice) {
  Bytes sum;
  for (const ChosenWeight& weight : choice.weights) sum += weight.bytes;
  return sum;
}

importer::ConvertOptions options_of(const WeightChoice& choice) {
  importer::ConvertOptions options;
  for (const ChosenWeight& weight : choice.weights) options.weight_forms[weight.name] = weight.storage;
  return options;
}

constexpr Bytes kBudget{3u << 20};  // of 4 MiB of weights

}  // namespace

TEST_CASE("a slower disk gets fewer bytes and more noise") {
  const TemporaryFolder folder;
  const WeightChoice slow = chosen(folder, priced(50e6, kBudget)), middle = chosen(folder, priced(1.2e9, kBudget)),
                     fast = chosen(folder, priced(1e12, kUnlimitedBytes));
  CHECK(bytes_of(slow) < bytes_of(middle));
  CHECK(bytes_of(middle) < bytes_of(fast));
  CHECK(slow.noise > middle.noise);
  CHECK(fast.noise == 0.0);
  for (const ChosenWeight& weight : fast.weights) CHECK(weight.storage == PanelStorage::kF32);
  CHECK(slow.chosen.period_ms < slow.given.period_ms);
  CHECK(slow.chosen.streamed < slow.given.streamed);
}

TEST_CASE("weights that lose most by few bits keep most of them") {
  const TemporaryFolder folder;
  // A price that knows bytes alone: half of what f32 takes must go.
  const auto price = [](const std::string& path) -> Result<WeightPrice> {
    SLUICE_ASSIGN_OR_RETURN(const auto model, Model::open(path));
    Bytes bytes;
    for (const model::Weight& weight : model->graph().weights) bytes += weight.bytes;
    const auto all = static_cast<double>(kLayers * kWidth * kWidth) * sizeof(float);
    return WeightPrice{std::max(1.0, static_cast<double>(bytes.count()) / (0.2 * all)), 1.0, bytes};
  };
  const WeightChoice choice = chosen(folder, price);
  REQUIRE(choice.weights.size() == kLayers);
  CHECK(bytes_of(choice).count() <= 0.203 * kLayers * kWidth * kWidth * sizeof(float));
  double smooth = 0, spiked = 0;
  for (int layer = 0; layer < kLayers; ++layer)
    (layer % 2 == 1 ? spiked : smooth) += static_cast<double>(choice.weights[static_cast<std::size_t>(layer)].bytes.count());
  CHECK(spiked > smooth);
}

TEST_CASE("what was chosen is what convert writes, and its error is what was said") {
  const TemporaryFolder folder;
  const WeightChoice choice = chosen(folder, priced(50e6, kBudget));
  const auto model = converted(folder, layers(), "chosen", options_of(choice));
  std::size_t found = 0;
  for (const model::Weight& weight : model->graph().weights)
    for (const ChosenWeight& chosen : choice.weights) {
      if (weight.name != chosen.name) continue;
      CHECK(weight.bytes == chosen.bytes);
      ++found;
    }
  CHECK(found == choice.weights.size());
  const Floats input = noise(64 * kWidth, 99);
  const Values given = outputs(converted(folder, layers(), "given"), {input}, {});
  const Values got = outputs(model, {input}, {.budget = kBudget, .repeat = true});
  double error = 0, signal = 0;
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    const double off = static_cast<double>(got[0][i]) - static_cast<double>(given[0][i]);
    error += off * off;
    signal += static_cast<double>(given[0][i]) * static_cast<double>(given[0][i]);
  }
  CHECK(error > 0);
  CHECK(error < 4 * choice.noise * signal);
}

TEST_CASE("no form is chosen that cannot hold a weight") {
  const TemporaryFolder folder;
  const WeightChoice large = chosen(folder, priced(50e6, kBudget), layers(70000.0f));
  CHECK(large.weights.back().storage != PanelStorage::kF16);
  CHECK(large.weights.back().storage != PanelStorage::kInt4);
  const WeightChoice infinite = chosen(folder, priced(50e6, kBudget), layers(INFINITY));
  CHECK((infinite.weights.back().storage == PanelStorage::kF32 || infinite.weights.back().storage == PanelStorage::kBf16));
}

TEST_CASE("a budget that holds no choice is refused, one that holds only few bits is not") {
  const TemporaryFolder folder;
  write_file(folder.path("m.onnx"), layers().bytes());
  WeightChoice choice;
  importer::ConvertReport report;
  const Status none = importer::choose_weights(folder.path("m.onnx"), folder.path("scratch"), {}, priced(1e9, Bytes(4096)), choice, report);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::kBudgetTooSmall);
  const auto only_small = [](const std::string& path) -> Result<WeightPrice> {
    SLUICE_ASSIGN_OR_RETURN(const auto model, Model::open(path));
    Bytes bytes;
    for (const model::Weight& weight : model->graph().weights) bytes += weight.bytes;
    if (bytes > Bytes(1u << 20)) return fail(ErrorCode::kBudgetTooSmall, "budget", "too small");
    return WeightPrice{1, 1, bytes};
  };
  const WeightChoice small = chosen(folder, only_small);
  CHECK_FALSE(small.held);
  CHECK(bytes_of(small) <= Bytes(1u << 20));
}
