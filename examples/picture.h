// What the examples share: a picture in memory, read from a file, cut and resized; and a model that is opened and run.
#pragma once

#include <sluice/sluice.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace example {

/// Three channels side by side, 0 to 255.
struct Picture {
  int width = 0, height = 0;
  std::vector<float> rgb;

  float at(int x, int y, int channel) const {
    x = std::clamp(x, 0, width - 1);
    y = std::clamp(y, 0, height - 1);
    return rgb[static_cast<std::size_t>((y * width + x) * 3 + channel)];
  }
  float& at(int x, int y, int channel) { return rgb[static_cast<std::size_t>((y * width + x) * 3 + channel)]; }
};

/// Ends the program when the file is no picture (picture.cc).
Picture read_picture(const char* path);

inline Picture blank(int width, int height, float value) {
  return {width, height, std::vector<float>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, value)};
}

inline Picture cut(const Picture& from, int left, int top, int width, int height) {
  Picture to = blank(width, height, 0);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) to.at(x, y, c) = from.at(left + x, top + y, c);
  return to;
}

/// Bilinear, pixel centres at halves.
inline Picture resize(const Picture& from, int width, int height) {
  Picture to = blank(width, height, 0);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float sx = (static_cast<float>(x) + 0.5f) * static_cast<float>(from.width) / static_cast<float>(width) - 0.5f;
      const float sy = (static_cast<float>(y) + 0.5f) * static_cast<float>(from.height) / static_cast<float>(height) - 0.5f;
      const int left = static_cast<int>(std::floor(sx)), top = static_cast<int>(std::floor(sy));
      const float dx = sx - static_cast<float>(left), dy = sy - static_cast<float>(top);
      for (int c = 0; c < 3; ++c)
        to.at(x, y, c) = (1 - dy) * ((1 - dx) * from.at(left, top, c) + dx * from.at(left + 1, top, c)) +
                         dy * ((1 - dx) * from.at(left, top + 1, c) + dx * from.at(left + 1, top + 1, c));
    }
  return to;
}

/// The planes of a picture as a model's input [1, 3, height, width]; `value(pixel)` scales. Channel order blue, green, red with `bgr`.
template <class Value>
std::vector<float> planes(const Picture& picture, bool bgr, const Value& value) {
  std::vector<float> input;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < picture.height; ++y)
      for (int x = 0; x < picture.width; ++x) input.push_back(value(picture.at(x, y, bgr ? 2 - c : c)));
  return input;
}

[[noreturn]] inline void quit(const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  std::exit(sluice::exit_status(error.code));
}

/// A session with all the memory it wants, and its inputs and outputs as vectors.
class Runner {
 public:
  explicit Runner(const char* path) : Runner(open(path), sluice::model::Extents{}) {}
  /// Of a model that leaves dimensions open: with these extents.
  Runner(std::shared_ptr<const sluice::Model> model, const sluice::model::Extents& dims)
      : Runner(std::move(model), sluice::SessionOptions{.dims = dims}) {}
  Runner(std::shared_ptr<const sluice::Model> model, const sluice::SessionOptions& options) {
    auto session = sluice::Session::create(std::move(model), options);
    if (!session) quit(session.error());
    session_ = std::move(*session);
  }
  static std::shared_ptr<const sluice::Model> open(const char* path) {
    auto model = sluice::Model::open(path);
    if (!model) quit(model.error());
    return *model;
  }

  template <class T>
  void set(std::size_t port, std::span<const T> values, sluice::DType dtype = sluice::DType::kF32) {
    if (auto set = session_->set_input(port, dtype, std::as_bytes(values)); !set) quit(set.error());
  }
  void run() {
    if (auto run = session_->run(); !run) quit(run.error());
  }
  std::vector<float> output(std::size_t port) {
    std::vector<float> values(static_cast<std::size_t>(shape(port).element_count()));
    if (auto got = session_->get_output(port, std::as_writable_bytes(std::span(values))); !got) quit(got.error());
    return values;
  }
  std::size_t inputs() const { return graph().inputs.size(); }
  const sluice::Shape& shape(std::size_t port) const { return graph().outputs[port].onnx_shape; }
  const sluice::Shape& input_shape(std::size_t port) const { return graph().inputs[port].onnx_shape; }

 private:
  const sluice::model::Graph& graph() const { return session_->model().graph(); }

  std::unique_ptr<sluice::Session> session_;
};

/// A box in pixels, with what it is.
struct Box {
  float left, top, right, bottom, score;
  int label = 0;
};

inline float overlap(const Box& a, const Box& b) {
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left), height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Box& box) { return (box.right - box.left) * (box.bottom - box.top); };
  return width * height / (area(a) + area(b) - width * height);
}

/// The best boxes, of those that cover each other the best only.
inline std::vector<Box> best_boxes(std::vector<Box> boxes, float most_overlap) {
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.score > b.score; });
  std::vector<Box> kept;
  for (const Box& box : boxes)
    if (std::all_of(kept.begin(), kept.end(), [&](const Box& k) { return k.label != box.label || overlap(k, box) < most_overlap; }))
      kept.push_back(box);
  return kept;
}

inline std::vector<std::string> read_lines(const char* path) {
  std::vector<std::string> lines;
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) {
    std::fprintf(stderr, "%s cannot be read\n", path);
    std::exit(5);
  }
  std::string line;
  for (int c = 0; (c = std::fgetc(file)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    lines.push_back(line);
    line.clear();
  }
  if (!line.empty()) lines.push_back(line);
  std::fclose(file);
  return lines;
}

}  // namespace example
