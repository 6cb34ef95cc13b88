// What works value by value, and pools: the walks over memory.
#pragma once

#include "sluice/kernels/call.h"
#include "src/kernels/integer/tile.h"

namespace sluice::kernels::integer {

void run_quantize_step(const KernelCall& call, const TileTable& table) noexcept;
void run_dequantize_step(const KernelCall& call, const TileTable& table) noexcept;
void run_table_step(const KernelCall& call, const TileTable& table) noexcept;
void run_binary_step(const KernelCall& call, const TileTable& table) noexcept;
void run_pool_step(const KernelCall& call, const TileTable& table) noexcept;

/// Can the operand of a binary node be walked beside an output of that shape, pixel by pixel?
bool walks_beside(const Shape& operand, const Shape& out) noexcept;

/// Is the window of a pool low enough?
bool takes_window(const Window& w) noexcept;

}  // namespace sluice::kernels::integer
