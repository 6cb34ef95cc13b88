// Operators that move elements and compute nothing: concatenation, slices, padding, transposition, reshaping. Any element type.
#include "sluice/operators/parameters/movement.h"

#include <algorithm>
#include <cstring>

#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/padding.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

std::size_t at(int axis) noexcept { return static_cast<std::size_t>(axis); }

/// Copies `count` elements; a copy onto itself (an operand that the plan placed inside the output) is left out.
void copy(std::byte* to, const std::byte* from, std::int64_t count, std::int64_t size) noexcept {
  if (to != from) std::memmove(to, from, static_cast<std::size_t>(count * size));
}

template <class T>
void gather_as(std::byte* to, const std::byte* from, std::int64_t step, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * std::int64_t{sizeof(T)}, from + i * step, sizeof(T));
}

/// Copies `count` elements that lie `step` bytes apart.
void gather(std::byte* to, const std::byte* from, std::int64_t step, std::int64_t count, std::int64_t size) noexcept {
  switch (size) {
    case 1:
      return gather_as<std::uint8_t>(to, from, step, count);
    case 2:
      return gather_as<std::uint16_t>(to, from, step, count);
    case 4:
      return gather_as<std::uint32_t>(to, from, step, count);
    default:
      return gather_as<std::uint64_t>(to, from, step, count);
  }
}

std::int64_t element_size(const Operand& operand) noexcept { return static_cast<std::int64_t>(size_of(operand.view.dtype)); }

void concat_channels(const KernelCall& call, std::int64_t row, std::int64_t pixel) noexcept {
  const Operand& out = call.outputs[0];
  std::byte* to = out.view.at<std::byte>(row, pixel);
  for (const Operand& in : call.inputs) {
    copy(to, in.view.at<const std::byte>(row, pixel), in.view.channels, element_size(out));
    to += in.view.channels * element_size(out);
  }
}

}  // namespace

void concat(const KernelCall& call) noexcept {
  const Operand& out = call.outputs[0];
  const int axis = call.parameters<operators::ConcatParameters>().axis;
  if (axis == out.shape.rank() - 1) {
    for_pixels(call, [&](std::int64_t row, std::int64_t pixel) { concat_channels(call, row, pixel); });
    return;
  }
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    Index index = index_at(out.shape, row, pixel);
    std::size_t input = 0;
    for (; index[at(axis)] >= call.inputs[input].shape[axis]; ++input) index[at(axis)] -= call.inputs[input].shape[axis];
    copy(out.view.at<std::byte>(row, pixel), address(call.inputs[input], index), out.view.channels, element_size(out));
  });
}

void slice(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::SliceParameters>();
  const Operand& in = call.inputs[0];
  const Operand& out = call.outputs[0];
  const int last = out.shape.rank() - 1;
  const std::int64_t size = element_size(out);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    Index source{};
    for (int axis = 0; axis <= last; ++axis) source[at(axis)] = a.start[at(axis)] + index[at(axis)] * a.step[at(axis)];
    std::byte* to = out.view.at<std::byte>(row, pixel);
    const std::byte* from = address(in, source);
    const std::int64_t step = last < 0 ? 1 : a.step[at(last)];
    if (step == 1) return copy(to, from, out.view.channels, size);
    gather(to, from, step * size, out.view.channels, size);
  });
}

void pad(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::PadParameters>();
  const Operand& in = call.inputs[0];
  const Operand& out = call.outputs[0];
  const int last = out.shape.rank() - 1;
  const std::int64_t size = element_size(out);
  const bool channels_keep = last >= 0 && a.before[at(last)] == 0 && in.shape[last] == out.shape[last];
  const std::array<std::byte, 8> fill = element_of(out.view.dtype, a.value);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    Index source{};
    bool constant = false;
    for (int axis = 0; axis < last; ++axis) {
      source[at(axis)] = pad_source(a.mode, index[at(axis)] - a.before[at(axis)], in.shape[axis]);
      constant = constant || source[at(axis)] < 0;
    }
    std::byte* to = out.view.at<std::byte>(row, pixel);
    if (!constant && channels_keep) return copy(to, address(in, source), out.view.channels, size);
    for (std::int64_t c = 0; c < out.view.channels; ++c) {
      const std::int64_t channel = last < 0 ? 0 : pad_source(a.mode, c - a.before[at(last)], in.shape[last]);
      if (last >= 0) source[at(last)] = channel;
      const std::byte* from = constant || channel < 0 ? fill.data() : address(in, source);
      copy(to + c * size, from, 1, size);
    }
  });
}

void transpose(const KernelCall& call) noexcept {
  const auto& perm = call.parameters<operators::TransposeParameters>().perm;
  const Operand& in = call.inputs[0];
  const Operand& out = call.outputs[0];
  const int rank = out.shape.rank();
  const std::int64_t size = element_size(out);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    Index source{};
    for (int axis = 0; axis < rank; ++axis) source[static_cast<std::size_t>(perm[at(axis)])] = index[at(axis)];
    std::byte* to = out.view.at<std::byte>(row, pixel);
    const int moving = rank == 0 ? 0 : perm[at(rank - 1)];
    if (moving >= rank - 1) return copy(to, address(in, source), out.view.channels, size);
    if (in.view.ring_rows == 0) {  // then neighbours along any axis lie at one distance
      const std::byte* from = address(in, source);
      source[at(moving)] = 1;
      return gather(to, from, address(in, source) - from, out.view.channels, size);
    }
    for (std::int64_t c = 0; c < out.view.channels; ++c) {
      source[at(moving)] = c;
      copy(to + c * size, address(in, source), 1, size);
    }
  });
}

/// The same elements in the same order: a copy where the plan could not make it a view.
void reshape(const KernelCall& call) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const std::int64_t size = element_size(call.outputs[0]);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const std::int64_t first = (row * out.pixels + pixel) * out.channels;
    for (std::int64_t done = 0; done < out.channels;) {
      const std::int64_t position = (first + done) / in.channels, channel = (first + done) % in.channels;
      const std::int64_t run = std::min(out.channels - done, in.channels - channel);
      const std::byte* from = in.at<const std::byte>(position / in.pixels, position % in.pixels) + channel * size;
      copy(out.at<std::byte>(row, pixel) + done * size, from, run, size);
      done += run;
    }
  });
}

}  // namespace sluice::kernels::reference
