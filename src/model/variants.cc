#include "sluice/model/variants.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include "src/model/header.h"
#include "src/model/variant_values.h"

namespace sluice::model {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::vector<std::uint64_t> words_of(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> words(align_up(bytes.size(), kWord) / kWord, 0);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

std::string name_and_extents(const Dimension& dimension) { return dimension.name + " (" + extents_text(dimension.extents) + ")"; }

/// `nearest`: an extent that the model file has.
tl::unexpected<Error> unfit(const Dimension& dimension, const char* reason, std::int64_t nearest, std::int64_t wanted) {
  return fail(make_error(ErrorCode::kInvalidArgument, "dimension " + name_and_extents(dimension), reason,
                         static_cast<std::uint64_t>(nearest), static_cast<std::uint64_t>(wanted)));
}

/// The extent before `at`, or `at`, whichever differs less from what is wanted.
std::int64_t nearest_extent(const std::vector<std::int64_t>& extents, std::vector<std::int64_t>::const_iterator at, std::int64_t wanted) {
  return at != extents.begin() && wanted - at[-1] <= *at - wanted ? at[-1] : *at;
}

tl::unexpected<Error> unknown_dimension(const std::string& name, const std::vector<Dimension>& dimensions) {
  std::string subject = "dimension " + name;
  for (const Dimension& dimension : dimensions)
    subject += (&dimension == &dimensions.front() ? ", where there are " : ", ") + name_and_extents(dimension);
  return fail(ErrorCode::kInvalidArgument, subject, "the model file has no dimension of this name to bind");
}

/// How many extents from the first on have one distance.
std::size_t even_run(std::span<const std::int64_t> extents) noexcept {
  if (extents.size() < 3) return 1;
  std::size_t count = 2;
  while (count < extents.size() && extents[count] - extents[count - 1] == extents[1] - extents[0]) ++count;
  return count < 3 ? 1 : count;
}

Status check_dimensions(std::span<const Dimension> dimensions, std::string_view subject) {
  const auto invalid = [&](const char* reason) { return fail(ErrorCode::kInvalidModel, subject, reason); };
  if (dimensions.empty() || dimensions.size() > kMaxDimensions) return invalid("V1: no dimension to bind, or too many");
  std::set<std::string_view> names;
  for (const Dimension& dimension : dimensions) {
    if (dimension.name.empty() || !names.insert(dimension.name).second) return invalid("V1: a dimension has no name of its own");
    if (dimension.extents.empty() || dimension.extents.front() < 0) return invalid("V1: a dimension has no extents, or negative ones");
    if (std::adjacent_find(dimension.extents.begin(), dimension.extents.end(), std::greater_equal<>()) != dimension.extents.end())
      return invalid("V1: the extents of a dimension do not rise");
  }
  return {};
}

/// The words of a form, and its values where there are `rows` of each column.
Status check_words(const Form& form, std::size_t columns, std::size_t rows, std::string_view subject) {
  const auto invalid = [&](const char* reason) { return fail(ErrorCode::kInvalidModel, subject, reason); };
  if (form.graph.size() % kWord != 0) return invalid("V3: the graph of a form is not in whole words");
  if (form.words.size() != form.columns.size()) return invalid("V3: a word of a form has no column");
  if (std::adjacent_find(form.words.begin(), form.words.end(), std::greater_equal<>()) != form.words.end())
    return invalid("V3: the words of a form do not rise");
  if (!form.words.empty() && form.words.back() >= form.graph.size() / kWord) return invalid("V3: a word lies outside its graph");
  if (form.values.size() != columns * rows) return invalid("V3: a column has not one value for each point");
  for (const std::uint32_t column : form.columns)
    if (column >= columns) return invalid("V3: a word's column does not exist");
  return {};
}

Status check_listed(const std::vector<Form>& forms, std::size_t points, std::string_view subject) {
  const auto invalid = [&](const char* reason) { return fail(ErrorCode::kInvalidModel, subject, reason); };
  if (points > kMaxPoints) return invalid("V1: the dimensions have more points than a file may have graphs for");
  std::vector<bool> served(points, false);
  for (const Form& form : forms) {
    if (!form.axes.empty()) return invalid("V3: some forms are by axis and others are not");
    for (const std::uint32_t point : form.points) {
      if (point >= points || served[point]) return invalid("V2: a point does not exist or has two graphs");
      served[point] = true;
    }
    SLUICE_RETURN_IF_ERROR(
        check_words(form, form.points.empty() ? 0 : form.values.size() / form.points.size(), form.points.size(), subject));
  }
  if (std::find(served.begin(), served.end(), false) != served.end()) return invalid("V2: a point has no graph");
  return {};
}

bool overlap(const Form& a, const Form& b) {
  for (std::size_t d = 0; d < a.axes.size(); ++d) {
    std::vector<std::uint32_t> both;
    std::set_intersection(a.axes[d].positions.begin(), a.axes[d].positions.end(), b.axes[d].positions.begin(), b.axes[d].positions.end(),
                          std::back_inserter(both));
    if (both.empty()) return false;
  }
  return true;
}

Status check_box(const Form& form, std::span<const Dimension> dimensions, std::string_view subject) {
  const auto invalid = [&](const char* reason) { return fail(ErrorCode::kInvalidModel, subject, reason); };
  if (form.axes.size() != dimensions.size() || !form.points.empty()) return invalid("V3: some forms are by axis and others are not");
  const std::size_t columns = form.offsets.size();
  SLUICE_RETURN_IF_ERROR(check_words(form, columns, 1, subject));
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const FormAxis& axis = form.axes[d];
    if (axis.positions.empty() || axis.positions.back() >= dimensions[d].extents.size()) return invalid("V2: a box has no such position");
    if (std::adjacent_find(axis.positions.begin(), axis.positions.end(), std::greater_equal<>()) != axis.positions.end())
      return invalid("V2: the positions of a box do not rise");
    if (axis.values.size() != columns * axis.positions.size()) return invalid("V3: a column has not one value for each position");
  }
  return {};
}

/// Boxes that do not overlap, and have as many points together as there are.
Status check_by_axis(const std::vector<Form>& forms, std::span<const Dimension> dimensions, std::string_view subject) {
  const auto invalid = [&](const char* reason) { return fail(ErrorCode::kInvalidModel, subject, reason); };
  const std::size_t points = count_points(dimensions);
  if (points > kMaxPointsByAxis || forms.size() > kMaxBoxes)
    return invalid("V1: the dimensions have more points than a file may have graphs for");
  std::size_t served = 0;
  for (std::size_t f = 0; f < forms.size(); ++f) {
    SLUICE_RETURN_IF_ERROR(check_box(forms[f], dimensions, subject));
    for (std::size_t g = 0; g < f; ++g)
      if (overlap(forms[f], forms[g])) return invalid("V2: a point does not exist or has two graphs");
    std::size_t box = 1;  // no more than all points
    for (const FormAxis& axis : forms[f].axes) box *= axis.positions.size();
    served += box;
  }
  return served == points ? Status() : invalid("V2: a point has no graph");
}

/// False where the sum has no magnitude in 64 bits.
bool add(std::uint64_t value, std::int64_t offset, std::int64_t& sum) noexcept {
  return !__builtin_add_overflow(static_cast<std::int64_t>(value), offset, &sum) && sum != INT64_MIN;
}

/// By axis, a column at one point; `of_axis` has its value on each. What the file's numbers do not give is the base's: the graph is judged
/// like any other.
std::uint64_t combine(std::uint64_t base, std::int64_t offset, std::span<const std::uint64_t> of_axis) noexcept {
  if (offset == Form::kAddsUp) {
    std::uint64_t sum = base;
    for (const std::uint64_t value : of_axis) sum += value - base;
    return sum;
  }
  std::int64_t divisor = 0, product = 0, result = 0;
  if (!add(base, offset, divisor) || divisor == 0) return base;
  product = divisor;
  for (const std::uint64_t value : of_axis) {
    std::int64_t factor = 0;
    if (!add(value, offset, factor)) return base;
    const std::int64_t common = std::gcd(factor, divisor);
    if (__builtin_mul_overflow(product / (divisor / common), factor / common, &product)) return base;
  }
  return __builtin_sub_overflow(product, offset, &result) ? base : static_cast<std::uint64_t>(result);
}

/// The position of a point on the axes of a form's box; empty if it is outside.
std::vector<std::size_t> places_in(const Form& form, std::span<const Dimension> dimensions, std::size_t point) {
  std::vector<std::size_t> places(dimensions.size());
  for (std::size_t d = dimensions.size(); d-- > 0; point /= dimensions[d].extents.size()) {
    const std::vector<std::uint32_t>& positions = form.axes[d].positions;
    const auto at = std::lower_bound(positions.begin(), positions.end(), point % dimensions[d].extents.size());
    if (at == positions.end() || *at != point % dimensions[d].extents.size()) return {};
    places[d] = static_cast<std::size_t>(at - positions.begin());
  }
  return places;
}

}  // namespace

