// Malformed ONNX files: each is an error with words, none a crash, a hang or a large allocation (the suite runs under the sanitizers too).
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>

#include "sluice/importer/importer.h"
#include "src/importer/mapped_file.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;

namespace {

struct ReadOutcome {
  bool converted = false;
  ErrorCode code = ErrorCode::kInternal;
  std::vector<Problem> problems;
};

ReadOutcome convert_bytes(const std::string& bytes, const TemporaryFolder& folder) {
  const std::string path = folder.path("bad.onnx");
  write_file(path, bytes);
  ConvertReport report;
  const Status status = convert(path, folder.path("out.sluice"), {}, report);
  return {status.has_value(), status ? ErrorCode::kInternal : status.error().code, report.problems};
}

using Make = std::function<OnnxBuilder()>;
OnnxBuilder one(const std::string& op, const Ints& dims, const std::vector<std::string>& attributes, int opset = 13) {
  return OnnxBuilder(opset).input("x", dims).node(op, {"x"}, {"y"}, attributes).output("y");
}
OnnxBuilder conv(const Ints& w, const std::vector<std::string>& attributes, const Ints& x = {1, 4, 8, 8}) {
  return OnnxBuilder().input("x", x).weight("w", w).node("Conv", {"x", "w"}, {"y"}, attributes).output("y");
}
OnnxBuilder with_initializer(const std::string& bytes) {
  return OnnxBuilder().input("x", {1, 4}).initializer(bytes).node("Add", {"x", "w"}, {"y"}).output("y");
}
OnnxBuilder with_constant(const std::string& op, const std::string& constant, const std::vector<std::string>& attributes = {}) {
  return OnnxBuilder().input("x", {2, 6, 4}).initializer(constant).node(op, {"x", "k"}, {"y"}, attributes).output("y");
}
std::string external(const std::string& location, const std::string& offset = "", const std::string& length = "") {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_int64(1, 4);
  w.add_int32(2, 1);
  w.add_string(8, "w");
  const auto entry = [&](const std::string& key, const std::string& value) {
    std::string pair;
    protozero::pbf_writer p(pair);
    p.add_string(1, key);
    p.add_bytes(2, value);
    w.add_message(13, pair);
  };
  entry("location", location);
  if (!offset.empty()) entry("offset", offset);
  if (!length.empty()) entry("length", length);
  w.add_int32(14, 1);
  return bytes;
}

/// Four values in raw_data, and in float_data.
std::string raw_and_typed() {
  std::string bytes = raw_tensor("w", {1, 4}, 1, std::string(16, '\1'));
  protozero::pbf_writer w(bytes);
  const Floats other = {1, 2, 3, 4};
  w.add_packed_float(4, other.begin(), other.end());
  return bytes;
}
OnnxBuilder lstm_of(std::int64_t hidden_size) {
  OnnxBuilder b;
  b.input("x", {2, 1, 4}).weight("w", {1, 8, 4}).weight("r", {1, 8, 2});
  return b.node("LSTM", {"x", "w", "r"}, {"y"}, {attribute("hidden_size", hidden_size)}).output("y");
}

const std::string kFloat16 = std::string(16, '\1');
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

const std::vector<std::pair<std::string, Make>>& malformed() {
  static const std::vector<std::pair<std::string, Make>> kFiles = {
      {"raw data too short",
       [] {
         return with_initializer(raw_tensor("w", {1, 4}, 1, "abc"));
       }},
      {"raw and typed data", [] { return with_initializer(raw_and_typed()); }},
      {"an LSTM of a hidden size that its weights do not have", [] { return lstm_of(std::int64_t{1} << 62); }},
      {"raw data too long",
       [] {
         return with_initializer(raw_tensor("w", {1, 2}, 1, kFloat16));
       }},
      {"negative extent",
       [] {
         return with_initializer(raw_tensor("w", {-1, 4}, 1, kFloat16));
       }},
      {"extents that overflow",
       [] {
         return with_initializer(raw_tensor("w", {kHuge, 4}, 1, kFloat16));
       }},
      {"bytes that overflow", [] { return with_initializer(raw_tensor("w", {kHuge}, 1, kFloat16)); }},
      {"many axes", [] { return with_initializer(raw_tensor("w", Ints(9, 1), 1, "abcd")); }},
      {"no values at all",
       [] {
         return with_initializer(raw_tensor("w", {100000, 100000}, 1, ""));
       }},
      {"unknown element type", [] { return with_initializer(raw_tensor("w", {4}, 99, kFloat16)); }},
      {"strings for numbers", [] { return with_initializer(raw_tensor("w", {4}, 8, kFloat16)); }},
      {"integers for floats", [] { return with_initializer(raw_tensor("w", {2}, 7, kFloat16)); }},
      {"two initialisers of one name",
       [] { return with_initializer(tensor("w", {1}, Floats{1})).initializer(tensor("w", {1}, Floats{1})); }},
      {"input of nobody",
       [] {
         return OnnxBuilder().input("x", {1}).node("Add", {"x", "nobody"}, {"y"}).output("y");
       }},
      {"output of nobody", [] { return OnnxBuilder().input("x", {1}).node("Relu", {"x"}, {"y"}).output("z"); }},
      {"no output", [] { return OnnxBuilder().input("x", {1}).node("Relu", {"x"}, {"y"}); }},
      {"a value made twice",
       [] { return OnnxBuilder().input("x", {1}).node("Relu", {"x"}, {"y"}).node("Tanh", {"x"}, {"y"}).output("y"); }},
      {"a node that makes an input", [] { return OnnxBuilder().input("x", {1}).node("Relu", {"x"}, {"x"}).output("x"); }},
      {"a cycle",
       [] {
         return OnnxBuilder().input("x", {1}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
       }},
      {"a node that reads itself",
       [] {
         return OnnxBuilder().input("x", {1}).node("Add", {"x", "a"}, {"a"}).output("a");
       }},
      {"two inputs of one name", [] { return OnnxBuilder().input("x", {1}).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y"); }},
      {"an input with a free extent",
       [] {
         return one("Relu", {-1, 4}, {});
       }},
      {"an input that overflows",
       [] {
         return one("Relu", {kHuge, kHuge}, {});
       }},
      {"an input of a type we do not know", [] { return OnnxBuilder().input("x", {1}, 17).node("Relu", {"x"}, {"y"}).output("y"); }},
      {"a node without inputs", [] { return OnnxBuilder().input("x", {1}).node("Relu", {}, {"y"}).output("y"); }},
      {"a node with its input left out", [] { return OnnxBuilder().input("x", {1}).node("Relu", {""}, {"y"}).output("y"); }},
      {"group of zero",
       [] {
         return conv({4, 4, 1, 1}, {attribute("group", std::int64_t{0})});
       }},
      {"negative group",
       [] {
         return conv({4, 4, 1, 1}, {attribute("group", std::int64_t{-1})});
       }},
      {"group that does not divide",
       [] {
         return conv({4, 4, 1, 1}, {attribute("group", std::int64_t{3})});
       }},
      {"weight of another depth",
       [] {
         return conv({4, 5, 1, 1}, {});
       }},
      {"weight of another rank",
       [] {
         return conv({4, 4, 1}, {});
       }},
      {"stride of zero",
       [] {
         return conv({4, 4, 1, 1}, {attribute("strides", Ints{0, 1})});
       }},
      {"negative stride",
       [] {
         return conv({4, 4, 1, 1}, {attribute("strides", Ints{-1, 1})});
       }},
      {"dilation of zero",
       [] {
         return conv({4, 4, 1, 1}, {attribute("dilations", Ints{0, 1})});
       }},
      {"one stride for two axes",
       [] {
         return conv({4, 4, 1, 1}, {attribute("strides", Ints{1})});
       }},
      {"huge stride",
       [] {
         return conv({4, 4, 3, 3}, {attribute("strides", Ints{kHuge, 1})});
       }},
      {"huge dilation",
       [] {
         return conv({4, 4, 3, 3}, {attribute("dilations", Ints{kHuge, 1})});
       }},
      {"huge padding",
       [] {
         return conv({4, 4, 3, 3}, {attribute("pads", Ints{kHuge, 0, kHuge, 0})});
       }},
      {"negative padding",
       [] {
         return conv({4, 4, 3, 3}, {attribute("pads", Ints{-1, 0, 0, 0})});
       }},
      {"three pads",
       [] {
         return conv({4, 4, 3, 3}, {attribute("pads", Ints{1, 1, 1})});
       }},
      {"kernel larger than the image",
       [] {
         return conv({4, 4, 9, 9}, {});
       }},
      {"kernel_shape that disagrees",
       [] {
         return conv({4, 4, 3, 3}, {attribute("kernel_shape", Ints{2, 2})});
       }},
      {"strides that are a string",
       [] {
         return conv({4, 4, 3, 3}, {attribute("strides", "1")});
       }},
      {"unknown auto_pad",
       [] {
         return conv({4, 4, 3, 3}, {attribute("auto_pad", "MOSTLY")});
       }},
      {"convolution of a matrix",
       [] {
         return conv({4, 4, 1, 1}, {}, {4, 4});
       }},
      {"pool without kernel",
       [] {
         return one("MaxPool", {1, 1, 4, 4}, {});
       }},
      {"pool of zero",
       [] {
         return one("MaxPool", {1, 1, 4, 4}, {attribute("kernel_shape", Ints{0, 0})});
       }},
      {"axis out of range",
       [] {
         return one("Softmax", {1, 4}, {attribute("axis", std::int64_t{5})});
       }},
      {"least possible axis",
       [] {
         return one("Flatten", {1, 4}, {attribute("axis", INT64_MIN)});
       }},
      {"perm with a double",
       [] {
         return one("Transpose", {1, 4}, {attribute("perm", Ints{0, 0})});
       }},
      {"perm out of range",
       [] {
         return one("Transpose", {1, 4}, {attribute("perm", Ints{0, 7})});
       }},
      {"perm too short",
       [] {
         return one("Transpose", {1, 4}, {attribute("perm", Ints{0})});
       }},
      {"block size of zero",
       [] {
         return one("DepthToSpace", {1, 4, 2, 2}, {attribute("blocksize", std::int64_t{0})});
       }},
      {"huge block size",
       [] {
         return one("DepthToSpace", {1, 4, 2, 2}, {attribute("blocksize", kHuge)});
       }},
      {"size of zero",
       [] {
         return one("LRN", {1, 4, 2, 2}, {attribute("size", std::int64_t{0})});
       }},
      {"reshape to another count", [] { return with_constant("Reshape", tensor("k", {1}, Ints{7})); }},
      {"reshape with two -1",
       [] {
         return with_constant("Reshape", tensor("k", {2}, Ints{-1, -1}));
       }},
      {"reshape that overflows",
       [] {
         return with_constant("Reshape", tensor("k", {3}, Ints{kHuge, kHuge, -1}));
       }},
      {"reshape below -1", [] { return with_constant("Reshape", tensor("k", {1}, Ints{-48})); }},
      {"reshape by an axis that is not there",
       [] {
         return with_constant("Reshape", tensor("k", {4}, Ints{0, 0, 0, 0}));
       }},
      {"squeeze of more than one", [] { return with_constant("Squeeze", tensor("k", {1}, Ints{1})); }},
      {"unsqueeze twice",
       [] {
         return with_constant("Unsqueeze", tensor("k", {2}, Ints{0, 0}));
       }},
      {"unsqueeze to nine axes",
       [] {
         return with_constant("Unsqueeze", tensor("k", {6}, Ints{0, 1, 2, 3, 4, 5}));
       }},
      {"split that does not add up", [] { return with_constant("Split", tensor("k", {1}, Ints{1})); }},
      {"split by a negative", [] { return with_constant("Split", tensor("k", {1}, Ints{-2})); }},
      {"gather beyond the end", [] { return with_constant("Gather", tensor("k", {}, Ints{2})); }},
      {"gather before the beginning", [] { return with_constant("Gather", tensor("k", {}, Ints{INT64_MIN})); }},
      {"pad by too much",
       [] {
         return with_constant("Pad", tensor("k", {6}, Ints{kHuge, 0, 0, kHuge, 0, 0}));
       }},
      {"pad away more than there is",
       [] {
         return with_constant("Pad", tensor("k", {6}, Ints{-9, 0, 0, 0, 0, 0}));
       }},
      {"reflect further than the tensor",
       [] {
         return with_constant("Pad", tensor("k", {6}, Ints{0, 0, 9, 0, 0, 0}), {attribute("mode", "reflect")});
       }},
      {"matrices that do not fit",
       [] {
         return with_constant("MatMul", tensor("k", {3, 2}, Floats(6)));
       }},
      {"shapes that do not broadcast", [] { return with_constant("Add", tensor("k", {5}, Floats(5))); }},
      {"an empty operand", [] { return with_constant("Mul", tensor("k", {0}, Floats{})); }},
      {"a huge expansion",
       [] {
         return with_constant("Expand", tensor("k", {3}, Ints{kHuge, 6, 4}));
       }},
      {"Range without end",
       [] {
         return OnnxBuilder()
             .input("x", {1})
             .initializer(tensor("a", {}, Floats{0}))
             .initializer(tensor("b", {}, Floats{1}))
             .initializer(tensor("d", {}, Floats{0}))
             .node("Range", {"a", "b", "d"}, {"r"})
             .node("Add", {"x", "r"}, {"y"})
             .output("y");
       }},
      {"Range too long",
       [] {
         return OnnxBuilder()
             .input("x", {1})
             .initializer(tensor("a", {}, Ints{0}))
             .initializer(tensor("b", {}, Ints{INT64_MAX}))
             .initializer(tensor("d", {}, Ints{1}))
             .node("Range", {"a", "b", "d"}, {"r"})
             .node("Cast", {"r"}, {"f"}, {attribute("to", std::int64_t{1})})
             .node("Add", {"x", "f"}, {"y"})
             .output("y");
       }},
      {"Tile bomb",
       [] {
         return OnnxBuilder()
             .input("x", {1})
             .initializer(tensor("a", {1}, Floats{0}))
             .initializer(tensor("b", {1}, Ints{std::int64_t{1} << 40}))
             .node("Tile", {"a", "b"}, {"r"})
             .node("Add", {"x", "r"}, {"y"})
             .output("y");
       }},
      {"arithmetic on a declared terabyte",
       [] {
         return OnnxBuilder()
             .input("x", {1})
             .initializer(tensor("s", {1}, Ints{std::int64_t{1} << 40}))
             .node("ConstantOfShape", {"s"}, {"a"})
             .node("Equal", {"a", "a"}, {"e"})
             .node("Cast", {"e"}, {"f"}, {attribute("to", std::int64_t{1})})
             .node("Add", {"x", "f"}, {"y"})
             .output("y");
       }},
      {"a weight of a declared terabyte",
       [] {
         return OnnxBuilder()
             .input("x", {1, 1 << 20})
             .initializer(tensor("s", {2}, Ints{1 << 20, 1 << 20}))
             .node("ConstantOfShape", {"s"}, {"w"})
             .node("MatMul", {"x", "w"}, {"y"})
             .output("y");
       }},
      {"dense layer of another width",
       [] {
         return OnnxBuilder().input("x", {1, 3}).weight("w", {4, 2}).node("MatMul", {"x", "w"}, {"y"}).output("y");
       }},
      {"Gemm of cubes",
       [] {
         return OnnxBuilder().input("x", {1, 3, 3}).weight("w", {3, 2}).node("Gemm", {"x", "w"}, {"y"}).output("y");
       }},
      {"negative scale",
       [] {
         return OnnxBuilder(9)
             .input("x", {1, 1, 2, 2})
             .initializer(tensor("k", {4}, Floats{1, 1, -2, 1}))
             .node("Upsample", {"x", "k"}, {"y"})
             .output("y");
       }},
      {"infinite scale",
       [] {
         return OnnxBuilder(9)
             .input("x", {1, 1, 2, 2})
             .initializer(tensor("k", {4}, Floats{1, 1, INFINITY, 1}))
             .node("Upsample", {"x", "k"}, {"y"})
             .output("y");
       }},
      {"too few scales",
       [] {
         return OnnxBuilder(9)
             .input("x", {1, 1, 2, 2})
             .initializer(tensor("k", {1}, Floats{2}))
             .node("Upsample", {"x", "k"}, {"y"})
             .output("y");
       }},
      {"a subgraph",
       [] {
         std::string body;
         protozero::pbf_writer w(body);
         w.add_string(1, "then_branch");
         w.add_message(6, OnnxBuilder().bytes());
         return OnnxBuilder().input("x", {1}).node("If", {"x"}, {"y"}, {body}).output("y");
       }},
  };
  return kFiles;
}

}  // namespace

TEST_CASE("each malformed file is refused with words, and leaves nothing behind") {
  const TemporaryFolder folder;
  for (const auto& [name, make] : malformed()) {
    INFO(name);
    const ReadOutcome outcome = convert_bytes(make().bytes(), folder);
    CHECK_FALSE(outcome.converted);
    CHECK((outcome.code == ErrorCode::kInvalidModel || outcome.code == ErrorCode::kUnsupported ||
           outcome.code == ErrorCode::kInvalidArgument));
    REQUIRE_FALSE(outcome.problems.empty());
    CHECK_FALSE(outcome.problems[0].message.empty());
    CHECK(::access(folder.path("out.sluice").c_str(), F_OK) != 0);
  }
}

TEST_CASE("a file that names only another domain's operator set is refused for that, not as broken") {
  const TemporaryFolder folder;
  const auto file = [](const std::string& domain) {
    return OnnxBuilder(1).domain(domain).input("x", {1, 4}).node("Relu", {"x"}, {"y"}).output("y").bytes();
  };
  CHECK(convert_bytes(file("ai.onnx"), folder).converted);
  const ReadOutcome outcome = convert_bytes(file("com.example"), folder);
  CHECK_FALSE(outcome.converted);
  CHECK(outcome.code == ErrorCode::kUnsupported);
  REQUIRE_FALSE(outcome.problems.empty());
  CHECK(outcome.problems[0].message.find("'com.example' and none of ONNX's own") != std::string::npos);
}

TEST_CASE("a file cut anywhere is refused or still says something sound") {
  const TemporaryFolder folder;
  const std::string whole = conv({4, 4, 3, 3}, {attribute("pads", Ints{1, 1, 1, 1})}).bytes();
  REQUIRE(convert_bytes(whole, folder).converted);
  for (std::size_t size = 0; size + 1 < whole.size(); size += 3) {
    const ReadOutcome outcome = convert_bytes(whole.substr(0, size), folder);
    INFO(size);
    // Only the operator sets stand behind the graph.
    CHECK_FALSE(outcome.converted);
  }
}

TEST_CASE("flipped bits never do harm") {
  const TemporaryFolder folder;
  const std::string whole = conv({2, 4, 1, 1}, {attribute("pads", Ints{1, 1, 1, 1})}, {1, 4, 3, 3}).bytes();
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += 5) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const ReadOutcome outcome = convert_bytes(flipped, folder);
    if (!outcome.converted) CHECK(outcome.code != ErrorCode::kInternal);
  }
}

TEST_CASE("a million nodes are refused before they are many") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  std::string graph;
  protozero::pbf_writer w(graph);
  for (int i = 0; i < 1000000; ++i) w.add_message(1, std::string());
  std::string bytes;
  protozero::pbf_writer model(bytes);
  model.add_message(7, graph);
  const ReadOutcome outcome = convert_bytes(bytes, folder);
  CHECK_FALSE(outcome.converted);
  CHECK(outcome.problems[0].message.find("nodes") != std::string::npos);
}

