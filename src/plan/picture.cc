#include "sluice/plan/picture.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

namespace sluice::plan {
namespace {

// The page, in pixels.
constexpr double kLeft = 76, kTop = 56, kPlotWidth = 1180, kPlotHeight = 560;
constexpr double kLaneTop = kTop + kPlotHeight + 44, kLaneHeight = 72;
constexpr double kLegendTop = kLaneTop + kLaneHeight + 30;
constexpr double kPageWidth = kLeft + kPlotWidth + 24, kPageHeight = kLegendTop + 20;

struct Colour {
  const char* fill;
  const char* words;
};
/// By BufferKind; told apart by those who do not see red and green alike.
constexpr std::array<Colour, 7> kColours = {{{"#56b4e9", "input"},
                                             {"#0072b2", "output"},
                                             {"#a6cee3", "activation"},
                                             {"#e69f00", "weight, in use"},
                                             {"#cc79a7", "weight, transformed"},
                                             {"#009e73", "workspace"},
                                             {"#999999", "state"}}};
constexpr Colour kResident = {"#b8a16a", "weight, resident"};
constexpr Colour kWaiting = {"#fbe3b0", "weight, loading or waiting"};
constexpr const char* kGate = "#d55e00";

template <class... Values>
std::string format(const char* text, Values... values) {
  std::array<char, 512> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), text, values...);
  return std::string(buffer.data(), static_cast<std::size_t>(std::clamp<int>(size, 0, static_cast<int>(buffer.size()) - 1)));
}

