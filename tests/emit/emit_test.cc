// Emitted code is compiled, without a warning, and run: its outputs are the engine's, bit by bit, whatever RAM it was given.
#include "sluice/emit/emit.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <limits>

#include "sluice/emit/measure.h"
#include "tests/emit/compiled_emission.h"
#include "tests/importer/qdq_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

std::shared_ptr<const Model> converted(const TemporaryFolder& folder, const OnnxBuilder& onnx, importer::ConvertOptions options = {}) {
  importer::ConvertReport report;
  auto model = convert_exactly(folder, onnx, report, options);
  INFO((report.problems.empty() ? std::string() : report.problems[0].message));
  REQUIRE(model);
  return *std::move(model);
}

/// In the least RAM, in a half more, in as much as one likes, and in the least that multiply-adds can buy.
void check_emission(const OnnxBuilder& onnx) {
  struct Case {
    std::uint64_t percent;  // of the least RAM; 0: the least
    double overhead;
  };
  const TemporaryFolder folder;
  const auto model = converted(folder, onnx);
  for (const emit::InputForm input : {emit::InputForm::kStreamed, emit::InputForm::kHeld}) {
    if (input == emit::InputForm::kStreamed && model->graph().inputs.size() > 1) continue;
    std::uint64_t ram = 0;
    for (const auto [percent, overhead] : {Case{0, 0}, Case{150, 0}, Case{100'000, 0}, Case{0, 2}}) {
      if (percent == 150 && input == emit::InputForm::kHeld) continue;  // a compiler takes its time
      emit::EmitOptions options{.name = "net", .ram = ram * percent / 100, .max_overhead = overhead, .network = {.input = input}};
      const auto made = emit::emit(model->file(), options);
      INFO((made ? std::string() : made.error().to_string()));
      REQUIRE(made);
      INFO("held " << (input == emit::InputForm::kHeld) << ", RAM " << options.ram << ", arena " << made->arena_bytes);
      const std::uint64_t whole = made->arena_bytes + made->stack_bound_bytes;
      if (ram == 0) ram = whole;
      CHECK((overhead > 0 || made->arena_bytes >= made->lower_bound_bytes));
      CHECK((overhead > 0 || made->macs_factor == 1.0));
      CHECK(made->macs_factor <= 1.0 + overhead);
      CHECK((percent == 0 ? whole <= ram : whole <= options.ram));
      CHECK(failure_of(folder, model, options, *made) == "");
    }
  }
}

std::vector<std::string> window(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1, std::int64_t group = 1,
                                std::int64_t dilation = 1) {
  return {attribute("kernel_shape", Ints{kernel, kernel}), attribute("pads", Ints{pad, pad, pad, pad}),
          attribute("strides", Ints{stride, stride}), attribute("group", group), attribute("dilations", Ints{dilation, dilation})};
}
std::vector<std::string> pool(std::int64_t kernel, std::int64_t pad, std::int64_t stride) {
  return {attribute("kernel_shape", Ints{kernel, kernel}), attribute("pads", Ints{pad, pad, pad, pad}),
          attribute("strides", Ints{stride, stride})};
}

}  // namespace

TEST_CASE("an image network of bytes") {
  QdqBuilder b;
  b.input("x", {1, 3, 21, 19}).output("y");
  b.node("Conv", {b.pair("x", {0.02f, 120}), b.float_weight("w0", {12, 3, 3, 3})}, {"c0"}, window(3, 1, 2)).node("Relu", {"c0"}, {"r0"});
  const std::string stem = b.pair("r0", {0.02f, 0});
  b.node("Conv", {stem, b.float_weight("w1", {12, 1, 3, 3})}, {"c1"}, window(3, 1, 1, 12));
  b.node("Conv", {b.pair("c1", {0.01f, 128}), b.float_weight("w2", {12, 12, 1, 1})}, {"c2"}, window(1, 0));
  b.node("Add", {b.pair("c2", {0.03f, 100}), stem}, {"sum"});
  const std::string sum = b.pair("sum", {0.03f, 90});
  b.node("Conv", {sum, b.float_weight("w3", {20, 12, 1, 1})}, {"c3"}, window(1, 0, 2)).node("Relu", {"c3"}, {"r3"});
  b.node("Conv", {sum, b.float_weight("w4", {12, 1, 5, 5})}, {"c4"}, window(5, 2, 2, 12));
  b.node("Concat", {b.pair("r3", {0.04f, 11}), b.pair("c4", {0.04f, 11})}, {"joined"}, {attribute("axis", std::int64_t{1})});
  b.node("AveragePool", {b.pair("joined", {0.04f, 11})}, {"p"}, pool(3, 1, 2));
  b.node("GlobalAveragePool", {b.pair("p", {0.04f, 3})}, {"g"}).node("Flatten", {b.pair("g", {0.02f, 0})}, {"f"});
  b.weight("bias", {30}, 0.05f);
  b.node("Gemm", {b.pair("f", {0.02f, 0}), b.float_weight("w5", {30, 32}), "bias"}, {"y"}, {attribute("transB", std::int64_t{1})});
  check_emission(b);
}

TEST_CASE("signed and unsigned bytes as a network's ports") {
  constexpr int kUnsigned = 2, kSigned = 3;  // of ONNX
  for (const int type : {kUnsigned, kSigned}) {
    const Linear in{0.02f, type == kSigned ? -8 : 120, type == kSigned}, out{0.03f, type == kSigned ? 5 : 133, type == kSigned};
    QdqBuilder b;
    b.input("x", {1, 3, 9, 10}, type).output("y", type);
    b.node("Conv", {b.dequantised("x", in), b.float_weight("w0", {8, 3, 3, 3})}, {"c"}, window(3, 1, 2));
    b.node("Conv", {b.pair("c", {0.03f, 120}), b.float_weight("w1", {5, 8, 1, 1})}, {"d"}, window(1, 0));
    b.node("Identity", {b.quantised("d", out)}, {"y"});
    check_emission(b);
  }
}

/// What a header defines a macro as.
std::string value_of(const std::string& header, const std::string& macro) {
  const std::size_t at = header.find("#define " + macro + " ");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + 9 + macro.size();
  return header.substr(begin, header.find('\n', begin) - begin);
}

TEST_CASE("a header states scales in decimal, which C++ before 17 reads, and exactly") {
  QdqBuilder b;
  b.input("x", {1, 3, 4, 4}).output("y").node("Conv", {b.pair("x", {0.037f, 120}), b.float_weight("w", {2, 3, 1, 1})}, {"c"}, window(1, 0));
  b.node("Identity", {b.pair("c", {0.02f, 3})}, {"y"});
  const TemporaryFolder folder;
  const auto made = emit::emit(converted(folder, b)->file(), {.name = "net"});
  REQUIRE(made);
  const std::string scale = value_of(made->header, "net_INPUT_SCALE");
  CHECK(scale.find('x') == std::string::npos);
  CHECK(std::strtof(scale.c_str(), nullptr) == 0.037f);
}

TEST_CASE("groups, dilation, tables, products and resizing of bytes") {
  QdqBuilder b;
  b.input("x", {1, 8, 9, 11}).output("y");
  b.node("Conv", {b.pair("x", {0.02f, 120}), b.float_weight("w0", {40, 4, 3, 3})}, {"c0"}, window(3, 2, 1, 2, 2));
  const std::string conv = b.pair("c0", {0.03f, 128});
  b.node("Sigmoid", {conv}, {"s"}).node("Mul", {conv, b.pair("s", {1.0f / 256, 0})}, {"m"});
  b.node("MaxPool", {b.pair("m", {0.03f, 60})}, {"p"}, pool(2, 0, 2));
  b.initializer(tensor("scales", {4}, Floats{1, 1, 2, 3}));
  b.node("Resize", {b.pair("p", {0.03f, 60}), "", "scales"}, {"r"}, {attribute("mode", "nearest")});
  const std::string resized = b.pair("r", {0.03f, 60});
  b.node("Conv", {resized, b.float_weight("w1", {6, 40, 2, 2})}, {"c1"}, window(2, 0, 3));
  b.node("Sub", {b.pair("c1", {0.1f, 128}), b.byte_weight("c", {6, 1, 1}, -1)}, {"d"}).node("Identity", {b.pair("d", {0.1f, 99})}, {"y"});
  check_emission(b);
}

TEST_CASE("borders, and floats that come out of layers of bytes through a function") {
  QdqBuilder b;
  b.input("x", {1, 3, 11, 9}).output("y");
  b.initializer(tensor("around", {8}, Ints{0, 0, 1, 2, 0, 0, 2, 0}));
  b.node("Pad", {"x", "around"}, {"padded"}, {attribute("mode", "reflect")});
  b.node("Conv", {b.pair("padded", {0.02f, 120}), b.float_weight("w0", {7, 3, 3, 3})}, {"c0"}, window(3, 1, 2))
      .node("Sigmoid", {"c0"}, {"s0"});
  const std::string bytes = b.pair("s0", {1.0f / 256, 0});
  b.initializer(tensor("edges", {8}, Ints{0, 0, 0, 1, 0, 0, 1, 1}));
  b.node("Pad", {bytes, "edges"}, {"wide"}).node("MaxPool", {b.pair("wide", {1.0f / 256, 0})}, {"p"}, pool(2, 0, 2));
  b.node("Conv", {b.pair("p", {1.0f / 256, 0}), b.float_weight("w1", {7, 1, 3, 3})}, {"c1"}, window(3, 1, 1, 7))
      .node("Tanh", {"c1"}, {"y"});
  check_emission(b);
}

TEST_CASE("windows of one pixel that end in the padding") {
  const std::vector<std::string> ends = {attribute("kernel_shape", Ints{1, 1}), attribute("pads", Ints{0, 0, 2, 1})};
  QdqBuilder bytes;
  bytes.input("x", {1, 5, 4, 3}).output("y");
  bytes.node("Conv", {bytes.pair("x", {0.02f, 120}), bytes.float_weight("w", {6, 5, 1, 1})}, {"c"}, ends);
  bytes.node("Identity", {bytes.pair("c", {0.02f, 128})}, {"y"});
  check_emission(bytes);
  OnnxBuilder floats(13);
  floats.input("x", {1, 5, 4, 3}).output("y").weight("w", {6, 5, 1, 1}).weight("b", {6}).node("Conv", {"x", "w", "b"}, {"y"}, ends);
  check_emission(floats);
}

TEST_CASE("constants that are no finite numbers") {
  OnnxBuilder b(13);
  const float never = -std::numeric_limits<float>::infinity();
  b.input("x", {1, 3, 3}).output("y").initializer(tensor("mask", {3, 3}, Floats{0, never, never, 0, 0, never, 0, 0, 0}));
  b.node("Add", {"x", "mask"}, {"masked"}).node("Softmax", {"masked"}, {"y"}, {attribute("axis", std::int64_t{-1})});
  check_emission(b);
}

TEST_CASE("an image network of floats") {
  OnnxBuilder b(13);
  b.input("x", {1, 3, 17, 23}).output("y");
  b.weight("w0", {10, 3, 3, 3}).weight("b0", {10}).node("Conv", {"x", "w0", "b0"}, {"c0"}, window(3, 1, 2)).node("Relu", {"c0"}, {"r0"});
  b.weight("w1", {10, 1, 3, 3}).node("Conv", {"r0", "w1"}, {"c1"}, window(3, 1, 1, 10));
  b.initializer(tensor("low", {}, Floats{0})).initializer(tensor("high", {}, Floats{6})).node("Clip", {"c1", "low", "high"}, {"r1"});
  b.weight("w2", {10, 10, 1, 1}).node("Conv", {"r1", "w2"}, {"c2"}, window(1, 0)).node("Add", {"c2", "r0"}, {"sum"});
  b.node("MaxPool", {"sum"}, {"p0"}, pool(3, 1, 2)).node("HardSwish", {"p0"}, {"h"});
  b.weight("w3", {14, 5, 3, 3}).node("Conv", {"h", "w3"}, {"c3"}, window(3, 1, 1, 2)).node("Sigmoid", {"c3"}, {"s3"});
  b.node("Mul", {"c3", "s3"}, {"m"}).node("AveragePool", {"m"}, {"p1"}, pool(2, 1, 1)).node("GlobalAveragePool", {"p1"}, {"g"});
  b.node("Flatten", {"g"}, {"f"}).weight("w4", {14, 9}).node("MatMul", {"f", "w4"}, {"l"}).node("Softmax", {"l"}, {"y"});
  check_emission(b);
}

TEST_CASE("norms, products and moved values of floats") {
  OnnxBuilder b(17);
  b.input("x", {1, 12, 8}).output("y");
  b.weight("gain", {8}, 0.11f).weight("shift", {8}, 0.02f);
  b.node("LayerNormalization", {"x", "gain", "shift"}, {"n"}, {attribute("axis", std::int64_t{-1})});
  b.weight("w0", {8, 10}).node("MatMul", {"n", "w0"}, {"q"}).node("Tanh", {"q"}, {"t"}).node("Exp", {"q"}, {"e"});
  b.node("Transpose", {"t"}, {"turned"}, {attribute("perm", Ints{0, 2, 1})});
  b.node("MatMul", {"e", "turned"}, {"scores"}).node("Softmax", {"scores"}, {"shares"});
  b.node("Abs", {"shares"}, {"weights"}).node("MatMul", {"weights", "n"}, {"mixed"});
  b.node("Add", {"mixed", "x"}, {"r"});
  b.initializer(tensor("from", {2}, Ints{2, 1})).initializer(tensor("to", {2}, Ints{11, 8})).initializer(tensor("axes", {2}, Ints{1, 2}));
  b.initializer(tensor("by", {2}, Ints{3, 2})).node("Slice", {"r", "from", "to", "axes", "by"}, {"part"});
  b.weight("c", {3, 1}, 0.3f).node("Mul", {"part", "c"}, {"y"});
  check_emission(b);
}

TEST_CASE("products and transpositions row by row read rows that no ring splits") {
  OnnxBuilder b(17);
  b.input("x", {1, 5, 6, 8}).output("y").output("z");
  b.node("Abs", {"x"}, {"plus"}).node("Transpose", {"x"}, {"turned"}, {attribute("perm", Ints{0, 1, 3, 2})});
  b.node("MatMul", {"plus", "turned"}, {"square"});
  b.weight("w", {4, 5, 3, 3}).node("Conv", {"square", "w"}, {"y"}, window(3, 1));
  b.node("Transpose", {"x"}, {"moved"}, {attribute("perm", Ints{0, 3, 2, 1})}).weight("v", {3, 8, 3, 3});
  b.node("Conv", {"moved", "v"}, {"z"}, window(3, 1));
  check_emission(b);
  QdqBuilder bytes;
  bytes.input("x", {1, 5, 6, 8}).output("y");
  const std::string x = bytes.pair("x", {0.02f, 120});
  bytes.node("Transpose", {x}, {"t"}, {attribute("perm", Ints{0, 1, 3, 2})});
  bytes.node("MatMul", {x, bytes.pair("t", {0.02f, 120})}, {"square"});
  const std::string square = bytes.pair("square", {0.05f, 100});
  bytes.node("Softmax", {square}, {"shares"}, {attribute("axis", std::int64_t{-1})});
  bytes.node("MatMul", {bytes.pair("shares", {1.0f / 256, 0}), x}, {"y"});
  check_emission(bytes);
}

TEST_CASE("attention of heads") {
  OnnxBuilder b(17);
  b.input("x", {1, 9, 12}).output("y");
  b.initializer(tensor("heads", {4}, Ints{1, 9, 3, 4})).initializer(tensor("joined", {3}, Ints{1, 9, 12}));
  b.initializer(tensor("scale", {}, Floats{0.5f}));
  for (const std::string name : {"q", "k", "v"}) {
    b.weight("w" + name, {12, 12}).node("MatMul", {"x", "w" + name}, {name + "0"}).node("Reshape", {name + "0", "heads"}, {name + "1"});
    b.node("Transpose", {name + "1"}, {name}, {attribute("perm", name == "k" ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3})});
  }
  b.node("MatMul", {"q", "k"}, {"products"}).node("Mul", {"products", "scale"}, {"scores"});
  b.node("Softmax", {"scores"}, {"shares"}, {attribute("axis", std::int64_t{-1})}).node("MatMul", {"shares", "v"}, {"mixed"});
  b.node("Transpose", {"mixed"}, {"turned"}, {attribute("perm", Ints{0, 2, 1, 3})}).node("Reshape", {"turned", "joined"}, {"y"});
  const TemporaryFolder folder;
  const auto made = emit::emit(converted(folder, b)->file(), {.name = "net"});
  REQUIRE(made);
  CHECK(made->source.find("sluice_run_attention, ") != std::string::npos);
  check_emission(b);
}

