// Coded weights are the same weights: whatever reads them, at whatever budget, gives the bits of a file that is not coded.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "sluice/plan/verify.h"
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Values whose exponents are as uneven as trained ones.
Floats bell(std::int64_t count) {
  Floats values;
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = -2;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
    values.push_back(0.05f * sum);
  }
  return values;
}

/// Convolutions, of which one is Winograd's, and a dense layer.
OnnxBuilder image_net() {
  OnnxBuilder b(14);
  b.input("x", {1, 32, 12, 12});
  b.initializer(tensor("w0", {96, 32, 3, 3}, bell(96 * 32 * 9)))
      .initializer(tensor("w1", {80, 96, 1, 1}, bell(80 * 96)))
      .initializer(tensor("w2", {80, 80, 3, 3}, bell(80 * 80 * 9)));
  b.initializer(tensor("w3", {500, 80 * 36}, bell(500 * 80 * 36)));
  b.node("Conv", {"x", "w0"}, {"a"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Relu", {"a"}, {"b"});
  b.node("Conv", {"b", "w1"}, {"c"});
  b.node("Conv", {"c", "w2"}, {"d"}, {attribute("strides", Ints{2, 2}), attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Flatten", {"d"}, {"e"});
  b.node("Gemm", {"e", "w3"}, {"y"}, {attribute("transB", std::int64_t{1})});
  b.output("y");
  return b;
}

/// A table of which a step reads a few rows by itself, and matrices that are read again each turn.
OnnxBuilder language_net() {
  OnnxBuilder b(14);
  b.input("x", {5, 1, 128});
  b.initializer(tensor("w", {1, 4 * 160, 128}, bell(4 * 160 * 128))).initializer(tensor("r", {1, 4 * 160, 160}, bell(4 * 160 * 160)));
  b.initializer(tensor("table", {6000, 160}, bell(6000 * 160))).initializer(tensor("rows", {5, 1}, Ints{3, 5999, 0, 77, 4100}));
  b.node("LSTM", {"x", "w", "r"}, {"h", "last"}, {attribute("hidden_size", std::int64_t{160})});
  b.node("Squeeze", {"h", "axis"}, {"s"});
  b.initializer(tensor("axis", {1}, Ints{1}));
  b.node("Gather", {"table", "rows"}, {"g"});
  b.node("Add", {"s", "g"}, {"a"});
  b.initializer(tensor("turned", {160, 900}, bell(160 * 900)));
  b.node("MatMul", {"a", "turned"}, {"y"});
  b.output("y");
  return b;
}

std::uint64_t stored_bytes(const model::Graph& graph) {
  std::uint64_t sum = 0;
  for (const model::Stretch& stretch : graph.stretches) sum += stretch.stored_size.count();
  return sum;
}

/// Whole numbers times a power of two, as a net has them that was trained so; two thirds are zero.
Floats few_bits(std::int64_t count) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i % 3 == 0 ? static_cast<float>(i / 3 % 7 - 3) / 64.0f : 0.0f);
  return values;
}

void check_coded(const OnnxBuilder& net, std::int64_t inputs) {
  const TemporaryFolder folder;
  const auto raw = converted(folder, net, "raw"), coded = converted(folder, net, "coded", {.code = importer::Coding::kSmall});
  REQUIRE(raw->graph().codes.empty());
  REQUIRE_FALSE(coded->graph().codes.empty());
  CHECK(static_cast<double>(stored_bytes(coded->graph())) < 0.86 * static_cast<double>(stored_bytes(raw->graph())));
  CHECK(std::filesystem::file_size(folder.path("coded.sluice")) < std::filesystem::file_size(folder.path("raw.sluice")));
  const Values x{bell(inputs)};
  const Values want = outputs(raw, x, {});
  CHECK(outputs(coded, x, {}) == want);
  CHECK(check_budgets(coded, x, Bytes(stored_bytes(raw->graph())), true) == want);
}

}  // namespace

TEST_CASE("coded weights of convolutions and dense layers give the same bits at every budget") { check_coded(image_net(), 32 * 144); }

TEST_CASE("coded weights of recurrent layers and tables give the same bits at every budget") { check_coded(language_net(), 5 * 128); }

TEST_CASE("stretches that did not shrink are found behind those of their weight that did") {
  OnnxBuilder net(14);
  net.input("x", {45, 365});
  constexpr std::int64_t kShrinks = 240 * 365, kAll = 400 * 365;
  Floats values = bell(kAll);
  std::uint32_t state = 7;
  for (std::int64_t i = kShrinks; i < kAll; ++i) {  // of any exponent: nothing can be saved
    state = state * 1664525u + 1013904223u;
    values[static_cast<std::size_t>(i)] = std::ldexp(static_cast<float>(state & 0xffff) / 65536.0f + 1.0f, -static_cast<int>(state >> 25));
  }
  net.initializer(tensor("w", {400, 365}, values));
  net.node("Gemm", {"x", "w"}, {"y"}, {attribute("transB", std::int64_t{1})});
  net.output("y");
  const TemporaryFolder folder;
  const auto raw = converted(folder, net, "raw"), coded = converted(folder, net, "coded", {.code = importer::Coding::kSmall});
  const auto shrank = [](const model::Stretch& stretch) { return stretch.stored_size.count() < stretch.raw_size.count(); };
  const std::vector<model::Stretch>& stretches = coded->graph().stretches;
  REQUIRE(std::any_of(stretches.begin(), stretches.end(), shrank));
  REQUIRE_FALSE(std::all_of(stretches.begin(), stretches.end(), shrank));
  const Values x{bell(45 * 365)};
  const Values want = outputs(raw, x, {});
  CHECK(outputs(coded, x, {}) == want);
  CHECK(check_budgets(coded, x, Bytes(stored_bytes(raw->graph())), true) == want);
}

TEST_CASE("weights that are small and always resident are coded too where they shrink by more than their table") {
  OnnxBuilder b(14);
  b.input("x", {1, 48, 6, 6});
  for (const char* name : {"w0", "w1", "w2"}) b.initializer(tensor(name, {48, 48, 1, 1}, bell(48 * 48)));
  b.initializer(tensor("b0", {48}, bell(48)));
  b.node("Conv", {"x", "w0", "b0"}, {"a"}).node("Conv", {"a", "w1"}, {"c"}).node("Conv", {"c", "w2"}, {"y"}).output("y");
  const TemporaryFolder folder;
  const auto raw = converted(folder, b, "raw"), coded = converted(folder, b, "coded", {.code = importer::Coding::kSmall});
  const Values x{bell(48 * 36)};
  const auto least = minimum_budget(*coded, {.repeat = true});
  REQUIRE(least);
  CHECK(outputs(coded, x, {.budget = *least, .repeat = true}) == outputs(raw, x, {}));
  CHECK(static_cast<double>(stored_bytes(coded->graph())) < 0.9 * static_cast<double>(stored_bytes(raw->graph())));
  for (const model::Weight& weight : coded->graph().weights) {
    CHECK(weight.always_resident);
    CHECK((weight.code != model::kNoCode) == (weight.bytes > Bytes(1024)));
  }
}

TEST_CASE("a session keeps coded weights through changes of its budget") {
  const TemporaryFolder folder;
  const auto model = converted(folder, image_net(), "coded", {.code = importer::Coding::kSmall});
  const Values x{bell(32 * 144)};
  const Values want = outputs(model, x, {});
  const auto least = minimum_budget(*model, {.repeat = true});
  REQUIRE(least);
  auto session = Session::create(model, {.budget = *least, .repeat = true});
  REQUIRE(session);
  for (const std::uint64_t more : {8u << 20, 1u << 20, 2u << 20, 0u, 3u << 20, 8u << 20, 512u << 10}) {
    CAPTURE(more);
    REQUIRE((*session)->set_budget(*least + Bytes(more)));
    for (int run = 0; run < 2; ++run) {
      REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x[0]))));
      REQUIRE((*session)->run());
      Floats got(want[0].size());
      REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(got))));
      CHECK(got == want[0]);
    }
  }
}

