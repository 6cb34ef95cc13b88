// Sparse weights from an ONNX file to a run: which weights convert takes, the bits of the dense model at every budget, pruning, and weights
// whose bitmaps lie.
#include <fstream>

#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Of the blocks of 16 outputs and one value, `share` are zero.
Floats with_zeros(const Ints& dims, double share) {
  std::int64_t each = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) each *= dims[i];
  Floats values;
  for (std::int64_t n = 0; n < dims[0]; ++n)
    for (std::int64_t i = 0; i < each; ++i) {
      const auto mixed = static_cast<std::uint32_t>((n / 16 * each + i) * 2654435761u) >> 8;
      const bool zero = static_cast<double>(mixed) < share * 0x1p24;
      values.push_back(zero ? 0.0f : 0.1f * std::sin(static_cast<float>(n * each + i) * 0.7391f));
    }
  return values;
}

/// A window, pixels and a dense layer with so many zero blocks; the first would take Winograd's sums.
OnnxBuilder layers(double share) {
  OnnxBuilder b(13);
  b.input("x", {1, 32, 12, 12});
  const auto weight = [&](const std::string& name, const Ints& dims) { b.initializer(tensor(name, dims, with_zeros(dims, share))); };
  weight("w0", {48, 32, 3, 3});
  weight("w1", {200, 48, 1, 1});
  weight("w2", {200, 7200});
  b.node("Conv", {"x", "w0"}, {"a"}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Relu", {"a"}, {"ar"});
  b.node("Conv", {"ar", "w1"}, {"b"});
  b.node("MaxPool", {"b"}, {"p"}, {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})});
  b.node("Flatten", {"p"}, {"f"}).node("Gemm", {"f", "w2"}, {"y"}, {attribute("transB", std::int64_t{1})});
  return b.output("y");
}

const Values kInputs{[] {
  Floats values;
  for (int i = 0; i < 32 * 12 * 12; ++i) values.push_back(std::sin(static_cast<float>(i) * 0.31f));
  return values;
}()};

std::size_t sparse_weights(const Model& model) {
  const auto sparse = [](const model::Weight& weight) { return weight.panel_layout.layout == WeightLayout::kSparse; };
  return static_cast<std::size_t>(std::count_if(model.graph().weights.begin(), model.graph().weights.end(), sparse));
}
Bytes weight_bytes(const Model& model) {
  Bytes sum;
  for (const model::Weight& weight : model.graph().weights) sum += weight.bytes;
  return sum;
}

}  // namespace

TEST_CASE("weights of many zero blocks become sparse, and give the dense model's bits at every budget") {
  const TemporaryFolder folder;
  importer::ConvertOptions dense{.exact = true};
  dense.sparse = false;
  const auto with_them = converted(folder, layers(0.8), "dense", dense);
  CHECK(sparse_weights(*with_them) == 0);
  const auto without = converted(folder, layers(0.8), "sparse");
  CHECK(sparse_weights(*without) == 3);
  CHECK(without->graph().nodes[0].numeric == model::NumericClass::kExact);  // no Winograd over sparse panels
  CHECK(4 * weight_bytes(*without).count() < weight_bytes(*with_them).count() + (1 << 16));
  CHECK(check_budgets(without, kInputs, weight_bytes(*without), true) == outputs(with_them, kInputs, {}));
}

TEST_CASE("coded and of 16 bits, sparse weights are the same") {
  const TemporaryFolder folder;
  for (const auto storage : {kernels::PanelStorage::kF32, kernels::PanelStorage::kBf16, kernels::PanelStorage::kF16}) {
    importer::ConvertOptions options{.exact = true};
    options.weights = storage;
    options.sparse = false;
    const Values wanted = outputs(converted(folder, layers(0.7), "dense", options), kInputs, {});
    options.sparse = true;
    options.code = importer::Coding::kSmall;
    const auto model = converted(folder, layers(0.7), "sparse", options);
    CHECK(sparse_weights(*model) == 3);
    CHECK(check_budgets(model, kInputs, weight_bytes(*model)) == wanted);
  }
}

