// convert --weights: panels of fewer bits than f32. At the smallest budget, which does not hold them, the bits are those of a run that has
// all memory; the values are those of the floats that the panels stand for; and these are near the file's.
#include <cstring>

#include "sluice/core/half.h"
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

using kernels::PanelStorage;

/// Values that no storage but f32 holds exactly.
Floats uneven(std::int64_t count, float scale) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(scale * std::sin(static_cast<float>(i) * 0.7391f));
  return values;
}

/// A layer of each kernel that takes narrow panels: Winograd, windows, pixels, depthwise, short groups, transposed, dense, rows of a table, turns
/// of a cell. `round`: of its weights.
template <class Round>
OnnxBuilder layers(const Round& round) {
  const auto weight = [&](OnnxBuilder& b, const std::string& name, const Ints& dims, float scale) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    Floats values = uneven(count, scale);
    for (float& value : values) value = round(value);
    b.initializer(tensor(name, dims, values));
  };
  OnnxBuilder b(13);
  b.input("x", {1, 32, 12, 12}).input("i", {1});
  weight(b, "w0", {48, 32, 3, 3}, 0.05f);
  weight(b, "w1", {80, 48, 3, 3}, 0.05f);
  weight(b, "w2", {96, 80, 1, 1}, 0.1f);
  weight(b, "w3", {96, 40, 2, 2}, 0.1f);
  weight(b, "w4", {1440, 2000}, 0.05f);
  weight(b, "w5", {300, 70}, 1.0f);
  weight(b, "w6", {48, 1, 11, 11}, 0.05f);
  weight(b, "w7", {48, 12, 3, 3}, 0.05f);
  weight(b, "w8", {1, 480, 70}, 0.1f);
  weight(b, "w9", {1, 480, 120}, 0.1f);
  b.node("Conv", {"x", "w0"}, {"a"}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Relu", {"a"}, {"ap"});
  b.node("Conv", {"ap", "w6"}, {"aq"}, {attribute("pads", Ints{5, 5, 5, 5}), attribute("group", std::int64_t{48})});
  b.node("Conv", {"aq", "w7"}, {"ag"}, {attribute("pads", Ints{1, 1, 1, 1}), attribute("group", std::int64_t{4})})
      .node("Relu", {"ag"}, {"ar"});
  b.node("Conv", {"ar", "w1"}, {"b"}, {attribute("strides", Ints{2, 2}), attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Conv", {"b", "w2"}, {"c"}).node("Relu", {"c"}, {"cr"});
  b.node("ConvTranspose", {"cr", "w3"}, {"d"}, {attribute("strides", Ints{2, 2})});
  b.node("MaxPool", {"d"}, {"p"}, {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})});
  b.node("Flatten", {"p"}, {"f"}).node("MatMul", {"f", "w4"}, {"y"});
  b.node("Cast", {"i"}, {"n"}, {attribute("to", std::int64_t{7})}).node("Gather", {"w5", "n"}, {"row"});
  b.initializer(tensor("turns", {3, 1, 1}, Floats{1, -0.5f, 0.25f})).node("Mul", {"turns", "row"}, {"rows"});
  b.node("LSTM", {"rows", "w8", "w9"}, {"z"}, {attribute("hidden_size", std::int64_t{120})});
  return b.output("y").output("z");
}

const Values kInputs{uneven(32 * 12 * 12, 1.0f), {217.0f}};

float as_given(float value) { return value; }
float as_bf16(float value) { return float_of_bf16(bf16_of_float(value)); }
float as_f16(float value) { return float_of_f16(f16_of_float(value)); }

std::shared_ptr<const Model> stored(const TemporaryFolder& folder, PanelStorage storage) {
  importer::ConvertOptions options;
  options.weights = storage;
  return converted(folder, layers(as_given), "stored", options);
}

Bytes weight_bytes(const Model& model) {
  Bytes sum;
  for (const model::Weight& weight : model.graph().weights) sum += weight.bytes;
  return sum;
}

float largest(const Values& values) { return worst(values, {Floats(values[0].size()), Floats(values[1].size())}); }

}  // namespace

TEST_CASE("weights of 16 bits take half the bytes, and stand for the very floats that they round to") {
  const TemporaryFolder folder;
  const Bytes whole = weight_bytes(*converted(folder, layers(as_given), "given"));
  const std::pair<PanelStorage, float (*)(float)> kStorages[] = {{PanelStorage::kBf16, as_bf16}, {PanelStorage::kF16, as_f16}};
  for (const auto& [storage, round] : kStorages) {
    const auto model = stored(folder, storage);
    const Bytes bytes = weight_bytes(*model);
    CHECK(2 * bytes.count() < whole.count() + 4096);
    CHECK(check_budgets(model, kInputs, bytes) == outputs(converted(folder, layers(round), "rounded"), kInputs, {}));
  }
}

