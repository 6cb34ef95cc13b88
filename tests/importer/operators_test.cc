// Operators that the suite of ONNX does not reach: control flow in its forms, com.microsoft, inputs whose values decide shapes, values of
// the run time that no kernel can take. Each model is written here, converted and run.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Run {
  importer::ConvertReport report;
  Status status;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Session> session;

  explicit Run(const OnnxBuilder& builder, const importer::ConvertOptions& options = {}) {
    write_file(folder_.path("m.onnx"), builder.bytes());
    status = importer::convert(folder_.path("m.onnx"), folder_.path("m.sluice"), options, report);
    if (!status) return;
    model = *Model::open(folder_.path("m.sluice"));
    auto made = Session::create(model, {});
    REQUIRE(made);
    session = std::move(*made);
  }

  template <class T>
  void set(std::size_t port, const std::vector<T>& values, DType dtype) {
    REQUIRE(session->set_input(port, dtype, std::as_bytes(std::span(values))));
  }
  Floats floats(std::size_t port = 0) {
    Floats values(static_cast<std::size_t>(model->graph().outputs[port].onnx_shape.element_count()));
    REQUIRE(session->get_output(port, std::as_writable_bytes(std::span(values))));
    return values;
  }
  Floats run(const Floats& x) {
    for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(problem.op_type + ": " + problem.message);
    REQUIRE(status);
    set(0, x, DType::kF32);
    REQUIRE(session->run());
    return floats();
  }

 private:
  TemporaryFolder folder_;
};

constexpr int kBool = 9, kI64 = 7;

OnnxBuilder branch(const char* op) {
  OnnxBuilder body;
  body.node(op, {"x"}, {"y"}).output("y");
  return body;
}

}  // namespace

TEST_CASE("If with a condition of the run time runs both branches and chooses") {
  OnnxBuilder b;
  b.input("x", {3})
      .input("c", {}, kBool)
      .node("If", {"c"}, {"z"}, {attribute("then_branch", branch("Neg")), attribute("else_branch", branch("Abs"))})
      .output("z");
  Run r(b);
  REQUIRE(r.status);
  for (const std::uint8_t c : {0, 1}) {
    r.set<std::uint8_t>(1, {c}, DType::kBool);
    CHECK(r.run({1, -2, 3}) == (c != 0 ? Floats{-1, 2, -3} : Floats{1, 2, 3}));
  }
}

TEST_CASE("If with a constant condition is the branch") {
  OnnxBuilder b;
  b.input("x", {3}).node("Size", {"x"}, {"n"}).initializer(tensor("three", {}, Ints{3})).node("Equal", {"n", "three"}, {"c"});
  b.node("If", {"c"}, {"z"}, {attribute("then_branch", branch("Neg")), attribute("else_branch", branch("NonZero"))}).output("z");
  Run r(b);
  CHECK(r.run({1, -2, 3}) == Floats{-1, 2, -3});
  CHECK(r.model->graph().nodes.size() == 1);
}

TEST_CASE("Loop unrolls: carried values, scan outputs, a condition that ends it") {
  OnnxBuilder body;
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {2});
  body.node("Add", {"v", "v"}, {"twice"}).initializer(tensor("two", {}, Ints{2})).node("Less", {"i", "two"}, {"more"});
  body.output("more").output("twice").output("twice");
  OnnxBuilder b;
  b.input("x", {2}).initializer(tensor("count", {}, Ints{10}));
  b.node("Loop", {"count", "", "x"}, {"last", "all"}, {attribute("body", body)}).output("last").output("all");
  Run r(b);
  CHECK(r.run({1, -1}) == Floats{8, -8});
  CHECK(r.floats(1) == Floats{2, -2, 4, -4, 8, -8});
}

TEST_CASE("a body that never ends, or nests without end, is refused") {
  OnnxBuilder body;
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {2}).node("Neg", {"v"}, {"w"}).output("go").output("w");
  OnnxBuilder b;
  b.input("x", {2}).node("Loop", {"", "", "x"}, {"y"}, {attribute("body", body)}).output("y");
  CHECK_FALSE(Run(b).status);
  OnnxBuilder inner = branch("Neg");
  for (int depth = 0; depth < 20; ++depth) {
    OnnxBuilder outer;
    outer.node("If", {"c"}, {"y"}, {attribute("then_branch", inner), attribute("else_branch", inner)}).output("y");
    inner = outer;
    if (inner.graph().size() > 100000) break;
  }
  OnnxBuilder deep;
  deep.input("x", {2})
      .input("c", {}, kBool)
      .node("If", {"c"}, {"z"}, {attribute("then_branch", inner), attribute("else_branch", inner)})
      .output("z");
  CHECK_FALSE(Run(deep).status);
}