TEST_CASE("a flipped bit of a coded stretch is found before a step uses it") {
  const TemporaryFolder folder;
  converted(folder, image_net(), "coded", {.code = importer::Coding::kSmall});
  {
    const auto model = *Model::open(folder.path("coded.sluice"));
    const model::Graph& graph = model->graph();
    const auto stretch = std::find_if(graph.stretches.begin(), graph.stretches.end(),
                                      [](const model::Stretch& s) { return s.form == model::StretchForm::kCoded; });
    REQUIRE(stretch != graph.stretches.end());
    std::fstream file(folder.path("coded.sluice"), std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(stretch->offset.count() + stretch->stored_size.count() / 2);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 4));
  }
  const auto model = *Model::open(folder.path("coded.sluice"));
  const auto session = Session::create(model, {});
  REQUIRE(session);
  const Floats x = bell(32 * 144);
  REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
  const Status run = (*session)->run();
  REQUIRE_FALSE(run);
  CHECK(run.error().code == ErrorCode::kChecksumMismatch);
}

TEST_CASE("a plan whose loads of coded weights are not what they must be is refused") {
  const TemporaryFolder folder;
  const auto model = converted(folder, image_net(), "coded", {.code = importer::Coding::kSmall});
  SessionOptions options;
  options.budget = *minimum_budget(*model, options);
  const plan::Plan sound = plan_session(*model, options)->plan;
  const auto verdict = [&](const plan::Plan& plan) {
    const Status status = plan::verify(plan, model->graph(), {.file_size = model->file().file_size(), .model_hash = model->file().hash()});
    return status ? std::string() : status.error().to_string();
  };
  REQUIRE(verdict(sound) == "");
  const auto expanding = static_cast<std::size_t>(
      std::find_if(sound.loads.begin(), sound.loads.end(), [](const plan::Load& load) { return load.expands() && load.streamed(); }) -
      sound.loads.begin());
  REQUIRE(expanding < sound.loads.size());
  plan::Plan broken = sound;
  broken.buffers[broken.loads[expanding].target.index()].size -= Bytes(4096);
  CHECK(verdict(broken).find("I4: its region is not what it expands to") != std::string::npos);
  broken = sound;
  broken.loads[expanding].form = model::StretchForm::kRaw;
  CHECK(verdict(broken).find("I4: its region") != std::string::npos);
  broken = sound;
  broken.loads[expanding].form = model::StretchForm::kEncrypted;
  CHECK_FALSE(verdict(broken).empty());
  broken = sound;
  broken.loads[expanding].first_stretch += 1;
  CHECK_FALSE(verdict(broken).empty());
}