TEST_CASE("weights of 8 and 4 bits are near the file's, and stream") {
  const TemporaryFolder folder;
  const auto given = converted(folder, layers(as_given), "given");
  const Values want = outputs(given, kInputs, {});
  const auto check = [&](PanelStorage storage, double share, float error) {
    const auto model = stored(folder, storage);
    CHECK(static_cast<double>(weight_bytes(*model).count()) < share * static_cast<double>(weight_bytes(*given).count()));
    const float found = worst(check_budgets(model, kInputs, weight_bytes(*model)), want) / largest(want);
    CHECK(found < error);
    CHECK(found > 0.0f);
  };
  check(PanelStorage::kInt8, 0.28, 0.02f);
  check(PanelStorage::kInt4, 0.16, 0.2f);
}

TEST_CASE("weights of so few values that scales cost more than bits save take the form of the fewest bytes") {
  const TemporaryFolder folder;
  importer::ConvertOptions options;
  options.weights = PanelStorage::kInt4;
  const auto dtype_of = [&](std::int64_t channels, std::int64_t taps) {
    OnnxBuilder b(13);
    b.input("x", {1, channels, 12, 12}).initializer(tensor("w", {channels, 1, taps, taps}, uneven(channels * taps * taps, 0.5f)));
    b.node("Conv", {"x", "w"}, {"y"}, {attribute("group", channels)}).output("y");
    return converted(folder, b, "few", options)->graph().weights[0].panel_layout.dtype;
  };
  CHECK(dtype_of(4200, 1) == DType::kF32);  // a line of 64 bytes a panel in any form
  CHECK(dtype_of(600, 3) == DType::kBF16);
  CHECK(dtype_of(100, 9) == DType::kU8);
}

TEST_CASE("an f16 file keeps its own bytes, unless f32 is asked for") {
  const TemporaryFolder folder;
  std::string halves;
  for (const float value : uneven(512 * 640, 0.05f)) {
    const std::uint16_t half = f16_of_float(value);
    halves.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  constexpr int kF16 = 10;
  OnnxBuilder b(13);
  b.input("x", {3, 512}).initializer(raw_tensor("w", {512, 640}, kF16, halves));
  b.node("Cast", {"w"}, {"wide"}, {attribute("to", std::int64_t{1})}).node("MatMul", {"x", "wide"}, {"y"}).output("y");
  importer::ConvertOptions options;
  const auto own = converted(folder, b, "own");
  options.weights = PanelStorage::kF32;
  const auto wide = converted(folder, b, "wide", options);
  CHECK(own->graph().weights[0].panel_layout.dtype == DType::kF16);
  CHECK(wide->graph().weights[0].panel_layout.dtype == DType::kF32);
  const Values inputs{uneven(3 * 512, 1.0f)};
  CHECK(outputs(own, inputs, {}) == outputs(wide, inputs, {}));
}

TEST_CASE("weights that f16 cannot hold stay f32") {
  const TemporaryFolder folder;
  Floats values = uneven(512 * 64, 0.05f);
  values[777] = 70000.0f;
  OnnxBuilder b(13);
  b.input("x", {3, 512}).initializer(tensor("w", {512, 64}, values)).node("MatMul", {"x", "w"}, {"y"}).output("y");
  importer::ConvertOptions options;
  options.weights = PanelStorage::kF16;
  CHECK(converted(folder, b, "large", options)->graph().weights[0].panel_layout.dtype == DType::kF32);
  options.weights = PanelStorage::kBf16;
  CHECK(converted(folder, b, "large", options)->graph().weights[0].panel_layout.dtype == DType::kBF16);
}

TEST_CASE("steps of few pixels, which multiply by 16 bits as they lie, have the bits of the floats that these stand for") {
  const TemporaryFolder folder;
  const std::pair<PanelStorage, float (*)(float)> kStorages[] = {{PanelStorage::kBf16, as_bf16}, {PanelStorage::kF16, as_f16}};
  for (const auto& [storage, round] : kStorages)
    for (std::int64_t rows = 1; rows <= 6; ++rows) {
      const auto dense = [&](float (*rounding)(float)) {
        Floats values = uneven(301 * 90, 0.05f);  // an odd depth, five panels and a part of one
        for (float& value : values) value = rounding(value);
        OnnxBuilder b(13);
        b.input("x", {rows, 301}).initializer(tensor("w", {301, 90}, values)).initializer(tensor("b", {90}, uneven(90, 0.3f)));
        b.node("MatMul", {"x", "w"}, {"m"}).node("Add", {"m", "b"}, {"a"}).node("Sigmoid", {"a"}, {"y"});
        return b.output("y");
      };
      importer::ConvertOptions options;
      options.weights = storage;
      const Values inputs{uneven(rows * 301, 1.0f)};
      const Values want = outputs(converted(folder, dense(round), "rounded"), inputs, {});
      CHECK(outputs(converted(folder, dense(as_given), "stored", options), inputs, {}) == want);
    }
}