TEST_CASE("an index outside its table is an error of the run, and the session goes on") {
  OnnxBuilder b;
  b.input("x", {3}).input("i", {2}, kI64).node("Gather", {"x", "i"}, {"y"}).output("y");
  Run r(b);
  REQUIRE(r.status);
  r.set(0, Floats{1, 2, 3}, DType::kF32);
  r.set(1, Ints{0, 3}, DType::kI64);
  const Status status = r.session->run();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kInvalidArgument);
  r.set(1, Ints{-1, 0}, DType::kI64);
  CHECK(r.run({1, 2, 3}) == Floats{3, 1});
}

TEST_CASE("an input whose values decide a shape is named, and can be bound") {
  OnnxBuilder b;
  b.input("x", {4}).input("shape", {2}, kI64).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  Run refused(b);
  REQUIRE_FALSE(refused.status);
  CHECK(refused.report.value_inputs == std::vector<std::string>{"shape"});
  importer::ConvertOptions options;
  const Ints shape = {2, -1};
  const auto bytes = std::as_bytes(std::span(shape));
  options.values["shape"] = {DType::kI64, Shape{2}, {bytes.begin(), bytes.end()}};
  Run bound(b, options);
  CHECK(bound.run({1, 2, 3, 4}) == Floats{1, 2, 3, 4});
  CHECK(bound.model->graph().outputs[0].onnx_shape == Shape{2, 2});
  options.values["shape"].data.pop_back();
  CHECK_FALSE(Run(b, options).status);
}

TEST_CASE("MatMulNBits: four bits, two blocks, zero points") {
  const std::int64_t k = 32, n = 2, block = 16;
  std::string packed, zeros;
  Floats scales;
  Floats expected(static_cast<std::size_t>(n));
  const Floats x = ramp(k, 0.1f);
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t g = 0; g < 2; ++g) scales.push_back(0.5f + static_cast<float>(row + g));
    zeros += static_cast<char>(3 | 7 << 4);  // of blocks 0 and 1
    for (std::int64_t i = 0; i < k; i += 2) {
      const auto low = static_cast<unsigned>((i * 5 + row) % 16), high = static_cast<unsigned>((i + row * 3) % 16);
      packed += static_cast<char>(low | high << 4);
      for (const std::int64_t j : {i, i + 1}) {
        const float q = static_cast<float>(j == i ? low : high), zero = j < block ? 3 : 7;
        expected[static_cast<std::size_t>(row)] +=
            x[static_cast<std::size_t>(j)] * (q - zero) * (0.5f + static_cast<float>(row + j / block));
      }
    }
  }
  OnnxBuilder b;
  b.input("x", {1, k})
      .initializer(raw_tensor("B", {n, 2, 8}, 2, packed))
      .initializer(tensor("s", {n * 2}, scales))
      .initializer(raw_tensor("z", {n}, 2, zeros));
  b.node("MatMulNBits", {"x", "B", "s", "z"}, {"y"},
         {attribute("K", k), attribute("N", n), attribute("bits", std::int64_t{4}), attribute("block_size", block)}, "com.microsoft");
  b.output("y");
  const Floats y = Run(b).run(x);
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).epsilon(1e-4));
}

TEST_CASE("FusedConv is a convolution, a sum and an activation") {
  const auto builder = [](bool fused) {
    OnnxBuilder b;
    b.input("x", {1, 2, 3, 3}).weight("w", {2, 2, 1, 1}, 0.1f).weight("b", {2}).weight("z", {1, 2, 3, 3});
    if (fused) return b.node("FusedConv", {"x", "w", "b", "z"}, {"y"}, {attribute("activation", "Relu")}, "com.microsoft").output("y");
    return b.node("Conv", {"x", "w", "b"}, {"c"}).node("Add", {"c", "z"}, {"s"}).node("Relu", {"s"}, {"y"}).output("y");
  };
  CHECK(Run(builder(true)).run(ramp(18, 0.3f)) == Run(builder(false)).run(ramp(18, 0.3f)));
}

