// What the trained reader (examples/training) wants around it: a picture becomes a line of 32 rows, the line becomes ink, logits become
// text.
//
//     Picture --line_of: cut to the text, 32 rows--> Line --ink_of: ink 1, ground 0--> [1, 1, 32, W] --model--> [1, W / 4, classes] -->
//     text
//
// Everything but the trimming is also done in training (examples/training/render.py), so it must stay the same there and here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "options.h"
#include "picture.h"

namespace example {

constexpr int kRows = 32, kWidthStep = 8, kLeastWidth = 32;

/// One line of text: grey pixels, row by row.
struct Line {
  int width = 0, height = 0;
  std::vector<std::uint8_t> grey;

  int at(int x, int y) const { return grey[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)]; }
};

inline std::uint8_t to_byte(float value) { return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)); }

inline Line grey_of(const Picture& picture) {
  Line line{picture.width, picture.height, {}};
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      line.grey.push_back(to_byte(0.299f * picture.at(x, y, 0) + 0.587f * picture.at(x, y, 1) + 0.114f * picture.at(x, y, 2)));
  return line;
}

inline Line cut(const Line& from, int left, int top, int width, int height) {
  Line to{width, height, {}};
  for (int y = top; y < top + height; ++y)
    for (int x = left; x < left + width; ++x) to.grey.push_back(static_cast<std::uint8_t>(from.at(x, y)));
  return to;
}

/// Ink 1, ground 0, whichever of the two is the darker. The darkest and the lightest fiftieth of the pixels are cut off; the ground is the
/// side on which most pixels lie.
inline std::vector<float> ink_of(const Line& line) {
  std::vector<std::uint8_t> ordered = line.grey;
  std::sort(ordered.begin(), ordered.end());
  const std::size_t cut = ordered.size() / 50;
  const int low = ordered[cut], high = ordered[ordered.size() - 1 - cut], middle = ordered[ordered.size() / 2];
  std::vector<float> ink(line.grey.size(), 0.0f);
  if (low == high) return ink;
  const bool dark_ink = 2 * middle >= low + high;
  for (std::size_t i = 0; i < ink.size(); ++i) {
    const int value = dark_ink ? high - line.grey[i] : line.grey[i] - low;
    ink[i] = std::clamp(static_cast<float>(value) / static_cast<float>(high - low), 0.0f, 1.0f);
  }
  return ink;
}

/// The rows or columns between which the ink lies: those where at least a part `least` of the most inked one is inked.
inline std::pair<int, int> inked_range(const std::vector<int>& inked, double least) {
  const double wanted = least * *std::max_element(inked.begin(), inked.end());
  const auto is_inked = [&](int count) { return count > 0 && count >= wanted; };
  const auto first = std::find_if(inked.begin(), inked.end(), is_inked);
  const auto last = std::find_if(inked.rbegin(), inked.rend(), is_inked);
  return {static_cast<int>(first - inked.begin()), static_cast<int>(inked.rend() - last)};
}

/// Without the empty space around the text, but for a margin of a seventh of its height. Text is where neighbours differ, whatever the
/// light.
inline Line trimmed(const Line& line) {
  std::vector<int> steps;
  for (int y = 0; y < line.height; ++y)
    for (int x = 0; x + 1 < line.width; ++x) steps.push_back(std::abs(line.at(x + 1, y) - line.at(x, y)));
  if (steps.empty()) return line;
  std::vector<int> ordered = steps;
  std::sort(ordered.begin(), ordered.end());
  const int edge = std::max(1, ordered[ordered.size() - 1 - ordered.size() / 50] / 2);
  std::vector<int> rows(static_cast<std::size_t>(line.height)), columns(static_cast<std::size_t>(line.width - 1));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < edge) continue;
    ++rows[i / columns.size()];
    ++columns[i % columns.size()];
  }
  const auto [top, bottom] = inked_range(rows, 0.03);
  const auto [left, right] = inked_range(columns, 0.03);
  if (bottom <= top || right <= left) return line;
  const int margin = std::max(1, (bottom - top) / 7);
  const int from_x = std::max(0, left - margin), from_y = std::max(0, top - margin);
  return cut(line, from_x, from_y, std::min(line.width, right + margin) - from_x, std::min(line.height, bottom + margin) - from_y);
}

