#include "src/cli/emit/test_vector.h"

#include <cstring>

#include "src/cli/failure.h"
#include "src/cli/inputs.h"
#include "src/kernels/integer/rounding.h"

namespace sluice::cli {
namespace {

/// Elements of a port in the order of the graph's own axes.
std::vector<std::byte> physical(const model::Port& port, std::size_t element, const std::vector<std::byte>& onnx) {
  const int rank = port.onnx_shape.rank();
  std::vector<std::size_t> strides(static_cast<std::size_t>(rank), element);
  for (int axis = rank - 2; axis >= 0; --axis)
    strides[static_cast<std::size_t>(axis)] =
        strides[static_cast<std::size_t>(axis) + 1] * static_cast<std::size_t>(port.onnx_shape[axis + 1]);
  std::vector<std::byte> result(onnx.size());
  std::vector<std::int64_t> index(static_cast<std::size_t>(rank), 0);
  for (std::size_t at = 0; at < onnx.size(); at += element) {
    std::size_t from = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      from += static_cast<std::size_t>(index[axis]) * strides[static_cast<std::size_t>(port.perm[axis])];
    std::memcpy(result.data() + at, onnx.data() + from, element);
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < port.onnx_shape[port.perm[static_cast<std::size_t>(axis)]]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
  return result;
}

/// What the quantize node that the emitted code leaves out makes of its input.
std::vector<std::byte> quantised(const model::Graph& graph, TensorId tensor, const std::vector<std::byte>& floats) {
  const model::Quantisation& q = graph.quantisations[graph.tensor(tensor).quantisation];
  const kernels::integer::IntegerRange range{.zero = q.zero_points.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(q.zero_points[0])};
  std::vector<std::byte> bytes(floats.size() / sizeof(float));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    float value;
    std::memcpy(&value, floats.data() + i * sizeof value, sizeof value);
    bytes[i] = static_cast<std::byte>(kernels::integer::to_u8(value / q.scales[0], range));
  }
  return bytes;
}

}  // namespace

emit::TestVector make_test_vector(const std::shared_ptr<const Model>& model, const emit::Network& network,
                                  const std::vector<std::string>& arguments) {
  const model::Graph& graph = model->graph();
  const std::unique_ptr<Session> session = unwrap(Session::create(model, {}));
  const std::vector<HostTensor> inputs = load_inputs(graph, open_inputs(arguments, graph.inputs), {});
  emit::TestVector vector;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    unwrap(session->set_input(i, inputs[i].dtype, inputs[i].data));
    std::vector<std::byte> values = physical(graph.inputs[i], size_of(inputs[i].dtype), inputs[i].data);
    // Signed bytes are given as they are, though the port has the scale of the unsigned ones.
    const emit::NetworkPort& port = network.inputs[i];
    const bool quantises = port.tensor != graph.inputs[i].tensor && inputs[i].dtype == DType::kF32;
    vector.inputs.push_back(quantises ? quantised(graph, port.tensor, values) : std::move(values));
  }
  unwrap(session->run());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const model::Tensor& tensor = graph.tensor(graph.outputs[i].tensor);
    std::vector<std::byte> values(tensor.bytes().count());
    unwrap(session->get_output(i, values));
    vector.outputs.push_back(physical(graph.outputs[i], size_of(tensor.dtype), values));
  }
  return vector;
}

}  // namespace sluice::cli
