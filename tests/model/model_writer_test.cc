#include "sluice/model/model_writer.h"

#include <catch2/catch.hpp>

#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

Status write_sample(const std::string& path, const WriteOptions& options = {}) {
  Graph graph = sample_graph();
  PatternProducer producer(graph);
  return write_model(graph, producer, path, operators::validate_node, options);
}

/// Gives bytes until weight `fails_at`.
class FailingProducer final : public WeightProducer {
 public:
  explicit FailingProducer(WeightId fails_at) : fails_at_(fails_at) {}
  Status produce(WeightId id, PanelRange, std::span<std::byte>) override {
    if (id == fails_at_) return fail(ErrorCode::kUnsupported, "producer", "this weight cannot be packed");
    return {};
  }

 private:
  WeightId fails_at_;
};

/// Notes what it is asked for.
class CountingProducer final : public WeightProducer {
 public:
  explicit CountingProducer(const Graph& graph) : graph_(graph), next_(graph.weights.size()) {}
  Status produce(WeightId id, PanelRange p, std::span<std::byte> out) override {
    CHECK(p.begin == next_[id.index()]);
    CHECK(out.size() == static_cast<std::uint64_t>(p.size()) * graph_.weight(id).panel_bytes.count());
    largest = std::max(largest, out.size());
    next_[id.index()] = p.end;
    return {};
  }
  bool complete() const {
    for (std::size_t i = 0; i < next_.size(); ++i)
      if (next_[i] != graph_.weights[i].panels) return false;
    return true;
  }
  std::size_t largest = 0;

 private:
  const Graph& graph_;
  std::vector<std::int64_t> next_;
};

}  // namespace

TEST_CASE("the same graph and bytes give the same file") {
  const TemporaryDirectory directory;
  REQUIRE(write_sample(directory.file("a")));
  REQUIRE(write_sample(directory.file("b")));
  CHECK(read_text(directory.file("a")) == read_text(directory.file("b")));
  CHECK(directory.entries() == 2);
}

TEST_CASE("a graph that was read can be written again, to the same bytes") {
  const TemporaryDirectory directory;
  REQUIRE(write_sample(directory.file("a")));
  Graph again = ModelFile::open(directory.file("a"), operators::validate_node)->graph();
  PatternProducer producer(again);
  REQUIRE(write_model(again, producer, directory.file("b"), operators::validate_node));
  CHECK(read_text(directory.file("a")) == read_text(directory.file("b")));
}

TEST_CASE("each panel is asked for once, in order, a stretch at a time") {
  const TemporaryDirectory directory;
  Graph graph = sample_graph();
  CountingProducer producer(graph);
  Bytes written;
  Bytes total;
  REQUIRE(write_model(graph, producer, directory.file("m"), operators::validate_node, {[&](Bytes now, Bytes all) {
                        CHECK(now > written);
                        written = now;
                        total = all;
                      }}));
  CHECK(producer.complete());
  CHECK(producer.largest <= kStretchBytes.count());
  CHECK(written == total);
}

TEST_CASE("a weight that two nodes read is stored once; one that no node reads comes last") {
  const TemporaryDirectory directory;
  // The pattern of a tied table: two dense layers, one weight. And a leftover.
  GraphBuilder b;
  const TensorId in = b.tensor("in", {1, 32});
  const TensorId middle = b.tensor("middle", {1, 32});
  const TensorId out = b.tensor("out", {1, 32});
  b.input(in, {1, 32}, {0, 1, 2, 3, 4, 5, 6, 7});
  b.plain("leftover", {16});
  const WeightId tied = b.panels("tied", {32, 32}, 2, 1, 32);
  b.node(OpKind::kDense, {in}, middle, DenseAttributes{32, 32}).weights = {tied};
  b.node(OpKind::kDense, {middle}, out, DenseAttributes{32, 32}).weights = {tied};
  b.output(out);
  CountingProducer producer(b.graph);
  REQUIRE(write_model(b.graph, producer, directory.file("m"), operators::validate_node));
  CHECK(producer.complete());
  CHECK(b.graph.weights[1].range().end() == b.graph.weights[0].offset);
  CHECK(ModelFile::open(directory.file("m"), operators::validate_node));
}

TEST_CASE("each failing call leaves the directory as it was") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("m");
  for (const int error : {EIO, ENOSPC}) {
    for (int n = 0;; ++n) {
      INFO("call " << n);
      FaultPlan::current() = {.fail_at = n, .error = error};
      const ScopedFileOps ops(FaultPlan::ops());
      const Status status = write_sample(path);
      FaultPlan::current() = {};
      if (status) {
        CHECK(n > 20);
        REQUIRE(std::filesystem::remove(path));
        break;
      }
      REQUIRE(status.error().code == ErrorCode::kIo);
      REQUIRE(status.error().os_error == error);
      REQUIRE(directory.entries() == 0);
    }
  }
}

TEST_CASE("a failed write keeps the file that was there") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("m");
  write_text(path, "the old one");
  FaultPlan::current() = {.fail_at = 10};
  const ScopedFileOps ops(FaultPlan::ops());
  REQUIRE_FALSE(write_sample(path));
  FaultPlan::current() = {};
  CHECK(read_text(path) == "the old one");
  CHECK(directory.entries() == 1);
  REQUIRE(write_sample(path));
  CHECK(ModelFile::open(path, operators::validate_node));
  CHECK(directory.entries() == 1);
}

TEST_CASE("short and interrupted writes change nothing") {
  const TemporaryDirectory directory;
  REQUIRE(write_sample(directory.file("a")));
  FaultPlan::current() = {.most_bytes = 1000, .interruptions = 2};
  const ScopedFileOps ops(FaultPlan::ops());
  REQUIRE(write_sample(directory.file("b")));
  FaultPlan::current() = {};
  CHECK(read_text(directory.file("a")) == read_text(directory.file("b")));
}

TEST_CASE("errors of the producer and of the graph come through, and nothing is left") {
  const TemporaryDirectory directory;
  Graph graph = sample_graph();
  FailingProducer producer(WeightId(graph.weights.size() - 1));
  Status status = write_model(graph, producer, directory.file("m"), operators::validate_node);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kUnsupported);
  CHECK(directory.entries() == 0);

  graph.nodes[kStem].weights.clear();
  status = write_model(graph, producer, directory.file("m"), operators::validate_node);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kInvalidArgument);
  CHECK(directory.entries() == 0);

  CHECK(write_sample(directory.file("absent/m")).error().code == ErrorCode::kIo);
}

}  // namespace sluice::model
