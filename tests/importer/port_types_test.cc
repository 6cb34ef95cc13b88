// Inputs and outputs have the types that the ONNX file declares: floats of other widths are converted at the border, integers go through
// as they are. In C++ and in C.
#include <cstring>
#include <limits>

#include "sluice/core/half.h"
#include "sluice/sluice_c.h"
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

/// y = 3 x, both of one ONNX type; the factor's bytes are an initialiser of that type.
template <class T>
OnnxBuilder tripled(int onnx_type, T three) {
  OnnxBuilder b(14);
  b.input("x", {2, 3}, onnx_type);
  b.initializer(raw_tensor("w", {1}, onnx_type, {reinterpret_cast<const char*>(&three), sizeof three}));
  return b.node("Mul", {"x", "w"}, {"y"}).output("y", onnx_type);
}

/// The output for `x`, through the doors of C++ and of C, which must agree.
template <class T>
std::vector<T> run_both(const TemporaryFolder& folder, const OnnxBuilder& builder, DType dtype, const std::vector<T>& x) {
  const auto model = converted(folder, builder, "typed");
  CHECK(model->graph().dtype_of(model->graph().inputs[0]) == dtype);
  CHECK(model->graph().dtype_of(model->graph().outputs[0]) == dtype);
  const auto session = Session::create(model, {});
  REQUIRE(session);
  REQUIRE((*session)->set_input(0, dtype, std::as_bytes(std::span(x))));
  REQUIRE((*session)->run());
  std::vector<T> y(x.size());
  REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(y))));
  std::vector<T> last(2);
  REQUIRE((*session)->get_output_part(0, x.size() - 2, std::as_writable_bytes(std::span(last))));
  CHECK(std::equal(last.begin(), last.end(), y.end() - 2));

  sluice_model* c_model = nullptr;
  sluice_session* c_session = nullptr;
  REQUIRE(sluice_model_open(folder.path("typed.sluice").c_str(), &c_model) == SLUICE_OK);
  REQUIRE(sluice_session_create(c_model, nullptr, &c_session) == SLUICE_OK);
  sluice_port_info info;
  REQUIRE(sluice_input_info(c_model, 0, &info) == SLUICE_OK);
  CHECK(static_cast<int>(info.dtype) == static_cast<int>(dtype));
  CHECK(info.bytes == x.size() * sizeof(T));
  REQUIRE(sluice_session_set_input(c_session, 0, x.data(), info.bytes) == SLUICE_OK);
  REQUIRE(sluice_session_run(c_session) == SLUICE_OK);
  std::vector<T> from_c(x.size());
  REQUIRE(sluice_session_get_output(c_session, 0, from_c.data(), info.bytes) == SLUICE_OK);
  CHECK(from_c == y);
  sluice_session_close(c_session);
  sluice_model_close(c_model);
  return y;
}

template <class T>
void check_integers(int onnx_type, DType dtype) {
  const TemporaryFolder folder;
  CAPTURE(name_of(dtype));
  CHECK(run_both<T>(folder, tripled<T>(onnx_type, 3), dtype, {0, 1, 2, 5, 11, 40}) == std::vector<T>{0, 3, 6, 15, 33, 120});
}

}  // namespace

TEST_CASE("ports of 16-bit floats take and give 16-bit floats") {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> x, want;
  for (const float value : {0.1f, -0.2f, 1.7f, 100.3f, 0.0f, -7.7f}) {
    x.push_back(f16_of_float(value));
    want.push_back(f16_of_float(3.0f * float_of_f16(x.back())));
  }
  CHECK(run_both(folder, tripled(10, f16_of_float(3.0f)), DType::kF16, x) == want);
  x.clear();
  want.clear();
  for (const float value : {0.1f, -0.2f, 1.7f, 1e20f, 0.0f, -7.7f}) {
    x.push_back(bf16_of_float(value));
    want.push_back(bf16_of_float(3.0f * float_of_bf16(x.back())));
  }
  CHECK(run_both(folder, tripled(16, bf16_of_float(3.0f)), DType::kBF16, x) == want);
}

TEST_CASE("ports of f64 take and give doubles, of the values that f32 holds") {
  const TemporaryFolder folder;
  CHECK(run_both<double>(folder, tripled(11, 3.0), DType::kF64, {0.5, -0.25, 1e10, 3.0, 0.0, 0x1p-30}) ==
        std::vector<double>{1.5, -0.75, static_cast<double>(3e10f), 9.0, 0.0, 0x1.8p-29});
}

TEST_CASE("a value of f64 beyond the range of f32 is refused by the input's name, infinity is not") {
  const TemporaryFolder folder;
  const auto session = Session::create(converted(folder, tripled(11, 3.0), "typed"), {});
  REQUIRE(session);
  constexpr double kMost = std::numeric_limits<float>::max(), kInfinite = std::numeric_limits<double>::infinity();
  const auto given = [&](double value) {
    const std::vector<double> x{0, 1, 2, 3, 4, value};
    return (*session)->set_input(0, DType::kF64, std::as_bytes(std::span(x)));
  };
  for (const double value : {kMost, -kMost, kMost * (1 + 0x1p-26), 1e-300, kInfinite, -kInfinite}) CHECK(given(value));
  CHECK((*session)->run());
  for (const double value : {kMost * 2, -1e200, kMost * (1 + 0x1p-24)}) {
    const Status refused = given(value);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(refused.error().to_string().find("x: a value of f64 is beyond the range of f32") != std::string::npos);
  }
}

