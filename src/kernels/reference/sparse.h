// Dense layers and convolutions of one group over sparse panels: the chain of fused multiply-adds over the blocks that are there.
#pragma once

#include "sluice/kernels/call.h"

namespace sluice::kernels::reference {

void sparse_dense(const KernelCall& call) noexcept;
void sparse_conv(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::reference
