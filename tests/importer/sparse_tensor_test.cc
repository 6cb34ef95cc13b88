// ONNX's sparse initialisers: the same model as with their zeros written out.
#include <catch2/catch.hpp>
#include <fstream>

#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;

namespace {

/// The bytes of a SparseTensorProto.
std::string sparse(const std::string& values, const std::string& indices, const Ints& dims) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_message(1, values);
  w.add_message(2, indices);
  for (const std::int64_t dim : dims) w.add_int64(3, dim);
  return bytes;
}

/// x [2, 6] times a weight [6, 5].
OnnxBuilder product() {
  OnnxBuilder b;
  b.input("x", {2, 6}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  return b;
}

struct SparseOutcome {
  ErrorCode code;     // kInternal: none
  std::string words;  // what was wrong
  std::string file;
};

SparseOutcome convert_of(const OnnxBuilder& builder) {
  const TemporaryFolder folder;
  write_file(folder.path("m.onnx"), builder.bytes());
  ConvertReport report;
  const Status status = convert(folder.path("m.onnx"), folder.path("m.sluice"), {}, report);
  if (!status) return {status.error().code, report.problems.empty() ? "" : report.problems[0].message, ""};
  std::ifstream file(folder.path("m.sluice"), std::ios::binary);
  return {ErrorCode::kInternal, "", {std::istreambuf_iterator<char>(file), {}}};
}

SparseOutcome with_sparse(const Floats& values, const std::string& indices, const Ints& dims = {6, 5}) {
  OnnxBuilder b = product();
  b.field(15, sparse(tensor("w", {static_cast<std::int64_t>(values.size())}, values), indices, dims));
  return convert_of(b);
}

}  // namespace

TEST_CASE("a sparse initialiser gives the file that a dense one gives") {
  Floats dense(30, 0.0f);
  dense[1] = 2;
  dense[13] = -3;
  dense[29] = 0.5f;
  OnnxBuilder b = product();
  b.initializer(tensor("w", {6, 5}, dense));
  const SparseOutcome want = convert_of(b);
  REQUIRE(want.code == ErrorCode::kInternal);
  CHECK(with_sparse({2, -3, 0.5f}, tensor("", {3}, Ints{1, 13, 29})).file == want.file);
  CHECK(with_sparse({2, -3, 0.5f}, tensor("", {3, 2}, Ints{0, 1, 2, 3, 5, 4})).file == want.file);

  std::string value;
  protozero::pbf_writer w(value);
  w.add_string(1, "sparse_value");
  w.add_message(22, sparse(tensor("", {3}, Floats{2, -3, 0.5f}), tensor("", {3}, Ints{1, 13, 29}), {6, 5}));
  w.add_enum(20, 11);
  const auto with_constant = [](const std::string& attribute) {
    OnnxBuilder made;
    made.input("x", {2, 6}).node("Constant", {}, {"w"}, {attribute}).node("MatMul", {"x", "w"}, {"y"}).output("y");
    return convert_of(made).file;
  };
  CHECK(with_constant(value) == with_constant(tensor_attribute("value", tensor("", {6, 5}, dense))));
}

TEST_CASE("a sparse initialiser without values is all zeros") {
  OnnxBuilder b = product();
  b.initializer(tensor("w", {6, 5}, Floats(30, 0.0f)));
  CHECK(with_sparse({}, tensor("", {0}, Ints{})).file == convert_of(b).file);
}

TEST_CASE("sparse initialisers that describe no tensor are malformed") {
  const struct {
    const char* name;
    std::string indices;
    Ints dims;
  } broken[] = {{"places fall", tensor("", {3}, Ints{13, 1, 29}), {6, 5}},
                {"a place twice", tensor("", {3}, Ints{1, 1, 29}), {6, 5}},
                {"a place outside", tensor("", {3}, Ints{1, 13, 30}), {6, 5}},
                {"a place before the first", tensor("", {3}, Ints{-1, 13, 29}), {6, 5}},
                {"an index outside its axis", tensor("", {3, 2}, Ints{0, 1, 1, 5, 5, 4}), {6, 5}},
                {"a place too few", tensor("", {2}, Ints{1, 13}), {6, 5}},
                {"an axis too many", tensor("", {3, 3}, Ints{0, 0, 1, 0, 2, 3, 0, 5, 4}), {6, 5}},
                {"places that are no integers", tensor("", {3}, Floats{1, 13, 29}), {6, 5}},
                {"a negative extent", tensor("", {3}, Ints{1, 13, 29}), {6, -5}},
                {"nine axes", tensor("", {3}, Ints{1, 13, 29}), {1, 1, 1, 1, 1, 1, 1, 6, 5}}};
  for (const auto& [name, indices, dims] : broken) {
    INFO(name);
    const SparseOutcome outcome = with_sparse({2, -3, 0.5f}, indices, dims);
    CHECK(outcome.code == ErrorCode::kInvalidModel);
    CHECK_FALSE(outcome.words.empty());
  }
}

TEST_CASE("a few values do not make a large tensor") {
  const SparseOutcome outcome = with_sparse({2, -3, 0.5f}, tensor("", {3}, Ints{1, 13, 29}), {6, 1 << 20});
  CHECK(outcome.code == ErrorCode::kUnsupported);
  CHECK(outcome.words.find("too large for so few values") != std::string::npos);
}
