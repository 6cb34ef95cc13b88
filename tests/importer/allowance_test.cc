#include "src/importer/allowance.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>

#include "sluice/importer/importer.h"
#include "src/importer/refusal.h"
#include "tests/cli/temporary.h"
#include "tests/importer/data_bytes.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;

namespace {

/// What a child found when it converted a file with little memory left.
struct LimitedOutcome {
  int code = 0;            // 0: converted; else 1 + its ErrorCode
  std::int64_t bytes = 0;  // of the model file
  bool names_option = false;
};

/// Converts in a child whose data may grow by `room` and no more.
LimitedOutcome convert_within(const std::string& onnx, std::uint64_t room, std::optional<Bytes> max_constants = {}) {
  const TemporaryFolder folder;
  const std::string from = folder.path("m.onnx"), to = folder.path("m.sluice");
  write_file(from, onnx);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
#ifndef SLUICE_FOREIGN_MEMORY
    const rlimit limit{data_bytes() + room, data_bytes() + room};
    ::setrlimit(RLIMIT_DATA, &limit);
#else
    static_cast<void>(room);
#endif
    ConvertOptions options;
    options.max_constants = max_constants;
    ConvertReport report;
    LimitedOutcome outcome;
    if (const Status converted = convert(from, to, options, report); !converted)
      outcome.code = 1 + static_cast<int>(converted.error().code);
    for (const Problem& problem : report.problems)
      outcome.names_option = outcome.names_option || problem.message.find("--max-constants") != std::string::npos;
    struct stat made {};
    if (::stat(to.c_str(), &made) == 0) outcome.bytes = made.st_size;
    ::_exit(::write(ends[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
  }
  LimitedOutcome outcome;
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  INFO("status " << status);
  REQUIRE(status == 0);
  REQUIRE(::read(ends[0], &outcome, sizeof outcome) == sizeof outcome);
  ::close(ends[0]), ::close(ends[1]);
  return outcome;
}

std::string shape_of(const std::string& name, const Ints& dims) { return tensor(name, {static_cast<std::int64_t>(dims.size())}, dims); }
std::string word(const std::string& name, std::int64_t value) { return tensor(name, {}, Ints{value}); }

/// "fill" of these dims, all 0.5.
OnnxBuilder& fill(OnnxBuilder& b, const std::string& name, const Ints& dims) {
  return b.initializer(shape_of(name + "_dims", dims))
      .node("ConstantOfShape", {name + "_dims"}, {name}, {tensor_attribute("value", tensor("", {1}, Floats{0.5f}))});
}

struct Bomb {
  const char* name;
  std::function<void(OnnxBuilder&)> make;  // x [1, 4] is an input, y is the output
};

OnnxBuilder body_of_loop(int adds) {
  OnnxBuilder body;
  body.input("i", {}, 7).input("go", {}, 9).input("v", {1, 4});
  std::string last = "v";
  for (int a = 0; a < adds; ++a) {
    const std::string next = "a" + std::to_string(a);
    body.node("Add", {last, "v"}, {next});
    last = next;
  }
  return body.output("go").output(last);
}

const Bomb kBombs[] = {
    {"a fill as output", [](OnnxBuilder& b) { fill(b, "y", {300'000'000}); }},
    {"a fill that is added to",
     [](OnnxBuilder& b) {
       fill(b, "f", {1 << 14, 1 << 14}).node("Slice", {"x", "zero", "one", "one"}, {"s"}).node("Add", {"f", "s"}, {"y"});
     }},
    {"a fill that convolves",
     [](OnnxBuilder& b) {
       fill(b, "f", {1 << 12, 4, 64, 64})
           .initializer(shape_of("r", {1, 4, 1, 1}))
           .node("Reshape", {"x", "r"}, {"i"})
           .node("Conv", {"i", "f"}, {"y"}, {attribute("pads", Ints{63, 63, 63, 63})});
     }},
    {"one output of a long fill",
     [](OnnxBuilder& b) {
       fill(b, "f", {1, 1 << 26, 1, 1})
           .node("Expand", {"x", "wide"}, {"w"})
           .node("Conv", {"w", "f"}, {"y"})
           .initializer(shape_of("wide", {1, 1 << 26, 1, 4}));
     }},
    {"a fill that multiplies",
     [](OnnxBuilder& b) {
       fill(b, "f", {4, 1 << 28}).node("MatMul", {"x", "f"}, {"y"});
     }},
    {"outputs that are scaled",
     [](OnnxBuilder& b) {
       fill(b, "f", {4, 1 << 20}).node("Gemm", {"x", "f"}, {"y"}, {attribute("alpha", 0.5f)});
     }},
    {"a fill of biases",
     [](OnnxBuilder& b) {
       for (int i = 0; i < 3; ++i) {
         const std::string n = std::to_string(i);
         fill(b, "w" + n, {4, 1 << 20});
         fill(b, "c" + n, {1 << 20}).node("Gemm", {"x", "w" + n, "c" + n}, {i == 0 ? "y" : "y" + n});
       }
     }},
    {"a fill that recurs",
     [](OnnxBuilder& b) {
       fill(b, "w", {1, 1 << 22, 4});
       fill(b, "r", {1, 1 << 22, 1 << 20})
           .initializer(shape_of("s", {1, 1, 4}))
           .node("Reshape", {"x", "s"}, {"t"})
           .node("LSTM", {"t", "w", "r"}, {"y"}, {attribute("hidden_size", std::int64_t{1} << 20)});
     }},
    {"normalised by fills",
     [](OnnxBuilder& b) {
       fill(b, "s", {1 << 20}).initializer(shape_of("wide", {1, 1 << 20, 4})).node("Expand", {"x", "wide"}, {"w"});
       for (int i = 0; i < 5; ++i) b.node("BatchNormalization", {"w", "s", "s", "s", "s"}, {i == 0 ? "y" : "y" + std::to_string(i)});
     }},
    {"an expanded pair",
     [](OnnxBuilder& b) {
       b.weight("p", {2}).initializer(shape_of("d", {1 << 28, 2})).node("Expand", {"p", "d"}, {"y"});
     }},
    {"a tiled pair",
     [](OnnxBuilder& b) {
       b.weight("p", {2}).initializer(shape_of("d", {1 << 19})).node("Tile", {"p", "d"}, {"y"});
     }},
    {"many tiles of nothing",
     [](OnnxBuilder& b) {
       b.initializer(raw_tensor("p", {0, 2}, 1, "")).initializer(shape_of("d", {1, 1 << 20}));
       for (int i = 0; i < 5; ++i) b.node("Tile", {"p", "d"}, {"y" + std::to_string(i)});
       b.node("Relu", {"x"}, {"y"});
     }},
    {"ranges",
     [](OnnxBuilder& b) {
       b.initializer(word("n", 1 << 20));
       for (int i = 0; i < 5; ++i) b.node("Range", {"zero0", "n", "one0"}, {i == 0 ? "y" : "y" + std::to_string(i)});
     }},
    {"a long range",
     [](OnnxBuilder& b) {
       b.initializer(word("n", std::int64_t{1} << 40)).node("Range", {"zero0", "n", "one0"}, {"y"});
     }},
    {"padded",
     [](OnnxBuilder& b) {
       b.weight("p", {2}).initializer(shape_of("d", {0, 1 << 28})).node("Pad", {"p", "d"}, {"y"});
     }},
    {"resized",
     [](OnnxBuilder& b) {
       b.weight("p", {1, 1, 2, 2}).initializer(shape_of("d", {1, 1, 1 << 14, 1 << 14})).node("Resize", {"p", "", "", "d"}, {"y"});
     }},
    {"one-hot",
     [](OnnxBuilder& b) {
       b.initializer(tensor("p", {2}, Ints{1, 2}))
           .initializer(word("d", 1 << 28))
           .initializer(tensor("v", {2}, Floats{0, 1}))
           .node("OneHot", {"p", "d", "v"}, {"y"});
     }},
    {"an eye",
     [](OnnxBuilder& b) {
       fill(b, "f", {1 << 14, 1 << 14}).node("EyeLike", {"f"}, {"y"});
     }},
    {"doubled by Concat",
     [](OnnxBuilder& b) {
       b.weight("p0", {16});
       for (int i = 0; i < 16; ++i) {
         const std::string p = "p" + std::to_string(i);
         b.node("Concat", {p, p}, {i == 15 ? "y" : "p" + std::to_string(i + 1)}, {attribute("axis", std::int64_t{0})});
       }
     }},
    {"joined eight times, seven times over",
     [](OnnxBuilder& b) {
       b.weight("p0", {4});
       for (int i = 0; i < 7; ++i) {
         const std::string p = "p" + std::to_string(i);
         b.node("Concat", std::vector<std::string>(8, p), {i == 6 ? "y" : "p" + std::to_string(i + 1)},
                {attribute("axis", std::int64_t{0})});
       }
     }},
    {"arithmetic",
     [](OnnxBuilder& b) {
       b.initializer(tensor("p", {2}, Ints{1, 2})).initializer(shape_of("d", {1 << 19, 2})).node("Expand", {"p", "d"}, {"e"});
       for (int i = 0; i < 5; ++i) b.node("Mod", {"e", "e"}, {i == 0 ? "y" : "y" + std::to_string(i)});
     }},
    {"casts",
     [](OnnxBuilder& b) {
       b.weight("p", {2}).initializer(shape_of("d", {1 << 19, 2})).node("Expand", {"p", "d"}, {"e"});
       for (int i = 0; i < 5; ++i) b.node("Cast", {"e"}, {i == 0 ? "y" : "y" + std::to_string(i)}, {attribute("to", std::int64_t{7})});
     }},
    {"reductions",
     [](OnnxBuilder& b) {
       b.weight("p", {2}).initializer(shape_of("d", {1 << 19, 2})).node("Expand", {"p", "d"}, {"e"});
       for (int i = 0; i < 5; ++i) b.node("ReduceMax", {"e"}, {i == 0 ? "y" : "y" + std::to_string(i)}, {attribute("axes", Ints{1})});
     }},
    {"places of ones",
     [](OnnxBuilder& b) {
       fill(b, "f", {1 << 10, 1 << 10}).node("NonZero", {"f"}, {"y"});
     }},
    {"gathered",
     [](OnnxBuilder& b) {
       b.weight("p", {2})
           .initializer(shape_of("d", {1 << 20}))
           .node("ConstantOfShape", {"d"}, {"i"}, {tensor_attribute("value", tensor("", {1}, Ints{0}))})
           .node("Gather", {"p", "i"}, {"y"});
     }},
    {"sums along an axis",
     [](OnnxBuilder& b) {
       fill(b, "f", {1 << 20});
       for (int i = 0; i < 5; ++i) b.node("CumSum", {"f", "zero0"}, {i == 0 ? "y" : "y" + std::to_string(i)});
     }},
    {"whole numbers made real",
     [](OnnxBuilder& b) {
       b.initializer(shape_of("d", {1 << 28}))
           .initializer(tensor("s", {}, Floats{0.5f}))
           .node("ConstantOfShape", {"d"}, {"i"}, {tensor_attribute("value", raw_tensor("", {1}, 3, "\1"))})
           .node("DequantizeLinear", {"i", "s"}, {"y"});
     }},
    {"weights of few bits",
     [](OnnxBuilder& b) {
       b.initializer(shape_of("d", {1 << 24, 1, 16}))
           .initializer(shape_of("e", {1 << 24}))
           .node("ConstantOfShape", {"d"}, {"q"}, {tensor_attribute("value", raw_tensor("", {1}, 2, "\1"))})
           .node("ConstantOfShape", {"e"}, {"s"})
           .node("MatMulNBits", {"x", "q", "s"}, {"y"},
                 {attribute("K", std::int64_t{4}), attribute("N", std::int64_t{1 << 24}), attribute("block_size", std::int64_t{32})},
                 "com.microsoft");
     }},
    {"a loop that is unrolled",
     [](OnnxBuilder& b) {
       fill(b, "f", {1, 4}).initializer(word("n", 1000)).node("Loop", {"n", "", "f"}, {"y"}, {attribute("body", body_of_loop(12))});
     }},
    {"loops in loops",
     [](OnnxBuilder& b) {
       OnnxBuilder outer;
       outer.input("i", {}, 7).input("go", {}, 9).input("v", {1, 4});
       outer.node("Loop", {"n", "", "v"}, {"w"}, {attribute("body", body_of_loop(3))}).output("go").output("w");
       b.initializer(word("n", 1000)).node("Loop", {"n", "", "x"}, {"y"}, {attribute("body", outer)});
     }},
    {"a loop of nothing",
     [](OnnxBuilder& b) {
       b.initializer(word("n", 1 << 14)).node("Loop", {"n", "", "zero"}, {"y"}, {attribute("body", body_of_loop(0))});
     }},
    {"loops of nothing in loops",
     [](OnnxBuilder& b) {
       OnnxBuilder outer;
       outer.input("i", {}, 7).input("go", {}, 9).input("v", {1, 4});
       outer.node("Loop", {"n", "", "v"}, {"w"}, {attribute("body", body_of_loop(0))}).output("go").output("w");
       b.initializer(word("n", 1 << 14)).node("Loop", {"n", "", "zero"}, {"y"}, {attribute("body", outer)});
     }},
    {"a loop of numbers that nobody reads",
     [](OnnxBuilder& b) {
       OnnxBuilder body = body_of_loop(0);
       for (int i = 0; i < 20; ++i) body.initializer(word("k" + std::to_string(i), i));
       b.initializer(word("n", 1 << 14)).node("Loop", {"n", "", "zero"}, {"y"}, {attribute("body", body)});
     }},
    {"a scan of nothing",
     [](OnnxBuilder& b) {
       OnnxBuilder body;
       body.input("v", {4}).input("r", {4}).output("v").output("r");
       b.initializer(shape_of("d", {1 << 14, 4})).node("Expand", {"x", "d"}, {"long"}).initializer(tensor("h", {4}, Floats{1, 2, 3, 4}));
       b.node("Scan", {"h", "long"}, {"y", "z"}, {attribute("body", body), attribute("num_scan_inputs", std::int64_t{1})});
     }},
    {"rows that a loop stacks",
     [](OnnxBuilder& b) {
       OnnxBuilder body;
       body.input("i", {}, 7).input("go", {}, 9).node("Expand", {"i", "d"}, {"e"}).output("go").output("e");
       b.initializer(word("n", 1000)).initializer(shape_of("d", {1 << 16})).node("Loop", {"n", ""}, {"y"}, {attribute("body", body)});
     }},
};

std::string file_of(const Bomb& bomb) {
  OnnxBuilder b;
  b.input("x", {1, 4}).output("y").initializer(tensor("zero", {1}, Ints{0})).initializer(tensor("one", {1}, Ints{1}));
  b.initializer(word("zero0", 0)).initializer(word("one0", 1));
  bomb.make(b);
  return b.bytes();
}

}  // namespace

TEST_CASE("whatever a file of a KiB asks for, convert takes little memory and writes little") {
  for (const Bomb& bomb : kBombs) {
    const std::string file = file_of(bomb);
    INFO(bomb.name << ", " << file.size() << " bytes");
    CHECK(file.size() <= kSmallFile.count());
    const LimitedOutcome outcome = convert_within(file, 10u << 20);
    INFO("code " << outcome.code << ", " << outcome.bytes << " bytes written, option named: " << outcome.names_option);
    CHECK(outcome.bytes <= 4 << 20);
    const int unsupported = 1 + static_cast<int>(ErrorCode::kUnsupported), malformed = 1 + static_cast<int>(ErrorCode::kInvalidModel);
    CHECK((outcome.code == 0 || outcome.code == unsupported || outcome.code == malformed));
  }
}

TEST_CASE("a refusal says how much, and names the option that allows more") {
  OnnxBuilder b;
  b.input("x", {1, 4}).output("y");
  fill(b, "f", {4, 1 << 20}).node("MatMul", {"x", "f"}, {"y"});
  const LimitedOutcome refused = convert_within(b.bytes(), 10u << 20);
  CHECK(refused.code == 1 + static_cast<int>(ErrorCode::kUnsupported));
  CHECK(refused.names_option);
  const LimitedOutcome allowed = convert_within(b.bytes(), 10u << 20, Bytes(std::uint64_t{20} << 20));
  CHECK(allowed.code == 0);
  CHECK(allowed.bytes > 16 << 20);
}

TEST_CASE("less can be allowed, too") {
  OnnxBuilder b;
  b.input("x", {1, 4}).output("y");
  fill(b, "f", {4, 1 << 10}).node("MatMul", {"x", "f"}, {"y"});
  CHECK(convert_within(b.bytes(), 10u << 20).code == 0);
  CHECK(convert_within(b.bytes(), 10u << 20, Bytes(0)).code == 1 + static_cast<int>(ErrorCode::kUnsupported));
}

TEST_CASE("what is counted is never given back, and limits grow with the file") {
  Allowance small(kSmallFile, {}), larger(Bytes(9311), {});
  CHECK(small.of_file() < Bytes(std::uint64_t{4} << 20));
  CHECK(larger.of_file() > Bytes(575'000'000));
  CHECK(small.covers(kSmallFileAllowance.count()));
  small.take(kSmallFileAllowance.count());
  CHECK_FALSE(small.covers(std::uint64_t{1} << 20));
  CHECK_THROWS_AS(small.take(std::uint64_t{1} << 20), Refusal);
  Allowance stated(kSmallFile, kUnlimitedBytes);
  CHECK(stated.covers(std::uint64_t{1} << 40));
  CHECK(stated.of_file() >= kUnlimitedBytes);
}

TEST_CASE("counting stops with its scope, and sizes that overflow are too many") {
  Allowance allowance(Bytes(0), Bytes(100));
  CHECK(may_make(1, 101));
  {
    const AllowanceScope counted(allowance);
    CHECK_FALSE(may_make(1, 101));
    CHECK_FALSE(may_make(std::uint64_t{1} << 62, 8));
    count_made(60);
    CHECK_THROWS_AS(count_made(10, 8), Refusal);
    CHECK(may_make(40, 1));
  }
  count_made(1000);
  CHECK(may_make(1000, 1));
}