std::uint64_t value_by_axis(const Form& form, std::size_t column, std::span<const std::size_t> places) {
  std::array<std::uint64_t, kMaxDimensions> of_axis{};
  for (std::size_t d = 0; d < places.size(); ++d) of_axis[d] = form.axes[d].values[column * form.axes[d].positions.size() + places[d]];
  return combine(form.values[column], form.offsets[column], std::span(of_axis).first(places.size()));
}

std::string extents_text(std::span<const std::int64_t> extents) {
  std::string text;
  while (!extents.empty()) {
    const std::size_t run = even_run(extents);
    text += (text.empty() ? "" : ",") + std::to_string(extents.front());
    if (run > 1) text += ".." + std::to_string(extents[run - 1]);
    if (run > 1 && extents[1] - extents[0] != 1) text += ":" + std::to_string(extents[1] - extents[0]);
    extents = extents.subspan(run);
  }
  return text;
}

std::size_t count_points(std::span<const Dimension> dimensions) noexcept {
  constexpr std::size_t kMore = kMaxPointsByAxis + 1;
  std::size_t points = 1;
  for (const Dimension& dimension : dimensions)
    if (__builtin_mul_overflow(points, dimension.extents.size(), &points) || points > kMore) points = kMore;
  return points;
}

std::vector<std::int64_t> extents_at(std::span<const Dimension> dimensions, std::size_t point) {
  std::vector<std::int64_t> extents(dimensions.size());
  for (std::size_t d = dimensions.size(); d-- > 0; point /= dimensions[d].extents.size())
    extents[d] = dimensions[d].extents[point % dimensions[d].extents.size()];
  return extents;
}