TEST_CASE("transposed convolutions, interpolation, and tensors one behind the other") {
  OnnxBuilder b(13);
  b.input("x", {1, 6, 5, 4}).output("y").weight("w0", {6, 9, 3, 3}).weight("b0", {9});
  b.node("ConvTranspose", {"x", "w0", "b0"}, {"t0"},
         {attribute("kernel_shape", Ints{3, 3}), attribute("pads", Ints{1, 0, 0, 1}), attribute("strides", Ints{2, 2}),
          attribute("output_padding", Ints{1, 1})});
  b.node("Relu", {"t0"}, {"r0"}).weight("w1", {9, 4, 2, 3});
  b.node("ConvTranspose", {"r0", "w1"}, {"t1"},
         {attribute("kernel_shape", Ints{2, 3}), attribute("strides", Ints{1, 3}), attribute("dilations", Ints{2, 1}),
          attribute("group", std::int64_t{3})});
  b.weight("w2", {12, 1, 2, 2});
  b.node("ConvTranspose", {"t1", "w2"}, {"t2"},
         {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 1}), attribute("group", std::int64_t{12})});
  b.initializer(tensor("finer", {4}, Floats{1, 1, 2, 2})).initializer(tensor("coarser", {4}, Floats{1, 1, 0.5f, 0.5f}));
  b.node("Resize", {"t2", "", "coarser"}, {"low"}, {attribute("mode", "linear")});
  b.node("Resize", {"low", "", "finer"}, {"wide"},
         {attribute("mode", "cubic"), attribute("coordinate_transformation_mode", "align_corners")});
  b.node("Abs", {"wide"}, {"plus"}).node("Sqrt", {"plus"}, {"root"}).node("Floor", {"wide"}, {"floor"}).node("Ceil", {"wide"}, {"ceil"});
  b.node("Concat", {"wide", "root", "floor"}, {"below"}, {attribute("axis", std::int64_t{2})});
  b.node("Concat", {"ceil", "root", "ceil"}, {"beside"}, {attribute("axis", std::int64_t{3})});
  b.initializer(tensor("line", {3}, Ints{1, 12, -1}));
  b.node("Reshape", {"below", "line"}, {"first"}).node("Reshape", {"beside", "line"}, {"second"});
  b.node("Concat", {"first", "second", "first"}, {"y"}, {attribute("axis", std::int64_t{1})});
  check_emission(b);
}

