#include "src/importer/rewrite/perm.h"

#include <algorithm>

namespace sluice::importer {
namespace {

/// Replaces each run of axes of one side by the run of the other side it stands for.
std::optional<std::vector<int>> translate(const std::vector<int>& order, const Shape& from_shape, const Shape& to_shape,
                                          const std::vector<ReshapeMap::Run>& runs, bool forward) {
  std::vector<int> result;
  std::size_t at = 0;
  while (at < order.size()) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const ReshapeMap::Run& r) {
      const int begin = forward ? r.in_begin : r.out_begin, end = forward ? r.in_end : r.out_end;
      return order[at] >= begin && order[at] < end;
    });
    const int begin = forward ? run->in_begin : run->out_begin, end = forward ? run->in_end : run->out_end;
    for (int axis = begin; axis < end; ++axis) {
      if (from_shape[axis] == 1) continue;
      if (at == order.size() || order[at] != axis) return std::nullopt;
      ++at;
    }
    const int to_begin = forward ? run->out_begin : run->in_begin, to_end = forward ? run->out_end : run->in_end;
    for (int axis = to_begin; axis < to_end; ++axis)
      if (to_shape[axis] != 1) result.push_back(axis);
  }
  return result;
}

}  // namespace

Perm usual_layout(const Shape& shape, const std::vector<int>& order, bool prefer_last) {
  const Perm last = channels_last(shape.rank());
  for (const Perm& usual : prefer_last ? std::array{last, kIdentityPerm} : std::array{kIdentityPerm, last})
    if (order_of(shape, usual) == order) return usual;
  Perm perm = kIdentityPerm;
  std::size_t at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == 1) perm[at++] = static_cast<std::int8_t>(axis);
  for (const int axis : order) perm[at++] = static_cast<std::int8_t>(axis);
  return perm;
}

ReshapeMap::ReshapeMap(const Shape& in, const Shape& out) : in_(in), out_(out) {
  int i = 0, o = 0;
  while (i < in.rank() || o < out.rank()) {
    Run run{i, i, o, o};
    std::int64_t in_product = i < in.rank() ? in[i++] : 1;
    std::int64_t out_product = o < out.rank() ? out[o++] : 1;
    while (in_product != out_product) {
      if (in_product < out_product)
        in_product *= in[i++];
      else
        out_product *= out[o++];
    }
    run.in_end = i;
    run.out_end = o;
    runs_.push_back(run);
  }
}

std::optional<std::vector<int>> ReshapeMap::forward(const std::vector<int>& in_order) const {
  return translate(in_order, in_, out_, runs_, true);
}
std::optional<std::vector<int>> ReshapeMap::backward(const std::vector<int>& out_order) const {
  return translate(out_order, out_, in_, runs_, false);
}

}  // namespace sluice::importer
