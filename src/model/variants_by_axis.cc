// Variants by axis: boxes of one structure, then a rule for each column of a box.
#include <algorithm>
#include <numeric>

#include "sluice/core/sort.h"
#include "sluice/model/variants.h"
#include "src/model/variant_values.h"

namespace sluice::model {
namespace {

constexpr std::size_t kRandomSamples = 128;
constexpr std::size_t kMostGraphs = 4 * kMaxPoints;  // to be made

using Places = std::vector<std::size_t>;  // by dimension, a place among the positions of a box

/// A box of points: some positions of each dimension.
using Box = std::vector<std::vector<std::uint32_t>>;

std::size_t point_of(const Box& box, std::span<const Dimension> dimensions, const Places& places) {
  std::size_t point = 0;
  for (std::size_t d = 0; d < box.size(); ++d) point = point * dimensions[d].extents.size() + box[d][places[d]];
  return point;
}

Places last_of(const Box& box) {
  Places places;
  for (const auto& positions : box) places.push_back(positions.size() - 1);
  return places;
}

/// The points whose graphs are asked for: the last one; those along each dimension; then those that judge: each two dimensions at their
/// first positions, all of them, and some anywhere.
std::vector<Places> samples_of(const Box& box) {
  const Places last = last_of(box);
  std::vector<Places> samples{last};
  for (std::size_t d = 0; d < box.size(); ++d) {
    Places places = last;
    for (places[d] = 0; places[d] < last[d]; ++places[d]) samples.push_back(places);
  }
  for (std::size_t a = 0; a < box.size(); ++a)
    for (std::size_t b = a + 1; b < box.size(); ++b) {
      if (last[a] == 0 || last[b] == 0) continue;
      Places places = last;
      places[a] = places[b] = 0;
      samples.push_back(places);
    }
  const auto moving = static_cast<std::size_t>(std::count_if(last.begin(), last.end(), [](std::size_t place) { return place > 0; }));
  if (moving < 2) return samples;
  samples.push_back(Places(box.size(), 0));
  std::uint64_t state = 1;  // the same file gives the same samples
  for (std::size_t i = 0; i < kRandomSamples; ++i) {
    Places places(box.size());
    for (std::size_t d = 0; d < box.size(); ++d) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      places[d] = static_cast<std::size_t>(state >> 33) % box[d].size();
    }
    samples.push_back(places);
  }
  return samples;
}

/// Finds the rule of each column of a box from the values of its samples.
class BoxRules {
 public:
  BoxRules(const Box& box, const std::vector<Places>& samples, const Form& listed) : box_(box), samples_(samples), listed_(listed) {}

  /// False where a column has no rule.
  bool find(Form& form) const {
    const std::size_t count = samples_.size();
    const std::size_t columns = listed_.values.size() / count;
    form.graph = listed_.graph;
    form.words = listed_.words;
    form.columns = listed_.columns;
    for (const auto& positions : box_) form.axes.push_back({positions, std::vector<std::uint64_t>(columns * positions.size())});
    for (std::size_t c = 0; c < columns; ++c) {
      form.values.push_back(listed_.values[c * count]);
      take_axes(c, form);
      form.offsets.push_back(Form::kAddsUp);
      if (holds(c, form)) continue;
      form.offsets[c] = offset_of(c, form);
      if (!holds(c, form)) return false;
    }
    return true;
  }

 private:
  std::uint64_t value(std::size_t column, std::size_t sample) const { return listed_.values[column * samples_.size() + sample]; }

  /// The first samples are the last point of the box and those along each dimension, in order.
  void take_axes(std::size_t column, Form& form) const {
    std::size_t sample = 1;
    for (FormAxis& axis : form.axes) {
      const auto values = axis.values.begin() + static_cast<std::ptrdiff_t>(column * axis.positions.size());
      for (std::size_t place = 0; place + 1 < axis.positions.size(); ++place)
        values[static_cast<std::ptrdiff_t>(place)] = value(column, sample++);
      values[static_cast<std::ptrdiff_t>(axis.positions.size()) - 1] = value(column, 0);
    }
  }

  bool holds(std::size_t column, const Form& form) const {
    for (std::size_t s = 0; s < samples_.size(); ++s)
      if (value_by_axis(form, column, samples_[s]) != value(column, s)) return false;
    return true;
  }