TEST_CASE("transposed convolutions that sum by taps") {
  OnnxBuilder b(13);
  b.input("x", {1, 40, 13, 12}).output("y").weight("w0", {40, 3, 3, 4}).weight("b0", {3});
  b.node("ConvTranspose", {"x", "w0", "b0"}, {"y"},
         {attribute("kernel_shape", Ints{3, 4}), attribute("pads", Ints{1, 0, 0, 1}), attribute("strides", Ints{2, 1})});
  const TemporaryFolder folder;
  const auto made = emit::emit(converted(folder, b)->file(), {.name = "net"});
  REQUIRE(made);
  CHECK(made->source.find("sluice_run_transposed_f32, ") != std::string::npos);
  check_emission(b);
}

TEST_CASE("two inputs are held") {
  OnnxBuilder b(13);
  b.input("a", {1, 4, 5, 6}).input("b", {1, 4, 5, 6}).output("y").node("Max", {"a", "b"}, {"y"});
  check_emission(b);
  const TemporaryFolder folder;
  const auto made = emit::emit(converted(folder, b)->file(), {.name = "net"});
  REQUIRE(!made);
  CHECK(made.error().to_string().find("--input held") != std::string::npos);
}

TEST_CASE("two inputs that the network quantises, each by its own scale, are held as bytes") {
  QdqBuilder b;
  b.input("a", {1, 3, 9, 8}).input("b", {1, 5, 9, 8}).output("y");
  b.node("Conv", {b.pair("a", {0.02f, 120}), b.float_weight("w0", {6, 3, 3, 3})}, {"c"}, window(3, 1));
  b.node("Conv", {b.pair("b", {0.031f, 90}), b.float_weight("w1", {6, 5, 1, 1})}, {"d"}, window(1, 0));
  b.node("Add", {b.pair("c", {0.03f, 120}), b.pair("d", {0.04f, 100})}, {"sum"});
  b.node("MaxPool", {b.pair("sum", {0.05f, 110})}, {"y"}, pool(2, 0, 2));
  check_emission(b);
  const TemporaryFolder folder;
  const auto made = emit::emit(converted(folder, b)->file(), {.name = "net", .network = {.input = emit::InputForm::kHeld}});
  REQUIRE(made);
  CHECK(std::strtof(value_of(made->header, "net_INPUT_SCALE").c_str(), nullptr) == 0.02f);
  CHECK(std::strtof(value_of(made->header, "net_INPUT1_SCALE").c_str(), nullptr) == 0.031f);
  CHECK(value_of(made->header, "net_INPUT1_ZERO") == "90");
  CHECK(made->network.storages[made->network.inputs[1].storage].bytes() == 5 * 9 * 8);
}