TEST_CASE("Einsum by letters") {
  OnnxBuilder b;
  b.input("x", {2, 3}).initializer(tensor("w", {3, 2}, Floats{1, 2, 3, 4, 5, 6}));
  b.node("Einsum", {"x", "w"}, {"y"}, {attribute("equation", "ij, jk -> ki")}).output("y");
  CHECK(Run(b).run({1, 0, 1, 0, 2, 0}) == Floats{6, 6, 8, 8});
}

TEST_CASE("Einsum with ellipses is that with the axes named, from the last on") {
  const auto run = [](const char* equation, std::vector<std::int64_t> x, std::vector<std::int64_t> w) {
    OnnxBuilder b;
    b.input("x", x).initializer(tensor("w", w, ramp(w[0] * w[1] * (w.size() > 2 ? w[2] : 1), 0.5f)));
    b.node("Einsum", {"x", "w"}, {"y"}, {attribute("equation", equation)}).output("y");
    return Run(b).run(ramp(12, 0.25f));
  };
  const Floats product = run("abc,cd->abd", {2, 2, 3}, {3, 2});
  CHECK(product.size() == 8);
  CHECK(run("...c,cd->...d", {2, 2, 3}, {3, 2}) == product);
  CHECK(run("...ij, jk", {2, 2, 3}, {3, 2}) == product);
  CHECK(run("...ij,...jk->...ik", {2, 2, 3}, {2, 3, 2}) == run("aij,ajk->aik", {2, 2, 3}, {2, 3, 2}));
  CHECK(run("...ij,...jk->...ik", {2, 2, 3}, {3, 2}) == product);
  CHECK(run("...ij,...->...j", {2, 2, 3}, {2, 2}) == run("bij,ab->abj", {2, 2, 3}, {2, 2}));

  OnnxBuilder few;
  few.input("x", {2}).node("Einsum", {"x"}, {"y"}, {attribute("equation", "...ij->...ji")}).output("y");
  CHECK_FALSE(Run(few).status);
}

namespace {

/// Calls body(index) for each value of all letters, which have the extents that `extent` says.
template <class Extent, class Body>
void for_each_place(const std::string& letters, const Extent& extent, const Body& body) {
  std::int64_t total = 1;
  for (const char letter : letters) total *= extent(letter);
  for (std::int64_t i = 0; i < total; ++i) {
    std::map<char, std::int64_t> index;
    std::int64_t left = i;
    for (auto letter = letters.rbegin(); letter != letters.rend(); left /= extent(*letter++)) index[*letter] = left % extent(*letter);
    body(index);
  }
}

}  // namespace

TEST_CASE("Einsum of two values is a product of matrices, whatever the order of the letters") {
  const auto extent = [](char letter) { return static_cast<std::int64_t>(letter - 'a') + 2; };
  const auto shape_of = [&](const std::string& term) {
    std::vector<std::int64_t> shape;
    for (const char letter : term) shape.push_back(extent(letter));
    return shape;
  };
  const auto counted = [&](const std::string& term, int seed) {
    std::int64_t count = 1;
    for (const std::int64_t e : shape_of(term)) count *= e;
    Floats values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed) % 11 - 5);
    return values;
  };
  struct Equation {
    std::string x, w, y;
    bool product;
    bool product_of_constant;  // sums of a constant are computed at convert
  };
  for (const auto& [x, w, y, product, product_of_constant] :
       {Equation{"abcd", "abed", "abce", true, true}, Equation{"abce", "abed", "abcd", true, true},
        Equation{"bad", "cbd", "abc", true, true}, Equation{"ab", "bc", "ca", true, true}, Equation{"a", "b", "ab", true, true},
        Equation{"ab", "ab", "a", false, false}, Equation{"abc", "abc", "", false, false}, Equation{"ab", "ab", "ab", true, true},
        Equation{"ab", "bc", "a", false, true}, Equation{"ab", "ab", "ba", true, true}})
    for (const bool constant : {false, true}) {
      OnnxBuilder b;
      b.input("x", shape_of(x));
      constant ? b.initializer(tensor("w", shape_of(w), counted(w, 3))) : b.input("w", shape_of(w));
      b.node("Einsum", {"x", "w"}, {"y"}, {attribute("equation", (x + "," + w + "->" + y).c_str())}).output("y");
      Run r(b);
      REQUIRE(r.status);
      bool matrices = true;
      for (const model::Node& node : r.model->graph().nodes) matrices = matrices && node.op != model::OpKind::kPlain;
      const Floats vx = counted(x, 1), vw = counted(w, 3);
      if (!constant) r.set(1, vw, DType::kF32);
      const Floats made = r.run(vx);
      // One loop over all letters.
      std::string letters = y;
      for (const char letter : x + w)
        if (letters.find(letter) == std::string::npos) letters += letter;
      Floats want(made.size());
      for_each_place(letters, extent, [&](std::map<char, std::int64_t>& index) {
        const auto at = [&](const std::string& term) {
          std::int64_t offset = 0;
          for (const char letter : term) offset = offset * extent(letter) + index[letter];
          return static_cast<std::size_t>(offset);
        };
        want[at(y)] += vx[at(x)] * vw[at(w)];
      });
      INFO(x << "," << w << "->" << y << (constant ? ", the second constant" : ""));
      CHECK(made == want);
      CHECK(matrices == (constant ? product_of_constant : product));
    }
}

