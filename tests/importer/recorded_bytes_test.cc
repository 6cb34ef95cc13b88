// Operators between bytes whose answers another runtime gave (ONNX Runtime 1.30): softmax by a table of exponentials, images resized linearly.
#include <catch2/catch.hpp>
#include <cstring>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/qdq_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Recorded {
  const char* name;
  Linear in, out;
  Ints shape;
  std::vector<int> given, answers;
};

constexpr int type_of(const Linear& q) noexcept { return q.is_signed ? 3 : 2; }

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

/// The answers of DequantizeLinear, `op` and QuantizeLinear, of which one node of the class int8 must have become.
void check(const Recorded& r, const std::string& op, const std::vector<std::string>& more, const std::vector<std::string>& attributes,
           QdqBuilder b, bool signed_ports) {
  INFO(r.name);
  b.input("x", r.shape, type_of(r.in));
  b.constants("out", r.out);
  std::vector<std::string> inputs{b.dequantised("x", r.in)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  b.node(op, inputs, {"r"}, attributes).node("QuantizeLinear", {"r", "out_scale", "out_zero"}, {"y"}).output("y", type_of(r.out));
  const TemporaryFolder folder;
  write_file(folder.path("m.onnx"), b.bytes());
  importer::ConvertReport report;
  REQUIRE(importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), {}, report));
  const auto model = Model::open(folder.path("m.sluice"));
  REQUIRE(model);
  std::size_t computing = 0;
  for (const model::Node& node : (*model)->graph().nodes) {
    CHECK(node.numeric == model::NumericClass::kInt8);
    computing += node.op == model::OpKind::kUnary ? 0 : 1;  // signed bytes are tables away from unsigned ones
  }
  CHECK(computing == 1);
  for (const int threads : {1, 2}) {
    SessionOptions options;
    options.threads = threads;
    const auto session = Session::create(*model, options);
    REQUIRE(session);
    REQUIRE((*session)->set_input(0, signed_ports ? DType::kI8 : DType::kU8, bytes_of(r.given)));
    REQUIRE((*session)->run());
    std::vector<std::byte> out(r.answers.size());
    REQUIRE((*session)->get_output(0, out));
    CHECK(out == bytes_of(r.answers));
  }
}

}  // namespace

TEST_CASE("Softmax between bytes gives the recorded answers") {
  const std::vector<std::string> last{attribute("axis", std::int64_t{1})};
  check({"unsigned",
         {0.1f, 131},
         {1.0f / 256, 0},
         {2, 9},
         {106, 152, 249, 131, 184, 200, 0, 21, 253, 147, 202, 107, 249, 169, 138, 149, 119, 166},
         {0, 0, 102, 0, 0, 1, 0, 0, 153, 0, 2, 0, 254, 0, 0, 0, 0, 0}},
        "Softmax", {}, last, QdqBuilder(), false);
  check({"signed",
         {0.1f, -125, true},
         {1.0f / 256, -128, true},
         {2, 9},
         {-126, 63, -68, 1, 51, -38, -59, -24, -18, -31, 29, -22, 24, 123, -66, -121, 120, 43},
         {-128, 68, -128, -128, -69, -128, -128, -128, -128, -128, -128, -128, -128, 19, -128, -128, -19, -128}},
        "Softmax", {}, last, QdqBuilder(), true);
}

TEST_CASE("images of bytes resized linearly give the recorded answers") {
  const std::vector<std::string> linear{attribute("mode", "linear")};
  const auto scales = [] {
    QdqBuilder b;
    b.initializer(tensor("scales", {4}, Floats{1, 1, 2, 1.7f}));
    return b;
  };
  check({"unsigned",
         {0.07f, 5},
         {0.07f, 5},
         {1, 1, 3, 4},
         {224, 148, 172, 93, 167, 142, 248, 26, 81, 218, 150, 66},
         {224, 195, 150, 161, 160, 114, 210, 186, 148, 171, 174, 107, 181, 167, 145, 191, 202, 92,
          145, 151, 161, 196, 196, 86,  103, 139, 196, 185, 157, 87,  81,  133, 214, 180, 138, 88}},
        "Resize", {"", "scales"}, linear, scales(), false);
  check({"signed",
         {0.07f, -123, true},
         {0.07f, -123, true},
         {1, 1, 3, 4},
         {-95, -5, -49, 48, -91, -108, -34, -79, 21, -1, 78, 116},
         {-95, -61, -8,  -30, -35, 22,  -94, -70, -33, -39, -36, 0,  -92, -88, -83, -57, -39, -45,
          -63, -70, -81, -39, -10, -24, -7,  -15, -27, 16,  53,  63, 21,  13,  0,   43,  84,  106}},
        "Resize", {"", "scales"}, linear, scales(), true);
}
