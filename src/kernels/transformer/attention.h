#pragma once

#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/transformer.h"
#include "src/kernels/elementwise/product.h"
#include "src/kernels/transformer/rows.h"

namespace sluice::kernels::transformer {

/// The inner loops of one instruction set.
struct AttentionTable {
  const RowTable& rows;
  elementwise::ProductRun product;
};
inline AttentionTable attention_table(Isa isa) noexcept { return {row_table(isa), elementwise::product_run(isa)}; }

void attention_step(const KernelCall& call, const AttentionTable& table) noexcept;
Bytes attention_workspace(const operators::AttentionParameters& parameters, const StepExtent& extent) noexcept;

}  // namespace sluice::kernels::transformer