TEST_CASE("files that are none") {
  const TemporaryFolder folder;
  CHECK_FALSE(convert_bytes("", folder).converted);
  CHECK_FALSE(convert_bytes(std::string(1000, '\xff'), folder).converted);
  CHECK_FALSE(convert_bytes("this is a text file about nets\n", folder).converted);
  ConvertReport report;
  CHECK(convert(folder.path("absent.onnx"), folder.path("o"), {}, report).error().code == ErrorCode::kIo);
  CHECK(report.problems.size() == 1);
  CHECK_FALSE(convert(folder.path(""), folder.path("o"), {}, report));
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK_FALSE(convert(folder.path("pipe"), folder.path("o"), {}, report));
}

TEST_CASE("typed values: packed floats in place, halves in int32_data, unpacked reals, counts checked") {
  const TemporaryFolder folder;
  const auto typed = [](const std::function<void(protozero::pbf_writer&)>& values, int type) {
    std::string bytes;
    protozero::pbf_writer w(bytes);
    w.add_int64(1, 4);
    w.add_int32(2, type);
    w.add_string(8, "w");
    values(w);
    return with_initializer(bytes).bytes();
  };
  const Floats floats{1, 2, 3, 4};
  const std::vector<std::int32_t> halves{0x3c00, 0x4000, 0x4200, 0x4400}, few{1, 2};
  const std::vector<double> doubles{1, 2, 3, 4};
  CHECK(convert_bytes(typed([&](auto& w) { w.add_packed_float(4, floats.begin(), floats.end()); }, 1), folder).converted);
  CHECK(convert_bytes(typed(
                          [&](auto& w) {
                            for (const float f : floats) w.add_float(4, f);
                          },
                          1),
                      folder)
            .converted);
  CHECK(convert_bytes(typed([&](auto& w) { w.add_packed_int32(5, halves.begin(), halves.end()); }, 10), folder).converted);
  CHECK(convert_bytes(typed([&](auto& w) { w.add_packed_double(10, doubles.begin(), doubles.end()); }, 11), folder).converted);
  CHECK_FALSE(convert_bytes(typed([&](auto& w) { w.add_packed_int32(5, few.begin(), few.end()); }, 10), folder).converted);
  CHECK_FALSE(convert_bytes(typed([&](auto& w) { w.add_packed_int32(5, halves.begin(), halves.end()); }, 1), folder).converted);
  CHECK_FALSE(convert_bytes(typed([&](auto& w) { w.add_packed_double(10, doubles.begin(), doubles.end()); }, 1), folder).converted);
  CHECK_FALSE(convert_bytes(typed([&](auto&) {}, 1), folder).converted);
}