TEST_CASE("ports of integers take and give integers of their width") {
  check_integers<std::uint8_t>(2, DType::kU8);
  check_integers<std::int8_t>(3, DType::kI8);
  check_integers<std::uint16_t>(4, DType::kU16);
  check_integers<std::int16_t>(5, DType::kI16);
  check_integers<std::int32_t>(6, DType::kI32);
  check_integers<std::int64_t>(7, DType::kI64);
  check_integers<std::uint32_t>(12, DType::kU32);
}

TEST_CASE("u64 moves through a model; what is not computed with it is refused by name") {
  const TemporaryFolder folder;
  OnnxBuilder b(14);
  b.input("x", {2, 3}, 13).node("Transpose", {"x"}, {"y"}, {attribute("perm", Ints{1, 0})}).output("y", 13);
  const std::uint64_t most = ~std::uint64_t{0};
  CHECK(run_both<std::uint64_t>(folder, b, DType::kU64, {0, 1, 2, 3, most, 5}) == std::vector<std::uint64_t>{0, 3, 1, most, 2, 5});

  OnnxBuilder sum(14);
  sum.input("x", {2, 3}, 13).node("ReduceSum", {"x"}, {"y"}).output("y", 13);
  write_file(folder.path("sum.onnx"), sum.bytes());
  importer::ConvertReport report;
  const Status refused = importer::convert(folder.path("sum.onnx"), folder.path("sum.sluice"), {}, report);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].op_type == "ReduceSum");
}

TEST_CASE("functions of two u64 have the upper half of their range, of inputs and of constants") {
  using Naturals = std::vector<std::uint64_t>;
  const TemporaryFolder folder;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63, kMost = ~std::uint64_t{0};
  const Naturals x{kHalf, kHalf + 5, 7, kMost, 3, kHalf};
  const std::uint64_t y = kHalf + 1;
  struct Case {
    const char* op;
    std::uint64_t (*function)(std::uint64_t, std::uint64_t);
  };
  constexpr Case kCases[] = {{"Add", [](auto a, auto b) { return a + b; }},
                             {"Sub", [](auto a, auto b) { return a - b; }},
                             {"Mul", [](auto a, auto b) { return a * b; }},
                             {"Div", [](auto a, auto b) { return a / b; }},
                             {"Mod", [](auto a, auto b) { return a % b; }},
                             {"Max", [](auto a, auto b) { return std::max(a, b); }},
                             {"Min", [](auto a, auto b) { return std::min(a, b); }},
                             {"Less", [](auto a, auto b) { return std::uint64_t{a < b}; }},
                             {"LessOrEqual", [](auto a, auto b) { return std::uint64_t{a <= b}; }},
                             {"Greater", [](auto a, auto b) { return std::uint64_t{a > b}; }},
                             {"GreaterOrEqual", [](auto a, auto b) { return std::uint64_t{a >= b}; }},
                             {"Equal", [](auto a, auto b) { return std::uint64_t{a == b}; }}};
  const std::string y_bytes(reinterpret_cast<const char*>(&y), sizeof y);
  const std::string x_bytes(reinterpret_cast<const char*>(x.data()), 8 * x.size());
  for (const auto& [op, function] : kCases)
    for (const bool folded : {false, true}) {
      INFO(op << (folded ? " of constants" : " of an input"));
      Naturals want;
      for (const std::uint64_t value : x) want.push_back(function(value, y));
      OnnxBuilder b(14);
      b.input("x", {2, 3}, 13).initializer(raw_tensor("y", {1}, 13, y_bytes)).initializer(raw_tensor("c", {2, 3}, 13, x_bytes));
      b.node(op, {folded ? "c" : "x", "y"}, {"t"}).node("Cast", {"t"}, {"u"}, {attribute("to", std::int64_t{13})});
      b.node("Sub", {"x", "x"}, {"none"}).node("Add", {"u", "none"}, {"z"}).output("z", 13);  // the output depends on the input
      CHECK(run_both<std::uint64_t>(folder, b, DType::kU64, x) == want);
    }
}

TEST_CASE("an f16 input takes f32 too, and no other type or size") {
  const TemporaryFolder folder;
  const auto session = Session::create(converted(folder, tripled(10, f16_of_float(3.0f)), "typed"), {});
  REQUIRE(session);
  const std::vector<float> x(6, 0.5f);
  CHECK((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
  CHECK_FALSE((*session)->set_input(0, DType::kF16, std::as_bytes(std::span(x))));
  CHECK_FALSE((*session)->set_input(0, DType::kF64, std::as_bytes(std::span(x).first(6))));
  REQUIRE((*session)->run());
  const auto in_place = (*session)->output_in_place(0);
  REQUIRE(in_place);
  CHECK(in_place->dtype == DType::kF32);
  CHECK(reinterpret_cast<const float*>(in_place->data)[0] == 1.5f);
}

TEST_CASE("bf16 weights of a file keep their 16 bits") {
  const TemporaryFolder folder;
  std::string bits;
  for (std::int64_t i = 0; i < 512 * 640; ++i) {
    const std::uint16_t half = bf16_of_float(0.01f * static_cast<float>(i % 37 - 18));
    bits.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  OnnxBuilder b(13);
  b.input("x", {3, 512}).initializer(raw_tensor("w", {512, 640}, 16, bits));
  b.node("Cast", {"w"}, {"wide"}, {attribute("to", std::int64_t{1})}).node("MatMul", {"x", "wide"}, {"y"}).output("y");
  importer::ConvertOptions options;
  const auto own = converted(folder, b, "own");
  options.weights = kernels::PanelStorage::kF32;
  const auto wide = converted(folder, b, "wide", options);
  CHECK(own->graph().weights[0].panel_layout.dtype == DType::kBF16);
  const Values inputs{ramp(3 * 512)};
  CHECK(outputs(own, inputs, {}) == outputs(wide, inputs, {}));
}