TEST_CASE("Einsum of one to four values is that of plain loops") {
  // Extents of letters: a 2, b 3, ...; capital letters mark an axis of extent 1 in a term, which repeats.
  const auto extent = [](char letter) { return letter < 'a' ? std::int64_t{1} : static_cast<std::int64_t>(letter - 'a') + 2; };
  const auto lower = [](char letter) { return static_cast<char>(letter < 'a' ? letter - 'A' + 'a' : letter); };
  const auto count_of = [&](const std::string& term) {
    std::int64_t count = 1;
    for (const char letter : term) count *= extent(letter);
    return count;
  };
  const auto values_of = [&](const std::string& term, int seed) {
    Floats values(static_cast<std::size_t>(count_of(term)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed) % 5 - 2);
    return values;
  };
  struct Case {
    std::vector<std::string> terms;
    std::string y;
  };
  for (const auto& [terms, y] :
       {Case{{"ab"}, "ba"}, Case{{"abc"}, "ca"}, Case{{"abc"}, ""}, Case{{"aab"}, "ab"}, Case{{"ab", "bc", "cd"}, "ad"},
        Case{{"ab", "cb", "cd", "de"}, "ea"}, Case{{"ab", "bc", "ac"}, "a"}, Case{{"ab", "cbd", "ad"}, "ca"},
        Case{{"ab", "ab", "ab"}, "ab"}, Case{{"ab", "cd"}, "a"}, Case{{"a", "b", "c"}, "cab"}, Case{{"aB", "ab"}, "a"},
        Case{{"aBc", "bc"}, "ab"}, Case{{"ab", "bc", "cd"}, ""}, Case{{"abc", "abc"}, "ac"}, Case{{"abc", "cba"}, ""}})
    for (const bool constant : {false, true}) {
      OnnxBuilder b;
      std::string equation, letters = y;
      std::vector<std::string> names;
      for (std::size_t i = 0; i < terms.size(); ++i) {
        std::string term = terms[i];
        std::vector<std::int64_t> shape;
        for (char& letter : term) {
          shape.push_back(extent(letter));
          letter = lower(letter);
          if (letters.find(letter) == std::string::npos) letters += letter;
        }
        equation += (i == 0 ? "" : ",") + term;
        names.push_back("x" + std::to_string(i));
        constant&& i > 0 ? b.initializer(tensor(names[i].c_str(), shape, values_of(terms[i], static_cast<int>(i))))
                         : b.input(names[i].c_str(), shape);
      }
      b.node("Einsum", names, {"y"}, {attribute("equation", (equation + "->" + y).c_str())}).output("y");
      INFO(equation << "->" << y << (constant ? ", all but the first constant" : ""));
      Run r(b);
      REQUIRE(r.status);
      for (std::size_t i = 1; i < terms.size() && !constant; ++i)
        r.set(static_cast<int>(i), values_of(terms[i], static_cast<int>(i)), DType::kF32);
      const Floats made = r.run(values_of(terms[0], 0));
      Floats want(made.size());
      for_each_place(letters, extent, [&](std::map<char, std::int64_t>& index) {
        const auto at = [&](const std::string& term) {
          std::int64_t offset = 0;
          for (const char letter : term) offset = offset * extent(letter) + (letter < 'a' ? 0 : index[letter]);
          return static_cast<std::size_t>(offset);
        };
        float product = 1;
        for (std::size_t t = 0; t < terms.size(); ++t) product *= values_of(terms[t], static_cast<int>(t))[at(terms[t])];
        want[at(y)] += product;
      });
      CHECK(made == want);
    }
}