TEST_CASE("external data: inside the model's folder, regular, in range; nothing else") {
  const TemporaryFolder folder;
  REQUIRE(::mkdir(folder.path("sub").c_str(), 0700) == 0);
  write_file(folder.path("data.bin"), std::string(32, '\0'));
  write_file(folder.path("sub/data.bin"), std::string(32, '\0'));
  REQUIRE(::symlink("data.bin", folder.path("link.bin").c_str()) == 0);
  REQUIRE(::symlink("sub", folder.path("linked").c_str()) == 0);
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  const auto converts = [&](const std::string& tensor_bytes) {
    return convert_bytes(with_initializer(tensor_bytes).bytes(), folder).converted;
  };
  CHECK(converts(external("data.bin")));
  CHECK(converts(external("./sub/data.bin", "16", "16")));
  CHECK(converts(external("data.bin", "13")));
  const std::string absolute = folder.path("data.bin");
  for (const std::string& location :
       {std::string("../data.bin"), std::string("sub/../data.bin"), absolute, std::string("link.bin"), std::string("linked/data.bin"),
        std::string("pipe"), std::string("sub"), std::string("."), std::string(""), std::string("absent.bin"), std::string("/dev/zero"),
        std::string("data.bin\0x", 10), std::string("sub/"), std::string("data.bin/x"), std::string("..")}) {
    INFO(location);
    CHECK_FALSE(converts(external(location)));
  }
  for (const auto& [offset, length] : std::vector<std::pair<std::string, std::string>>{{"17", ""},
                                                                                       {"32", "16"},
                                                                                       {"0", "32"},
                                                                                       {"0", "8"},
                                                                                       {"18446744073709551615", "16"},
                                                                                       {"-1", "16"},
                                                                                       {"x", "16"},
                                                                                       {"99999999999999999999", "16"},
                                                                                       {" 1", ""}}) {
    INFO(offset + " " + length);
    CHECK_FALSE(converts(external("data.bin", offset, length)));
  }
}
