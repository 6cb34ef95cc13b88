// One model file for several shapes (ADR 0012): the dimensions that are bound when the file is opened, and a graph for each of their
// extents. The importer makes every one of these graphs from the ONNX file, so none of them is inferred from another.
//
//     dimensions   N: 1 4 8   S: 1 16       a point is an extent of each, the last dimension fastest: (1,1) (1,16) (4,1) ... (8,16)
//     form         graphs of one structure: one of them encoded as a header is, and the 64-bit words in which the others differ
//
//         graph    |    |    | w2 |    |    | w5 | w6 |    |        w2 and w6 are column 0, w5 is column 1
//         columns    0:  1  4  8      1:  96 384 768                a value for each point of the form
//
// Where there are more than kMaxPoints points, a form serves a box of them, a run of positions on each dimension, and its columns are told
// by axis: a value at the box's last point, and one for each position on one dimension while the others stay there (ADR 0035). The graph of
// any other point is made when it is opened:
//
//     column(n, s) = base + (n - base) + (s - base)                       adds up
//                  = (n + o) * (s + o) / (base + o) - o                   or is a product, beside a number o that does not vary
//
// All graphs share the weights of the file. Reading starts at `VariantsEncoder::add` and, for the way back, at `Variants::graph_at`.
//
// Invariants (`check` proves them; of a file nobody else sees variants that have not passed):
//  (V1) 1 to kMaxDimensions dimensions of different names, each with rising extents of 0 or more; at most kMaxPoints points, by axis
//       kMaxPointsByAxis
//  (V2) each point belongs to one form
//  (V3) the words of a form rise and lie within its graph; each has a column; each column has one value for each point, or each position
//  (V4) the last point has the largest extents, the bound: the file's own graph is of it
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/model/features.h"
#include "sluice/model/graph.h"

namespace sluice::model {

inline constexpr std::size_t kMaxDimensions = 16;
inline constexpr std::size_t kMaxPoints = 4096;  // that are listed
inline constexpr std::size_t kMaxPointsByAxis = std::size_t{1} << (sizeof(std::size_t) == 8 ? 40 : 30);
inline constexpr std::size_t kMaxBoxes = 256;

/// Extents by the name of their dimension: what a caller binds.
using Extents = std::map<std::string, std::int64_t, std::less<>>;

struct Dimension {
  std::string name;                   // as in the ONNX file; INPUT.AXIS where it has none
  std::vector<std::int64_t> extents;  // that the file has graphs for, rising; the last one is the bound
  std::int64_t extent = 0;            // of the graph that is open

  std::int64_t bound() const noexcept { return extents.back(); }
};

/// "1..8", "32..512:32", "1,4,16..64:16": as `convert --dim` takes them.
std::string extents_text(std::span<const std::int64_t> extents);

/// Points of these dimensions; nothing above kMaxPointsByAxis is counted.
std::size_t count_points(std::span<const Dimension> dimensions) noexcept;
/// The extents of a point, by dimension.
std::vector<std::int64_t> extents_at(std::span<const Dimension> dimensions, std::size_t point);
/// The point of `wanted`, and its extents into the dimensions. Dimensions that `wanted` does not name are at their bound. Errors:
/// kInvalidArgument naming the dimension and what it can be.
Result<std::size_t> bind(std::vector<Dimension>& dimensions, const Extents& wanted);

/// What a form by axis knows of one dimension.
struct FormAxis {
  std::vector<std::uint32_t> positions;  // of the dimension's extents that the box has, rising
  std::vector<std::uint64_t> values;     // column after column, by position: there, with the other dimensions at the box's last point
};

/// Graphs of one structure.
struct Form {
  static constexpr std::int64_t kAddsUp = INT64_MIN;  // in place of a column's offset

  std::vector<std::byte> graph;        // a header without weights, whole words; that of the first point, by axis of the box's last
  std::vector<std::uint32_t> points;   // served by this form; by axis none are listed
  std::vector<std::uint32_t> words;    // of `graph` that are not the same at all points
  std::vector<std::uint32_t> columns;  // of each of these words
  std::vector<std::uint64_t> values;   // column after column, by position in `points`; by axis at the box's last point
  std::vector<FormAxis> axes;          // by dimension; empty: not by axis
  std::vector<std::int64_t> offsets;   // by axis: of each column
};

struct Variants {
  std::vector<Dimension> dimensions;
  std::vector<Form> forms;
  Features needed = 0;  // of all these graphs, for the prefix; not in the header

  /// V1 to V3. `subject` names the file in errors: kInvalidModel.
  Status check(std::string_view subject) const;
  /// The graph of a point as it was encoded, in whole words. `check` has passed.
  std::vector<std::uint64_t> graph_at(std::size_t point) const;
};

/// Makes the graph of a point.
using MakeGraph = std::function<Status(std::size_t point, Graph& graph)>;

/// Variants by axis: asks `make` for the graphs along each dimension, and for some more, which have to be what those along the dimensions
/// say they are. `made` counts them. Errors: those of `make`; kUnsupported with the dimensions' names where that is not so: where two
/// dimensions decide together which nodes there are, or a number that neither adds up nor is a product.
Result<Variants> encode_by_axis(std::vector<Dimension> dimensions, const MakeGraph& make, std::size_t& made);

/// Makes variants of graphs, one point after another.
class VariantsEncoder {
 public:
  explicit VariantsEncoder(std::vector<Dimension> dimensions) { variants_.dimensions = std::move(dimensions); }
  /// Adds a point, each point once. Ids of weights in `graph` are those of the file. Errors: kUnsupported if the graph is too large.
  Status add(std::size_t point, const Graph& graph);
  Variants take();

 private:
  /// A form under construction: a word that has varied has a class; words of one class were equal at all points so far.
  struct Growing {
    std::vector<std::uint64_t> words;  // of the first point
    std::vector<std::uint32_t> points;
    std::map<std::uint32_t, std::uint32_t> class_of;  // by word; others have not varied
    std::vector<std::vector<std::uint64_t>> history;  // by class, then by position in `points`
  };
  static void append(Growing& form, const std::vector<std::uint64_t>& words);

  Variants variants_;
  std::vector<Growing> growing_;
};

}  // namespace sluice::model
