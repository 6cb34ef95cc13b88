#include "src/quantiser/gram.h"

#include <algorithm>
#include <cmath>

namespace sluice::quantiser {
namespace {

constexpr std::int64_t kMostRows = 512;  // of one tensor

/// Entry `i` of a list of integers; `otherwise` where the node has none.
std::int64_t entry(const OnnxNode& node, std::string_view name, std::size_t i, std::int64_t otherwise) {
  const importer::OnnxAttribute* list = find_attribute(node, name);
  return list != nullptr && i < list->ints.size() ? list->ints[i] : otherwise;
}

}  // namespace

Gram::Gram(const Editor& editor, const Unit& unit, const Shape& weight) : dense_(unit.channel_axis < 0) {
  channels_ = weight[unit.input_axis];
  if (dense_) return;
  const OnnxNode& node = editor.node(unit.first());
  const int spatial = weight.rank() - 2;  // one axis is that of columns
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Axis& axis = axes_[2 - spatial + i];
    axis.kernel = weight[2 + i];
    axis.stride = std::max<std::int64_t>(1, entry(node, "strides", at, 1));
    axis.dilation = std::max<std::int64_t>(1, entry(node, "dilations", at, 1));
    // Which pads `auto_pad` means matters little here: rows at the border are few.
    axis.pad = find_attribute(node, "auto_pad") != nullptr ? axis.kernel / 2 : entry(node, "pads", at, 0);
  }
}

void Gram::show(const Shape& input) {
  tensor_.assign(static_cast<std::size_t>(input.element_count()), 0.0f);
  for (int i = 0; i < 2 && !dense_; ++i) {
    const int from = input.rank() - 2 + i;
    Axis& axis = axes_[i];
    axis.in = from >= 2 ? input[from] : 1;
    axis.out = std::max<std::int64_t>(1, (axis.in + 2 * axis.pad - (axis.kernel - 1) * axis.dilation - 1) / axis.stride + 1);
  }
  if (products_.size() != 0) return;
  products_ = Eigen::MatrixXf::Zero(length(), length());
  sums_ = Eigen::VectorXd::Zero(length());
}

void Gram::add(std::int64_t first, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor_[static_cast<std::size_t>(first) + i] = std::isfinite(values[i]) ? values[i] : 0.0f;
  if (static_cast<std::size_t>(first) + values.size() == tensor_.size()) add_tensor();
}

/// The values under the window of one output pixel, [channels][taps]; zero in the padding.
void Gram::fill_window(std::int64_t image, std::int64_t pixel, Eigen::Ref<Eigen::VectorXf> row) const {
  const std::int64_t plane = axes_[0].in * axes_[1].in;
  const std::int64_t top = pixel / axes_[1].out * axes_[0].stride - axes_[0].pad;
  const std::int64_t left = pixel % axes_[1].out * axes_[1].stride - axes_[1].pad;
  std::int64_t at = 0;
  for (std::int64_t c = 0; c < channels_; ++c) {
    const float* const from = tensor_.data() + (image * channels_ + c) * plane;
    for (std::int64_t ky = 0; ky < axes_[0].kernel; ++ky) {
      const std::int64_t y = top + ky * axes_[0].dilation;
      for (std::int64_t kx = 0; kx < axes_[1].kernel; ++kx) {
        const std::int64_t x = left + kx * axes_[1].dilation;
        const bool inside = y >= 0 && y < axes_[0].in && x >= 0 && x < axes_[1].in;
        row[at++] = inside ? from[y * axes_[1].in + x] : 0.0f;
      }
    }
  }
}

void Gram::add_tensor() {
  const std::int64_t pixels = dense_ ? 1 : axes_[0].out * axes_[1].out;
  const auto count = static_cast<std::int64_t>(tensor_.size());
  const std::int64_t all = dense_ ? count / channels_ : count / (channels_ * axes_[0].in * axes_[1].in) * pixels;
  const std::int64_t taken = std::min(all, kMostRows);
  if (taken == 0) return;
  Eigen::MatrixXf rows(length(), taken);
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t at = i * all / taken;
    if (dense_)
      rows.col(i) = Eigen::Map<const Eigen::VectorXf>(tensor_.data() + at * channels_, channels_);
    else
      fill_window(at / pixels, at % pixels, rows.col(i));
  }
  products_.selfadjointView<Eigen::Lower>().rankUpdate(rows);
  sums_ += rows.rowwise().sum().cast<double>();
  rows_ += taken;
}

Statistics Gram::take() {
  Statistics made;
  if (rows_ == 0) return made;
  const auto share = static_cast<float>(1.0 / static_cast<double>(rows_));
  made.products = products_.selfadjointView<Eigen::Lower>();
  made.products *= share;
  made.means = (sums_ / static_cast<double>(rows_)).cast<float>();
  products_.resize(0, 0);
  return made;
}

}  // namespace sluice::quantiser