TEST_CASE("TopK gives values and their places, wanted together or alone") {
  const auto run = [](bool values, bool places) {
    OnnxBuilder b;
    b.input("x", {2, 5}).initializer(tensor("k", {1}, Ints{3}));
    b.node("TopK", {"x", "k"}, {values ? "v" : "", places ? "p" : ""}, {});
    if (values) b.output("v");
    if (places) b.node("Cast", {"p"}, {"f"}, {attribute("to", std::int64_t{1})}).output("f");
    Run r(b);
    REQUIRE(r.status);
    const Floats first = r.run({1, 5, 3, 5, 2, 0, -1, -2, 4, 4});
    return values && places ? std::pair(first, r.floats(1)) : std::pair(values ? first : Floats{}, values ? Floats{} : first);
  };
  const Floats values{5, 5, 3, 4, 4, 0}, places{1, 3, 2, 3, 4, 0};
  CHECK(run(true, true) == std::pair(values, places));
  CHECK(run(true, false).first == values);
  CHECK(run(false, true).second == places);
}

TEST_CASE("images with channels last are resized as those with channels first") {
  const auto run = [](bool last, const char* mode) {
    OnnxBuilder b;
    b.input("x", {1, 3, 4, 2}).initializer(tensor("s", {4}, last ? Floats{1, 2, 1.5f, 1} : Floats{1, 1, 2, 1.5f}));
    if (last) return b.node("Resize", {"x", "", "s"}, {"y"}, {attribute("mode", mode)}).output("y");
    b.node("Transpose", {"x"}, {"t"}, {attribute("perm", std::vector<std::int64_t>{0, 3, 1, 2})});
    b.node("Resize", {"t", "", "s"}, {"r"}, {attribute("mode", mode)});
    return b.node("Transpose", {"r"}, {"y"}, {attribute("perm", std::vector<std::int64_t>{0, 2, 3, 1})}).output("y");
  };
  for (const char* mode : {"nearest", "linear", "cubic"})
    CHECK(Run(run(true, mode)).run(ramp(24, 0.3f)) == Run(run(false, mode)).run(ramp(24, 0.3f)));
}

TEST_CASE("outputs that are constants, inputs, or without elements") {
  OnnxBuilder b;
  b.input("x", {3}).initializer(tensor("k", {2}, Floats{5, 6})).initializer(tensor("none", {0}, Ints{}));
  b.node("Identity", {"x"}, {"same"}).node("Identity", {"k"}, {"fixed"}).node("Gather", {"x", "none"}, {"empty"});
  b.output("same").output("fixed").output("empty");
  Run r(b);
  CHECK(r.run({1, 2, 3}) == Floats{1, 2, 3});
  CHECK(r.floats(1) == Floats{5, 6});
  CHECK(r.floats(2).empty());
}

TEST_CASE("what is not supported is named, each with what comes nearest") {
  OnnxBuilder b;
  b.input("x", {3})
      .node("RandomNormal", {}, {"a"})
      .node("Relux", {"x"}, {"b"})
      .node("StringConcat", {"x"}, {"c"})
      .output("a")
      .output("b")
      .output("c");
  Run r(b);
  REQUIRE_FALSE(r.status);
  REQUIRE(r.report.problems.size() == 3);
  CHECK(r.report.problems[0].message.find("random values as an input") != std::string::npos);
  CHECK(r.report.problems[1].message.find("Relu;") != std::string::npos);
  CHECK(r.report.problems[2].message.find("strings") != std::string::npos);
  CHECK(r.report.problems[2].opset == 13);
}

TEST_CASE("types that an operator does not take are named when the file is converted, axes of the run time or not") {
  constexpr int kU64 = 13, kI64 = 7;
  OnnxBuilder b(18);
  b.input("x", {3, 4}, kU64).input("axes", {1}, kI64);
  b.node("ReduceMax", {"x", "axes"}, {"late"}).node("ReduceSum", {"x"}, {"all"}).node("Pow", {"x", "x"}, {"sum"});
  b.output("late").output("all").output("sum");
  Run r(b);
  REQUIRE_FALSE(r.status);
  REQUIRE(r.report.problems.size() == 3);
  for (const importer::Problem& problem : r.report.problems) CHECK(problem.message.find("does not take: u64") != std::string::npos);
}