std::string escaped(std::string_view name) {
  constexpr std::size_t kMost = 60;
  std::string text;
  for (const char c : name.substr(0, kMost)) {
    if (c == '<') {
      text += "&lt;";
    } else if (c == '&') {
      text += "&amp;";
    } else {
      text += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return text;
}

/// 1, 2 or 5 times a power of ten: at most ten of it make `whole`.
double tick_of(double whole) {
  double tick = 1e-3;
  for (int i = 0; tick * 10 < whole; ++i) tick *= i % 3 == 1 ? 2.5 : 2;
  return tick;
}

class Picture {
 public:
  Picture(const Plan& plan, const model::Graph& graph)
      : plan_(plan),
        graph_(graph),
        steps_(static_cast<std::int64_t>(plan.steps.size())),
        arena_(std::max<double>(1, static_cast<double>(plan.arena_bytes.count()))) {}

  std::string draw() {
    begin();
    name_buffers();
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) draw_buffer(b);
    axes();
    for (std::size_t k = 0; k < plan_.loads.size(); ++k) draw_load(k);
    legend();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  static constexpr double kMiB = 1048576;

  double x(std::int64_t step) const {
    return kLeft + kPlotWidth * static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(steps_, 1));
  }
  double y(double bytes) const { return kTop + kPlotHeight * (1 - bytes / arena_); }

  void begin() {
    svg_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    svg_ += format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n",
        kPageWidth, kPageHeight, kPageWidth, kPageHeight);
    svg_ += format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", kPageWidth, kPageHeight);
    svg_ += format("<text x=\"%.0f\" y=\"24\" font-size=\"16\">", kLeft) + escaped(graph_.name) + "</text>\n";
    svg_ += format(
        "<text x=\"%.0f\" y=\"42\">policy %s, %u thread(s): arena %.2f MiB, resident %.2f MiB, streamed %.2f MiB in %zu loads, "
        "%zu steps, predicted %.1f ms</text>\n",
        kLeft, escaped(plan_.policy).c_str(), plan_.threads, static_cast<double>(plan_.arena_bytes.count()) / kMiB,
        static_cast<double>(plan_.resident_bytes.count()) / kMiB, static_cast<double>(plan_.streamed_bytes.count()) / kMiB,
        plan_.loads.size(), plan_.steps.size(), plan_.repeat ? plan_.prediction.period_ms : plan_.prediction.cold_ms);
  }

  /// Activations are called like their first tensor, weights like the first one that a step reads there, workspaces like their node.
  void name_buffers() {
    names_.resize(plan_.buffers.size());
    uses_.resize(plan_.buffers.size());
    const auto name = [&](BufferId buffer, const std::string& text) {
      if (buffer.valid() && names_[buffer.index()].empty()) names_[buffer.index()] = escaped(text);
    };
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) name(plan_.tensors[t].buffer, graph_.tensors[t].name);
    for (const WeightOperand& operand : plan_.operands)
      if (operand.load.valid()) name(plan_.loads[operand.load.index()].target, graph_.weight(operand.weight).name);
    for (const Step& step : plan_.steps) {
      name(step.workspace, graph_.node(step.node).name);
      name(step.derived.buffer, graph_.node(step.node).name);
    }
    for (const Load& load : plan_.loads)
      if (!load.resident) uses_[load.target.index()] = load.uses;
  }

  void draw_buffer(std::size_t index) {
    const Buffer& buffer = plan_.buffers[index];
    const std::string title =
        names_[index] + format(" (%.*s): %llu bytes at %llu, steps %lld to %lld", static_cast<int>(name_of(buffer.kind).size()),
                               name_of(buffer.kind).data(), static_cast<unsigned long long>(buffer.size.count()),
                               static_cast<unsigned long long>(buffer.offset.count()), static_cast<long long>(buffer.lifetime.begin),
                               static_cast<long long>(buffer.lifetime.end));
    const StepRange life = buffer.whole_period ? StepRange{0, steps_} : buffer.lifetime;
    const StepRange uses = uses_[index];
    if (buffer.kind == BufferKind::kWeight && !uses.empty()) {
      rectangle(buffer, {life.begin, uses.begin}, kWaiting.fill, title);
      rectangle(buffer, uses, kColours[static_cast<std::size_t>(buffer.kind)].fill, title);
      gate(buffer, life.begin);
    } else {
      const bool resident = buffer.kind == BufferKind::kWeight;
      rectangle(buffer, life, resident ? kResident.fill : kColours[static_cast<std::size_t>(buffer.kind)].fill, title);
    }
  }

  /// Times before the period's first step are drawn at its end, where the next run begins.
  void rectangle(const Buffer& buffer, StepRange life, const char* fill, const std::string& title) {
    if (life.begin < 0) rectangle(buffer, {steps_ + life.begin, std::min(steps_, steps_ + life.end)}, fill, title);
    life = {std::max<std::int64_t>(life.begin, 0), std::min(life.end, steps_)};
    if (life.empty() || buffer.size == Bytes()) return;
    const auto offset = static_cast<double>(buffer.offset.count());
    const double top = y(offset + static_cast<double>(buffer.size.count()));
    const double height = y(offset) - top;
    const double width = x(life.end) - x(life.begin);
    svg_ += format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" stroke=\"#333333\" stroke-width=\"0.3\"><title>",
                   x(life.begin), top, width, height, fill) +
            title + "</title></rect>\n";
  }

  void gate(const Buffer& buffer, std::int64_t step) {
    const std::int64_t at = step < 0 ? steps_ + step : step;
    const auto offset = static_cast<double>(buffer.offset.count());
    svg_ += format("<path d=\"M%.2f %.2fV%.2f\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", x(at), y(offset),
                   y(offset + static_cast<double>(buffer.size.count())), kGate);
  }

  void draw_load(std::size_t k) {
    const Load& load = plan_.loads[k];
    if (load.resident) return;
    const double row_height = kLaneHeight / static_cast<double>(plan_.loads.size());
    const double row = kLaneTop + row_height * static_cast<double>(k);
    const auto bar = [&](std::int64_t from, std::int64_t to) {
      svg_ += format(
          "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>load %zu: %llu bytes, after %lld steps, "
          "needed by step %lld</title></rect>\n",
          x(from), row, std::max(1.0, x(to) - x(from)), std::max(0.5, 0.75 * row_height), kGate, k,
          static_cast<unsigned long long>(load.file.size.count()), static_cast<long long>(load.gate),
          static_cast<long long>(load.uses.begin));
    };
    if (load.gate < 0) bar(steps_ + load.gate, steps_);
    bar(std::max<std::int64_t>(load.gate, 0), load.uses.begin);
  }

  void axes() {
    svg_ += format("<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" stroke=\"#000000\"/>\n", kLeft, kTop,
                   kPlotWidth, kPlotHeight);
    const double mebibytes = arena_ / kMiB;
    const double tick = tick_of(mebibytes);
    for (int i = 0; i * tick <= mebibytes; ++i) {
      const double at = y(i * tick * kMiB);
      svg_ += format("<path d=\"M%.0f %.2fH%.0f\" stroke=\"#000000\"/><text x=\"%.0f\" y=\"%.2f\" text-anchor=\"end\">%g</text>\n",
                     kLeft - 4, at, kLeft, kLeft - 7, at + 4, i * tick);
    }
    svg_ += format("<text x=\"18\" y=\"%.0f\" transform=\"rotate(-90 18 %.0f)\" text-anchor=\"middle\">address in the arena, MiB</text>\n",
                   kTop + kPlotHeight / 2, kTop + kPlotHeight / 2);
    const auto every = std::max<std::int64_t>(1, static_cast<std::int64_t>(tick_of(static_cast<double>(steps_))));
    for (std::int64_t step = 0; step <= steps_; step += every) {
      svg_ += format("<path d=\"M%.2f %.0fv4\" stroke=\"#000000\"/><text x=\"%.2f\" y=\"%.0f\" text-anchor=\"middle\">%lld</text>\n",
                     x(step), kTop + kPlotHeight, x(step), kTop + kPlotHeight + 16, static_cast<long long>(step));
    }
    svg_ += format("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">steps</text>\n", kLeft + kPlotWidth / 2, kTop + kPlotHeight + 30);
    svg_ += format("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">loads</text>\n", kLeft - 7, kLaneTop + kLaneHeight / 2 + 3);
  }

  void legend() {
    double at = kLeft;
    const auto entry = [&](const Colour& colour) {
      svg_ += format(
          "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\" stroke=\"#333333\" stroke-width=\"0.3\"/>"
          "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n",
          at, kLegendTop - 10, colour.fill, at + 16, kLegendTop, colour.words);
      at += 34 + 6.2 * static_cast<double>(std::string_view(colour.words).size());
    };
    for (const Colour& colour : kColours) entry(colour);
    entry(kResident);
    entry(kWaiting);
    entry({kGate, "gate, load"});
  }

  const Plan& plan_;
  const model::Graph& graph_;
  std::int64_t steps_;
  double arena_;
  std::vector<std::string> names_;  // by buffer
  std::vector<StepRange> uses_;     // by buffer: of the streamed weight in it, else empty
  std::string svg_;
};

}  // namespace

std::string picture_of(const Plan& plan, const model::Graph& graph) { return Picture(plan, graph).draw(); }

}  // namespace sluice::plan