Result<std::size_t> bind(std::vector<Dimension>& dimensions, const Extents& wanted) {
  for (const auto& entry : wanted) {
    const std::string& name = entry.first;
    if (dimensions.empty())
      return fail(ErrorCode::kInvalidArgument, "dimension " + name,
                  "the model file is of one shape; convert with --dim NAME=1..BOUND to choose when it is opened");
    if (std::none_of(dimensions.begin(), dimensions.end(), [&](const Dimension& d) { return d.name == name; }))
      return unknown_dimension(name, dimensions);
  }
  std::size_t point = 0;
  for (Dimension& dimension : dimensions) {
    const auto given = wanted.find(dimension.name);
    dimension.extent = given == wanted.end() ? dimension.bound() : given->second;
    if (dimension.extent < 0) return fail(ErrorCode::kInvalidArgument, "dimension " + dimension.name, "an extent is 0 or more");
    if (dimension.extent > dimension.bound())
      return unfit(dimension, "the extent is above the bound of the model file", dimension.bound(), dimension.extent);
    const auto at = std::lower_bound(dimension.extents.begin(), dimension.extents.end(), dimension.extent);
    if (*at != dimension.extent)
      return unfit(dimension, "the model file has no graph for the extent found; the nearest that it has is the one needed",
                   nearest_extent(dimension.extents, at, dimension.extent), dimension.extent);
    point = point * dimension.extents.size() + static_cast<std::size_t>(at - dimension.extents.begin());
  }
  return point;
}