TEST_CASE("what is coded follows from what was asked for") {
  const TemporaryFolder folder;
  const auto coded = [&](const importer::ConvertOptions& options) {
    return converted(folder, image_net(), "net", options)->graph().codes.size();
  };
  CHECK(coded({}) == 0);
  CHECK(coded({.code = importer::Coding::kFast}) == 4);
  CHECK(coded({.code = importer::Coding::kAuto, .disk_bytes_per_second = 100e6}) == 4);
  CHECK(coded({.code = importer::Coding::kAuto, .disk_bytes_per_second = 3.5e9}) == 4);
  CHECK(coded({.code = importer::Coding::kAuto, .disk_bytes_per_second = 4.5e9}) == 0);  // faster than a core judges and decodes
}

TEST_CASE("the same net gives the same coded file") {
  const TemporaryFolder folder;
  const auto bytes = [&](const std::string& name) {
    converted(folder, language_net(), name, {.code = importer::Coding::kSmall});
    std::ifstream file(folder.path(name + ".sluice"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK(bytes("a") == bytes("b"));
}

TEST_CASE("floats of few bits are coded byte by byte where files are to be small") {
  OnnxBuilder net(14);
  net.input("x", {1, 128, 6, 6});
  net.initializer(tensor("along", {128, 1, 3, 3}, few_bits(128 * 9))).initializer(tensor("across", {64, 128, 1, 1}, few_bits(64 * 128)));
  net.node("Conv", {"x", "along"}, {"a"}, {attribute("group", std::int64_t{128})});
  net.node("Conv", {"a", "across"}, {"y"});
  net.output("y");
  const TemporaryFolder folder;
  const auto raw = converted(folder, net, "raw", {.sparse = false}),
             small = converted(folder, net, "small", {.sparse = false, .code = importer::Coding::kSmall}),
             fast = converted(folder, net, "fast", {.sparse = false, .code = importer::Coding::kFast});
  for (const model::Code& code : small->graph().codes) CHECK(code.plane == model::CodePlane::kBytes);
  for (const model::Code& code : fast->graph().codes) CHECK(code.plane == model::CodePlane::kRotated32);
  CHECK(stored_bytes(small->graph()) * 8 < stored_bytes(raw->graph()));
  CHECK(stored_bytes(fast->graph()) * 4 > stored_bytes(raw->graph()) * 3);
  const Values x{bell(128 * 36)};
  const Values want = outputs(raw, x, {});
  CHECK(outputs(small, x, {}) == want);
  CHECK(outputs(fast, x, {}) == want);
}