TEST_CASE("a weight with fewer zero blocks than pay stays dense") {
  const TemporaryFolder folder;
  CHECK(sparse_weights(*converted(folder, layers(0.0), "none")) == 0);
  CHECK(sparse_weights(*converted(folder, layers(0.15), "few")) == 0);
  const auto some = converted(folder, layers(0.5), "some");  // not enough for the layer that has Winograd's sums
  CHECK(sparse_weights(*some) == 2);
  CHECK(some->graph().nodes[0].numeric == model::NumericClass::kWinograd4);
}

TEST_CASE("pruning leaves out the least blocks, the share that was asked for") {
  const TemporaryFolder folder;
  importer::ConvertOptions options;
  options.prune = 0.75;
  write_file(folder.path("net.onnx"), layers(0.0).bytes());
  importer::ConvertReport report;
  REQUIRE(importer::convert(folder.path("net.onnx"), folder.path("net.sluice"), options, report));
  REQUIRE(report.pruned.size() == 3);
  for (const importer::PrunedWeight& weight : report.pruned) {
    CHECK(weight.after.count() < weight.before.count() * 3 / 10);
    CHECK(weight.noise_db > 0);
    CHECK(weight.noise_db < 20);
  }
  const auto model = *Model::open(folder.path("net.sluice"));
  CHECK(check_budgets(model, kInputs, weight_bytes(*model)) != outputs(converted(folder, layers(0.0), "whole"), kInputs, {}));

  // What is zero already costs nothing.
  write_file(folder.path("net.onnx"), layers(0.9).bytes());
  REQUIRE(importer::convert(folder.path("net.onnx"), folder.path("net.sluice"), options, report));
  REQUIRE(report.pruned.size() == 3);
  for (const importer::PrunedWeight& weight : report.pruned) CHECK(std::isinf(weight.noise_db));
}

TEST_CASE("pruning leaves weights dense whose blocks are all alike, and prunes at the least share that pays") {
  const TemporaryFolder folder;
  importer::ConvertOptions options;
  importer::ConvertReport report;
  const auto converted_with = [&](double share, float value) {
    options.prune = share;
    OnnxBuilder b(13);
    b.input("x", {1, 301}).initializer(tensor("w", {301, 64}, value != 0 ? Floats(301 * 64, value) : with_zeros({301, 64}, 0)));
    b.node("MatMul", {"x", "w"}, {"y"}).output("y");
    write_file(folder.path("net.onnx"), b.bytes());
    REQUIRE(importer::convert(folder.path("net.onnx"), folder.path("net.sluice"), options, report));
    return report.pruned.size();
  };
  CHECK(converted_with(0.5, 1.0f) == 0);
  CHECK(sparse_weights(**Model::open(folder.path("net.sluice"))) == 0);
  CHECK(converted_with(0.25, 0) == 1);
}

TEST_CASE("a bitmap that was changed in the file is found by its hash") {
  const TemporaryFolder folder;
  const auto model = converted(folder, layers(0.8), "net");
  const model::Weight& weight = model->graph().weights[0];
  REQUIRE(weight.panel_layout.layout == WeightLayout::kSparse);
  // Forging the hash as well gives what the test of the kernels gives them.
  std::fstream file(folder.path("net.sluice"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(weight.offset.count()));
  const std::string ones(16, '\xff');
  file.write(ones.data(), static_cast<std::streamsize>(ones.size()));
  file.close();
  const auto forged = Model::open(folder.path("net.sluice"));
  REQUIRE(forged);
  const auto session = Session::create(*forged, {});
  REQUIRE(session);
  REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(kInputs[0]))));
  const Status status = (*session)->run();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kChecksumMismatch);
}