  /// From a point that lies apart from the last one in two dimensions, a and b from its value: a * b / (value - base - a - b) - base. 0
  /// where there is none.
  std::int64_t offset_of(std::size_t column, const Form& form) const {
    const auto base = static_cast<std::int64_t>(form.values[column]);
    const Places last = last_of(box_);
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      std::vector<std::int64_t> steps;
      std::uint64_t rest = value(column, s) - form.values[column];
      for (std::size_t d = 0; d < box_.size(); ++d) {
        if (samples_[s][d] == last[d]) continue;
        const std::uint64_t step = form.axes[d].values[column * box_[d].size() + samples_[s][d]] - form.values[column];
        steps.push_back(static_cast<std::int64_t>(step));
        rest -= step;
      }
      if (steps.size() != 2 || rest == 0) continue;
      std::int64_t offset = 0;
      if (quotient(steps[0], steps[1], static_cast<std::int64_t>(rest), offset) && !__builtin_sub_overflow(offset, base, &offset))
        return offset;
    }
    return 0;
  }

  /// a * b / divisor, where that is a whole number of 64 bits.
  static bool quotient(std::int64_t a, std::int64_t b, std::int64_t divisor, std::int64_t& result) {
    for (const std::int64_t number : {a, b, divisor})
      if (number == INT64_MIN || number == 0) return false;
    const std::int64_t common = std::gcd(a, divisor);
    divisor /= common;
    return b % divisor == 0 && !__builtin_mul_overflow(a / common, b / divisor, &result);
  }

  const Box& box_;
  const std::vector<Places>& samples_;
  const Form& listed_;
};

class AxisEncoder {
 public:
  AxisEncoder(std::vector<Dimension> dimensions, const MakeGraph& make, std::size_t& made) : make_(make), made_(made) {
    variants_.dimensions = std::move(dimensions);
    made_ = 0;
  }

  Result<Variants> encode() {
    SLUICE_ASSIGN_OR_RETURN(const std::vector<Box> runs, runs_of_structures());
    std::vector<Box> boxes{Box()};
    for (const Box& of_dimension : runs) {
      std::vector<Box> longer;
      for (const Box& box : boxes)
        for (const auto& positions : of_dimension) longer.push_back(box), longer.back().push_back(positions);
      boxes = std::move(longer);
      if (boxes.size() > kMaxBoxes) return refuse("have graphs of too many structures");
    }
    for (const Box& box : boxes) SLUICE_RETURN_IF_ERROR(encode(box));
    return std::move(variants_);
  }

 private:
  tl::unexpected<Error> refuse(const char* reason) const {
    std::string names;
    for (const Dimension& dimension : variants_.dimensions) names += (names.empty() ? "dimensions " : ", ") + dimension.name;
    return fail(ErrorCode::kUnsupported, names, reason);
  }

  Status add(std::size_t number, std::size_t point, VariantsEncoder& encoder) {
    if (++made_ > kMostGraphs) return refuse("have graphs of too many structures: state fewer extents");
    Graph graph;
    SLUICE_RETURN_IF_ERROR(make_(point, graph));
    return encoder.add(number, graph);
  }

  /// By dimension, positions of one structure, the other dimensions at their bound.
  Result<std::vector<Box>> runs_of_structures() {
    std::vector<Box> all;
    for (std::size_t d = 0; d < variants_.dimensions.size(); ++d) {
      Box whole;
      for (const Dimension& dimension : variants_.dimensions) {
        whole.emplace_back(dimension.extents.size());
        for (std::size_t i = 0; i < whole.back().size(); ++i) whole.back()[i] = static_cast<std::uint32_t>(i);
      }
      Places places = last_of(whole);
      VariantsEncoder encoder(variants_.dimensions);
      for (std::size_t place = 0; place < whole[d].size(); ++place) {
        places[d] = place;
        SLUICE_RETURN_IF_ERROR(add(place, point_of(whole, variants_.dimensions, places), encoder));
      }
      Box runs;
      for (Form& form : encoder.take().forms) {
        sluice::sort(form.points.begin(), form.points.end());
        runs.push_back(std::move(form.points));
      }
      all.push_back(std::move(runs));
    }
    return all;
  }

  Status encode(const Box& box) {
    const std::vector<Places> samples = samples_of(box);
    VariantsEncoder encoder(variants_.dimensions);
    for (std::size_t s = 0; s < samples.size(); ++s)
      SLUICE_RETURN_IF_ERROR(add(s, point_of(box, variants_.dimensions, samples[s]), encoder));
    Variants listed = encoder.take();
    variants_.needed |= listed.needed;
    if (listed.forms.size() != 1)
      return refuse("decide together which nodes there are: state at most 4096 choices, so that each graph is made");
    Form form;
    if (!BoxRules(box, samples, listed.forms.front()).find(form))
      return refuse("have numbers that neither add up nor are products: state at most 4096 choices, so that each graph is made");
    variants_.forms.push_back(std::move(form));
    return {};
  }

  const MakeGraph& make_;
  std::size_t& made_;
  Variants variants_;
};

}  // namespace

Result<Variants> encode_by_axis(std::vector<Dimension> dimensions, const MakeGraph& make, std::size_t& made) {
  return AxisEncoder(std::move(dimensions), make, made).encode();
}

}  // namespace sluice::model