/// That a network cannot be emitted, for a reason that has `words`.
void check_refused(const OnnxBuilder& onnx, const std::string& words) {
  const TemporaryFolder folder;
  const auto made = emit::emit(converted(folder, onnx)->file(), {.name = "net"});
  REQUIRE(!made);
  INFO(made.error().to_string());
  CHECK(made.error().code == ErrorCode::kUnsupported);
  CHECK(made.error().to_string().find(words) != std::string::npos);
}

TEST_CASE("what cannot be emitted is refused by name") {
  OnnxBuilder sums(13);
  sums.input("x", {1, 4, 5, 6}).output("y").node("CumSum", {"x", "axis"}, {"y"}).initializer(tensor("axis", {}, Ints{2}));
  check_refused(sums, "(CumSum)");
  OnnxBuilder joined(13);
  joined.input("x", {1, 4, 5, 6}).output("y").weight("w", {2, 4, 3, 3}).node("Conv", {"x", "w"}, {"c"}, window(3, 1));
  joined.node("Concat", std::vector<std::string>(256, "c"), {"j"}, {attribute("axis", std::int64_t{1})});
  joined.weight("v", {2, 512, 1, 1}).node("Conv", {"j", "v"}, {"y"}, window(1, 0));
  check_refused(joined, "(concat): joins more than 255 tensors");
  OnnxBuilder far(13);
  far.input("x", {1, 1, 3, 3}).output("y");
  far.node("MaxPool", {"x"}, {"y"}, {attribute("kernel_shape", Ints{2, 1}), attribute("strides", Ints{40000, 1})});
  check_refused(far, "y: a window beyond 32,767 pixels");
  constexpr int kByte = 2;  // of ONNX
  OnnxBuilder bytes(13);    // which the caller gives, where a network begins by quantising its input
  bytes.input("x", {1, 3, 4, 4}).output("y", kByte).initializer(tensor("scale", {}, Floats{0.5f}));
  bytes.node("QuantizeLinear", {"x", "scale"}, {"y"});
  check_refused(bytes, "y: the network gives its input as it comes");
}

