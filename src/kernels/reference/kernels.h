// The run functions of the reference, one an operator, each in the file of its family. `reference.cc` makes descriptors of them.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels::reference {

void conv(const KernelCall& call) noexcept;            // convolution.cc
void conv_winograd(const KernelCall& call) noexcept;   // winograd.cc
void conv_transpose(const KernelCall& call) noexcept;  // convolution.cc
void dense(const KernelCall& call) noexcept;           // dense.cc
void matmul(const KernelCall& call) noexcept;          // dense.cc
void pool(const KernelCall& call) noexcept;            // pool.cc
void unary(const KernelCall& call) noexcept;           // elementwise.cc
void binary(const KernelCall& call) noexcept;          // elementwise.cc
void affine(const KernelCall& call) noexcept;          // elementwise.cc
void softmax(const KernelCall& call) noexcept;         // normalize.cc
void lrn(const KernelCall& call) noexcept;             // normalize.cc
void concat(const KernelCall& call) noexcept;          // movement.cc
void slice(const KernelCall& call) noexcept;           // movement.cc
void pad(const KernelCall& call) noexcept;             // movement.cc
void transpose(const KernelCall& call) noexcept;       // movement.cc
void reshape(const KernelCall& call) noexcept;         // movement.cc
void resize(const KernelCall& call) noexcept;          // resize.cc
void layer_norm(const KernelCall& call) noexcept;      // normalize.cc
void attention(const KernelCall& call) noexcept;       // attention.cc
void recurrent(const KernelCall& call) noexcept;       // recurrent.cc
void embedding(const KernelCall& call) noexcept;       // embedding.cc
void quantised_embedding(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::reference
