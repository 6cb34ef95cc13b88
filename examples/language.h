// What the trained language model (examples/training) wants around it: a past that moves on.
//
// Converted with --dim S=1,128 --dim P=0,127 --dim T=S+P one file takes a token with the 127 before it, or 128 tokens at once. The past is
// a window: what is present moves up by one place, and `valid` hides places that no token has filled yet.
#pragma once

#include "options.h"
#include "picture.h"

namespace example {

constexpr int kChunk = 128, kWindow = 127;
constexpr std::size_t kTokens = 128;  // ASCII

constexpr std::size_t kIdsPort = 0, kValidPort = 1, kPastPort = 2;  // inputs
constexpr std::size_t kLogitsPort = 0, kPresentPort = 1;            // outputs

inline std::shared_ptr<const sluice::Model> open_language(const std::string& path, const sluice::model::Extents& dims) {
  const auto any = Runner::open(path.c_str());
  const auto& graph = any->graph();
  const bool fits = graph.inputs.size() > kPastPort && graph.outputs.size() + 1 == graph.inputs.size() &&
                    graph.outputs[kLogitsPort].onnx_shape.rank() == 3 &&
                    graph.outputs[kLogitsPort].onnx_shape[2] == static_cast<std::int64_t>(kTokens);
  if (!fits) complain(path + " is not the language model of examples/training", 2);
  const bool is_so_already = graph.inputs[kIdsPort].onnx_shape[1] == dims.at("S") && graph.inputs[kPastPort].onnx_shape[2] == dims.at("P");
  if (is_so_already) return any;
  auto model = any->with_dims(dims);
  if (!model) quit(model.error());
  return *model;
}

/// All logits of a text that has no past, [kChunk, kTokens]; the text has kChunk characters.
inline std::vector<float> logits_of(Runner& chunk, const std::string& text) {
  chunk.set<std::int64_t>(kIdsPort, std::vector<std::int64_t>(text.begin(), text.end()), sluice::DType::kI64);
  chunk.set<float>(kValidPort, std::vector<float>(text.size(), 1.0f));
  chunk.run();
  return chunk.output(kLogitsPort);
}

/// One token after the other. The session has S = 1 and P = kWindow.
class Continuation {
 public:
  explicit Continuation(Runner session) : session_(std::move(session)), valid_(kWindow + 1, 0.0f) {
    for (std::size_t port = kPastPort; port < session_.inputs(); ++port)
      past_.emplace_back(static_cast<std::size_t>(session_.input_shape(port).element_count()), 0.0f);
  }

  /// The logits of what follows.
  std::vector<float> next(char token) {
    const std::int64_t id = static_cast<unsigned char>(token);
    std::rotate(valid_.begin(), valid_.begin() + 1, valid_.end());
    valid_.back() = 1.0f;
    session_.set<std::int64_t>(kIdsPort, std::span(&id, 1), sluice::DType::kI64);
    session_.set<float>(kValidPort, valid_);
    for (std::size_t i = 0; i < past_.size(); ++i) session_.set<float>(kPastPort + i, past_[i]);
    session_.run();
    for (std::size_t i = 0; i < past_.size(); ++i) move_up(session_.output(kPresentPort + i), past_[i]);
    return session_.output(kLogitsPort);
  }

 private:
  /// Of each head, [kWindow + 1, depth] without its first place.
  void move_up(const std::vector<float>& present, std::vector<float>& past) const {
    const auto depth = static_cast<std::size_t>(session_.input_shape(kPastPort)[3]), kept = kWindow * depth;
    for (std::size_t head = 0; (head + 1) * kept <= past.size(); ++head)
      std::copy_n(present.data() + head * (kept + depth) + depth, kept, past.data() + head * kept);
  }

  Runner session_;
  std::vector<float> valid_;
  std::vector<std::vector<float>> past_;
};

}  // namespace example
