// The generic kernels of the class int8: scalar, made to be read, right for every node. The others compute the same bits.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels::integer::generic {

void conv(const KernelCall& call) noexcept;  // any groups; depthwise too
void dense(const KernelCall& call) noexcept;
void matmul(const KernelCall& call) noexcept;
void pool(const KernelCall& call) noexcept;
void table(const KernelCall& call) noexcept;
void binary(const KernelCall& call) noexcept;
void quantize(const KernelCall& call) noexcept;
void dequantize(const KernelCall& call) noexcept;
void resize(const KernelCall& call) noexcept;  // nearest, and linear of images
void softmax(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::integer::generic
