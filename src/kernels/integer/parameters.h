// From a node of the class int8 to the parameters of its kernels: with the descriptors, what of this family sees a graph.
#pragma once

#include "sluice/kernels/kernel.h"
#include "sluice/operators/parameters/integer.h"

namespace sluice::kernels::integer {

operators::IntegerConvolutionParameters convolution_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerDenseParameters dense_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerMatMulParameters matmul_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerPoolParameters pool_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerSoftmaxParameters softmax_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerResizeParameters resize_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerTableParameters table_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerBinaryParameters binary_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerBorderParameters quantize_parameters(const model::Graph& graph, const model::Node& node) noexcept;
operators::IntegerBorderParameters dequantize_parameters(const model::Graph& graph, const model::Node& node) noexcept;

}  // namespace sluice::kernels::integer
