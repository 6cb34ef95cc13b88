// Which row of its table each output row of an embedding is.
#pragma once

#include <cstdint>

#include "sluice/kernels/call.h"

namespace sluice::kernels {

/// The table's row for the output's (row, pixel). Outside of [0, table_rows) where the input asks for a row that does not exist.
inline std::int64_t table_row(const RowView& indices, const RowView& out, std::int64_t row, std::int64_t pixel,
                              std::int64_t table_rows) noexcept {
  const std::int64_t position = row * out.pixels + pixel;
  const std::int64_t index_pixel = position / indices.channels, channel = position % indices.channels;
  const std::int64_t index_row = index_pixel / indices.pixels;
  const std::int64_t pixel_in_row = index_pixel % indices.pixels;
  const std::int64_t index = indices.dtype == DType::kI64 ? indices.at<const std::int64_t>(index_row, pixel_in_row)[channel]
                                                          : indices.at<const std::int32_t>(index_row, pixel_in_row)[channel];
  return index < 0 ? index + table_rows : index;
}

}  // namespace sluice::kernels