/// One row or column in `to` places, by a triangle as wide as a pixel of the smaller side, so that no pixel of a large picture is lost.
inline std::vector<float> resample(const std::vector<float>& from, int to) {
  const float scale = static_cast<float>(from.size()) / static_cast<float>(to), reach = std::max(1.0f, scale);
  std::vector<float> result;
  for (int i = 0; i < to; ++i) {
    const float centre = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const int first = static_cast<int>(std::ceil(centre - reach)), last = static_cast<int>(std::floor(centre + reach));
    float sum = 0, weights = 0;
    for (int j = first; j <= last; ++j) {
      const float weight = 1 - std::fabs(static_cast<float>(j) - centre) / reach;
      sum += weight * from[static_cast<std::size_t>(std::clamp(j, 0, static_cast<int>(from.size()) - 1))];
      weights += weight;
    }
    result.push_back(sum / weights);
  }
  return result;
}

inline Line scaled(const Line& line, int width, int height) {
  std::vector<float> wide(static_cast<std::size_t>(width) * static_cast<std::size_t>(line.height));
  for (int y = 0; y < line.height; ++y) {
    const auto row = line.grey.begin() + static_cast<std::ptrdiff_t>(y) * line.width;
    const std::vector<float> to = resample(std::vector<float>(row, row + line.width), width);
    std::copy(to.begin(), to.end(), wide.begin() + static_cast<std::ptrdiff_t>(y) * width);
  }
  Line result{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
  for (int x = 0; x < width; ++x) {
    std::vector<float> column;
    for (int y = 0; y < line.height; ++y) column.push_back(wide[static_cast<std::size_t>(y * width + x)]);
    const std::vector<float> to = resample(column, height);
    for (int y = 0; y < height; ++y) result.grey[static_cast<std::size_t>(y * width + x)] = to_byte(to[static_cast<std::size_t>(y)]);
  }
  return result;
}

/// The text of a picture as the reader takes it: 32 rows, a multiple of 8 columns. Ends the program when that is more than `most_columns`.
inline Line line_of(const Picture& picture, int most_columns) {
  const Line text = trimmed(grey_of(picture));
  const double steps = static_cast<double>(text.width) * kRows / text.height / kWidthStep;
  const double columns = std::max<double>(kLeastWidth, std::round(steps) * kWidthStep);
  if (columns > most_columns) {
    char what[160];
    std::snprintf(what, sizeof what, "the line is %.0f columns long at 32 rows, the model reads %d: cut it with --box, or convert for more",
                  columns, most_columns);
    complain(what);
  }
  return scaled(text, static_cast<int>(columns), kRows);
}

/// The trained reader at any width: one session each, made when it is first asked for.
class Reader {
 public:
  /// The options of a session, given the model at its width.
  using OptionsOf = std::function<sluice::SessionOptions(const sluice::Model&)>;

  Reader(const std::string& model, const std::string& characters, OptionsOf options_of)
      : model_(Runner::open(model.c_str())), options_of_(std::move(options_of)) {
    if (const auto lines = read_lines(characters.c_str()); !lines.empty()) characters_ = lines.front();
    const auto& graph = model_->graph();
    const bool fits = graph.inputs.size() == 1 && graph.outputs.size() == 1 && graph.inputs[0].onnx_shape.rank() == 4 &&
                      graph.inputs[0].onnx_shape[2] == kRows && graph.outputs[0].onnx_shape.rank() == 3 &&
                      graph.outputs[0].onnx_shape[2] == static_cast<std::int64_t>(characters_.size()) + 1;
    if (!fits)
      complain(model + " does not read the characters of " + characters + ": [1, 1, 32, W] in and [1, T, 1 + characters] out are wanted",
               2);
  }

  int most_columns() const { return static_cast<int>(model_->graph().inputs[0].onnx_shape[3]); }

  /// [W / 4, 1 + characters].
  std::vector<float> logits(const Line& line) {
    auto found = sessions_.find(line.width);
    if (found == sessions_.end()) {
      auto model = model_->with_dims({{"W", line.width}});
      if (!model) quit(model.error());
      found = sessions_.emplace(line.width, Runner(*model, options_of_(**model))).first;
    }
    found->second.set<float>(0, ink_of(line));
    found->second.run();
    return found->second.output(0);
  }

  /// Greedy: the best class of each step, repeats and class 0, "no character", left out.
  std::string text_of(const std::vector<float>& logits) const {
    const std::size_t classes = characters_.size() + 1;
    std::string text;
    std::size_t last = 0;
    for (auto step = logits.begin(); step != logits.end(); step += static_cast<std::ptrdiff_t>(classes)) {
      const auto best = static_cast<std::size_t>(std::max_element(step, step + static_cast<std::ptrdiff_t>(classes)) - step);
      if (best != 0 && best != last) text += characters_[best - 1];
      last = best;
    }
    return text;
  }

 private:
  std::shared_ptr<const sluice::Model> model_;
  std::string characters_;
  OptionsOf options_of_;
  std::map<int, Runner> sessions_;
};

}  // namespace example
