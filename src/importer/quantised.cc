#include "src/importer/quantised.h"

#include "src/importer/allowance.h"

namespace sluice::importer {

QuantisedValues quantised_values(const Constant& q, std::vector<float> scales, std::vector<float> zeros, const kernels::ScaleOrder& order) {
  QuantisedValues made;
  count_made(static_cast<std::uint64_t>(q.elements()), 1);
  made.values.resize(static_cast<std::size_t>(q.elements()));
  write_elements(q, reinterpret_cast<std::byte*>(made.values.data()));
  // Panels of bytes are signed, narrower ones are not: what is of the other kind moves by half the range, and its zero with it.
  const bool moves = (q.dtype == DType::kU8) == (q.bits == 8);
  const int half = moves ? 1 << (q.bits - 1) : 0, move = q.bits == 8 ? -half : half;
  for (std::int8_t& value : made.values) value = static_cast<std::int8_t>(static_cast<std::uint8_t>(value + move));
  for (float& zero : zeros) zero += static_cast<float>(move);
  made.bits = q.bits;
  made.scales = std::move(scales);
  made.zeros = std::move(zeros);
  made.order = order;
  return made;
}

Constant dequantised(const Constant& q, std::vector<float> scales, std::vector<float> zeros, const kernels::ScaleOrder& order) {
  auto quantised = std::make_shared<QuantisedValues>(quantised_values(q, std::move(scales), std::move(zeros), order));
  count_made(quantised->values.size(), sizeof(float));
  auto real = std::make_shared<std::vector<float>>(quantised->values.size());
  for (std::size_t i = 0; i < real->size(); ++i) {
    const auto s = static_cast<std::size_t>(order.of(static_cast<std::int64_t>(i)));
    (*real)[i] = (static_cast<float>(quantised->values[i]) - quantised->zeros[s]) * quantised->scales[s];
  }
  Constant made = make_view(DType::kF32, q.shape, reinterpret_cast<const std::byte*>(real->data()), real);
  quantised->base = made.data;
  made.quantised = std::move(quantised);
  return made;
}

Constant unpacked(const Constant& packed, const Shape& shape, std::int64_t row, int bits, bool is_signed) {
  const auto count = static_cast<std::size_t>(shape.element_count()), each = static_cast<std::size_t>(8 / bits);
  const auto width = static_cast<std::size_t>(row < 1 ? 1 : row), row_bytes = (width + each - 1) / each;
  count_made(count, 1);
  count_made(static_cast<std::uint64_t>(packed.elements()), 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed.elements()));
  write_elements(packed, bytes.data());
  auto values = std::make_shared<std::vector<std::int8_t>>(count);
  const int half = is_signed ? 1 << (bits - 1) : 0, mask = (1 << bits) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i / width * row_bytes + i % width / each;
    const int field = std::to_integer<int>(bytes[at]) >> (i % width % each * static_cast<std::size_t>(bits)) & mask;
    (*values)[i] = static_cast<std::int8_t>((field ^ half) - half);  // the sign's bit counts negatively
  }
  Constant made = make_view(is_signed ? DType::kI8 : DType::kU8, shape, reinterpret_cast<const std::byte*>(values->data()), values);
  made.bits = bits;
  return made;
}

}  // namespace sluice::importer