Status Variants::check(std::string_view subject) const {
  SLUICE_RETURN_IF_ERROR(check_dimensions(dimensions, subject));
  const bool by_axis = !forms.empty() && !forms.front().axes.empty();
  return by_axis ? check_by_axis(forms, dimensions, subject) : check_listed(forms, count_points(dimensions), subject);
}

/// Patches the words of a form: `value(column)` for each.
template <class Value>
static std::vector<std::uint64_t> patched(const Form& form, const Value& value) {
  std::vector<std::uint64_t> words = words_of(form.graph);
  for (std::size_t i = 0; i < form.words.size(); ++i) words[form.words[i]] = value(form.columns[i]);
  return words;
}

std::vector<std::uint64_t> Variants::graph_at(std::size_t point) const {
  for (const Form& form : forms) {
    if (!form.axes.empty()) {
      const std::vector<std::size_t> places = places_in(form, dimensions, point);
      if (places.empty()) continue;
      return patched(form, [&](std::size_t column) { return value_by_axis(form, column, places); });
    }
    const auto at = std::find(form.points.begin(), form.points.end(), point);
    if (at == form.points.end()) continue;
    const auto position = static_cast<std::size_t>(at - form.points.begin());
    return patched(form, [&](std::size_t column) { return form.values[column * form.points.size() + position]; });
  }
  return {};
}

Status VariantsEncoder::add(std::size_t point, const Graph& graph) {
  Graph bare = graph;
  bare.weights.clear();
  bare.stretches.clear();
  bare.codes.clear();
  bare.tags.clear();
  bare.labels.clear();
  bare.preprocess = {};
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, encode_header(bare, nullptr));
  variants_.needed |= features_of(bare);
  const std::vector<std::uint64_t> words = words_of(bytes);
  // Graphs of one structure have one size. Those that have it by chance differ in most words, and are better off apart.
  const auto differ = [&](const Growing& form) {
    std::size_t count = 0;
    for (std::size_t w = 0; w < words.size(); ++w) count += form.words[w] != words[w];
    return count;
  };
  auto form = std::find_if(growing_.begin(), growing_.end(),
                           [&](const Growing& g) { return g.words.size() == words.size() && 2 * differ(g) <= words.size(); });
  if (form == growing_.end()) {
    growing_.push_back({words, {}, {}, {}});
    form = growing_.end() - 1;
  } else {
    append(*form, words);
  }
  form->points.push_back(static_cast<std::uint32_t>(point));
  return {};
}

/// Splits classes: words stay together as long as they have the same values. `words` is of the point that comes next.
void VariantsEncoder::append(Growing& form, const std::vector<std::uint64_t>& words) {
  const std::size_t before = form.points.size();
  constexpr std::uint32_t kNever = ~std::uint32_t{0};                                     // has not varied so far
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> made;  // {class, first value, new value}
  for (std::uint32_t w = 0; w < words.size(); ++w) {
    const auto found = form.class_of.find(w);
    if (found == form.class_of.end() && words[w] == form.words[w]) continue;
    const std::uint32_t old = found == form.class_of.end() ? kNever : found->second;
    const auto [entry, is_new] = made.try_emplace({old, form.words[w], words[w]}, old);
    if (is_new && (old == kNever || form.history[old].size() > before)) {
      std::vector<std::uint64_t> past(before, form.words[w]);
      if (old != kNever) std::copy_n(form.history[old].begin(), before, past.begin());
      entry->second = static_cast<std::uint32_t>(form.history.size());
      form.history.push_back(std::move(past));
    }
    if (is_new) form.history[entry->second].push_back(words[w]);
    form.class_of[w] = entry->second;
  }
}

Variants VariantsEncoder::take() {
  for (Growing& from : growing_) {
    Form form;
    form.graph.resize(from.words.size() * kWord);
    std::memcpy(form.graph.data(), from.words.data(), form.graph.size());
    form.points = std::move(from.points);
    for (const auto& [word, column] : from.class_of) {
      form.words.push_back(word);
      form.columns.push_back(column);
    }
    for (const auto& column : from.history) form.values.insert(form.values.end(), column.begin(), column.end());
    variants_.forms.push_back(std::move(form));
  }
  growing_.clear();
  return std::move(variants_);
}

}  // namespace sluice::model
