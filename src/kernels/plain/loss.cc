// Losses: exported by training graphs, and by models that report one.
#include "sluice/operators/generic/loss.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::loss;
namespace {

/// Scores [N, C, d1, d2, ...], targets [N, d1, d2, ...].
struct Layout {
  std::int64_t batches, classes, inner;
};
Layout layout_of(const Shape& scores) noexcept { return {scores[0], scores[1], scores.count(2, scores.rank())}; }

/// log(sum(exp(scores))) at one place.
double log_sum(const float* scores, const Layout& l) noexcept {
  double highest = scores[0], sum = 0;
  for (std::int64_t c = 1; c < l.classes; ++c) highest = std::max<double>(highest, scores[c * l.inner]);
  for (std::int64_t c = 0; c < l.classes; ++c) sum += std::exp(scores[c * l.inner] - highest);
  return std::log(sum) + highest;
}

/// Of log-probabilities, or of scores that become such.
PlainRefusal run_loss(const PlainNode& node, const PlainTensor& out, bool scores_given) noexcept {
  const Layout l = layout_of(node.in(0).shape);
  double sum = 0, weights = 0;
  PlainRefusal fault = nullptr;
  Glances glances;
  for (std::int64_t n = 0; n < l.batches; ++n)
    for (std::int64_t i = 0; i < l.inner && !glances.over(scores_given ? 8 * l.classes : 1); ++i) {
      const float* scores = node.in(0).as<const float>() + n * l.classes * l.inner + i;
      const std::int64_t target = integer_at(node.in(1), n * l.inner + i);
      const bool ignored = node.given(1) && target == node.integer(1);
      const bool inside = target >= 0 && target < l.classes;
      if (!ignored && !inside) fault = "a target is none of the classes";
      const bool counts = !ignored && inside;
      const double weight = !counts ? 0 : node.has(2) ? node.in(2).as<const float>()[target] : 1;
      const double normaliser = scores_given && counts ? log_sum(scores, l) : 0;
      const double loss = counts ? weight * (normaliser - scores[target * l.inner]) : 0;
      if (node.integer(0) == loss::kNone) out.as<float>()[n * l.inner + i] = static_cast<float>(loss);
      sum += loss;
      weights += weight;
    }
  if (node.integer(0) == kMean) sum /= weights;
  if (node.integer(0) != loss::kNone) *out.as<float>() = static_cast<float>(sum);
  return fault;
}

PlainRefusal run_nll(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept { return run_loss(node, out, false); }

PlainRefusal run_cross_entropy(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  if (node.result() == 0) return run_loss(node, out, true);
  const Layout l = layout_of(node.in(0).shape);
  Glances glances;
  for (std::int64_t n = 0; n < l.batches; ++n)
    for (std::int64_t i = 0; i < l.inner && !glances.over(8 * l.classes); ++i) {
      const std::int64_t first = n * l.classes * l.inner + i;
      const float* scores = node.in(0).as<const float>() + first;
      const double normaliser = log_sum(scores, l);
      for (std::int64_t c = 0; c < l.classes; ++c)
        out.as<float>()[first + c * l.inner] = static_cast<float>(scores[c * l.inner] - normaliser);
    }
  return nullptr;
}

constexpr GenericKernel kLossKernels[] = {
    {"NegativeLogLikelihoodLoss", run_nll},
    {"SoftmaxCrossEntropyLoss", run_cross_entropy},
};

}  // namespace

std::span<const GenericKernel> loss_kernels() noexcept { return kLossKernels; }

}  // namespace sluice::kernels::plain
