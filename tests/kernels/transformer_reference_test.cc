// The reference of what transformers are made of, against the definitions, computed in double precision.
#include "differential/transformer_problems.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using Values = std::vector<float>;

namespace {

void check_near(const Values& got, const std::vector<double>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == Approx(want[i]).margin(tolerance));
  }
}

/// softmax(scale * Q K^T) V of one head of one batch, as its definition says.
std::vector<double> attend(const AttentionShape& s, const Values& q, const Values& k, const Values& v, std::int64_t batch,
                           std::int64_t head, std::int64_t row) {
  const auto at = [](const Values& values, std::int64_t i) { return static_cast<double>(values[static_cast<std::size_t>(i)]); };
  const std::int64_t seen = s.causal ? s.keys - s.queries + row + 1 : s.keys;
  std::vector<double> out(static_cast<std::size_t>(s.width), 0.0);
  double total = 0.0;
  for (std::int64_t t = 0; t < seen; ++t) {
    double score = 0.0;
    for (std::int64_t c = 0; c < s.depth; ++c) {
      score +=
          at(q, ((batch * s.queries + row) * s.heads + head) * s.depth + c) * at(k, ((batch * s.keys + t) * s.heads + head) * s.depth + c);
    }
    const double weight = std::exp(0.7 * score);
    total += weight;
    for (std::int64_t c = 0; c < s.width; ++c)
      out[static_cast<std::size_t>(c)] += weight * at(v, ((batch * s.keys + t) * s.heads + head) * s.width + c);
  }
  for (double& value : out) value /= total;
  return out;
}

}  // namespace

TEST_CASE("layer norm") {
  Problem p = layer_norm_problem(Shape{2, 4}, 0.25f);
  p.inputs[0] = bytes_of(Values{1, 2, 3, 6, 5, 5, 5, 5});
  const Values scale{1, 2, 1, 1}, shift{0, 0, 1, -1};
  std::memcpy(p.weights[0].data(), scale.data(), sizeof(float) * 4);
  std::memcpy(p.weights[1].data(), shift.data(), sizeof(float) * 4);
  const double r = 1 / std::sqrt(3.5 + 0.25);
  check_near(values_of<float>(run_reference(p)), {-2 * r, -2 * r, 1, 3 * r - 1, 0, 0, 1, -1}, 1e-6);
}

TEST_CASE("attention") {
  for (bool causal : {false, true}) {
    const AttentionShape s{.batch = 2, .queries = 3, .keys = 5, .heads = 2, .depth = 3, .width = 4, .causal = causal};
    const Problem p = attention_problem(s);
    const Values q = values_of<float>(p.inputs[0]), k = values_of<float>(p.inputs[1]), v = values_of<float>(p.inputs[2]);
    std::vector<double> want;
    for (std::int64_t batch = 0; batch < s.batch; ++batch)
      for (std::int64_t row = 0; row < s.queries; ++row)
        for (std::int64_t head = 0; head < s.heads; ++head) {
          const std::vector<double> part = attend(s, q, k, v, batch, head, row);
          want.insert(want.end(), part.begin(), part.end());
        }
    check_near(values_of<float>(run_reference(p)), want, 1e-6);
  }
}

TEST_CASE("embedding: indices from the end, and zeros for those beyond the table") {
  Problem p = embedding_problem(Shape{2, 3}, 20, 2);
  p.inputs[0] = bytes_of(std::vector<std::int64_t>{0, 19, -1, 20, -21, INT64_MIN});
  const Values got = values_of<float>(run_reference(p));
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t c = 0; c < 2; ++c) CHECK(got[2 * i + c] == (i < 3 ? p.unpacked[2 * (i == 0 ? 0 : 19) + c] : 0.0f));
}