TEST_CASE("too little RAM names the least that works, which works, and one byte less does not") {
  const TemporaryFolder folder;
  OnnxBuilder b(13);
  b.input("x", {1, 4, 15, 16}).output("y").weight("w", {4, 4, 3, 3}).node("Conv", {"x", "w"}, {"y"}, window(3, 1));
  const auto model = converted(folder, b);
  const auto refused = emit::emit(model->file(), {.name = "net", .ram = 100});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(emit::emit(model->file(), {.name = "net", .ram = refused.error().needed}));
  CHECK(!emit::emit(model->file(), {.name = "net", .ram = refused.error().needed - 1}));
}

TEST_CASE("a measurer has a sample of each kernel that it is asked for, in the arena that it is given") {
  const auto all = emit::make_measurer({});
  REQUIRE(all);
  CHECK(all->arena_bytes <= 16 << 10);
  CHECK(all->samples.size() == all->stages.size());
  CHECK(std::is_sorted(all->samples.begin(), all->samples.end(), [](const auto& a, const auto& b) { return a.kernel < b.kernel; }));
  const auto small = emit::make_measurer({.ram = 2 << 10});
  REQUIRE(small);
  CHECK(small->arena_bytes <= 2 << 10);
  CHECK(small->stage_count < all->stage_count);
  const auto depthwise = emit::make_measurer({.kernels = std::set{emit::Kernel::kDepthwiseU8}});
  REQUIRE(depthwise);
  CHECK(depthwise->text.find("sluice_run_depthwise_u8, &parameters_0") != std::string::npos);
  CHECK(depthwise->text.find("sluice_run_conv_f32") == std::string::npos);
  const auto none = emit::make_measurer({.ram = 10});
  REQUIRE(!none);
  CHECK(none.error().code == ErrorCode::kBudgetTooSmall);
  CHECK(emit::make_measurer({.ram = none.error().needed}));
}

TEST_CASE("the same model gives the same text, and names become C names") {
  const TemporaryFolder folder;
  OnnxBuilder b(13);
  b.input("x", {1, 4, 15, 16}).output("y").weight("w", {4, 4, 3, 3}).node("Conv", {"x", "w"}, {"y"}, window(3, 1));
  const auto model = converted(folder, b);
  const auto first = emit::emit(model->file(), {.name = "net"}), second = emit::emit(model->file(), {.name = "net"});
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->source == second->source);
  CHECK(first->header == second->header);
  // A stage without inputs points at some: sanitizers speak of NULL + 0.
  CHECK(first->source.find("{sluice_read_row, NULL, stage_inputs + 0,") != std::string::npos);
  CHECK(emit::c_name_of("mnist-8") == "mnist_8");
  CHECK(emit::c_name_of("8x*/") == "_8x__");
  CHECK(emit::c_name_of("sluice") == "_sluice");
  // NAME.h must not hide a header that emitted code includes.
  CHECK(emit::c_name_of("float") == "_float");
  CHECK(emit::c_name_of("string") == "_string");
  CHECK(emit::c_name_of("measure") == "_measure");
  CHECK(emit::c_name_of("int") == "int");
}
