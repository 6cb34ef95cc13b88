// A converted ONNX file, and sessions of it.
#pragma once

#include <catch2/catch.hpp>
#include <functional>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "sluice/kernels/plain.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

namespace sluice::test {

inline constexpr int kFloat = 1, kI64 = 7, kBool = 9;

/// A converted model, and sessions of it.
struct Made {
  explicit Made(const OnnxBuilder& onnx, const importer::ConvertOptions& options = {}) {
    write_file(folder.path("m.onnx"), onnx.bytes());
    status = importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), options, report);
    if (!status) return;
    model = *Model::open(folder.path("m.sluice"));
    open(kUnlimitedBytes);
  }
  void open(Bytes budget) {
    auto made = Session::create(model, {.budget = budget});
    REQUIRE(made);
    session = std::move(*made);
  }
  template <class T>
  void set(std::size_t port, DType dtype, const std::vector<T>& values) {
    REQUIRE(session->set_input(port, dtype, std::as_bytes(std::span(values))));
  }
  template <class T>
  std::vector<T> get(std::size_t port = 0) {
    std::vector<T> values(static_cast<std::size_t>(session->output_shape(port).element_count()));
    REQUIRE(session->get_output(port, std::as_writable_bytes(std::span(values))));
    return values;
  }

  TemporaryFolder folder;
  importer::ConvertReport report;
  Status status;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Session> session;
};

inline Floats numbers(std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) / 8.0f - 1.0f;
  return values;
}

inline OnnxBuilder then_or_else(const std::function<void(OnnxBuilder&)>& fill) {
  OnnxBuilder body;
  fill(body);
  return body;
}

/// Nodes that run subgraphs.
inline int controls(const Made& m) {
  const auto& nodes = m.model->graph().nodes;
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [](const model::Node& node) { return node.subgraph_count > 0; }));
}

}  // namespace sluice::test
