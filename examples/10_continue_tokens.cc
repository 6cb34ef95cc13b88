// A language model token by token, its past carried from one run to the next: 10_continue_tokens whole.sluice step.sluice
//
// Both are one GPT-2 with past inputs (tiny-random-gpt2), converted twice: `whole` for N tokens and no past (--dim seq_len=N --dim
// past_seq_len=0 --dim total_seq_len=N), `step` for one token and the N - 1 before it (--dim seq_len=1 --dim past_seq_len=N-1 --dim
// total_seq_len=N). The past of `step` is a window: what is present moves up by one place, and the mask hides places that hold no token
// yet.
#include "picture.h"

namespace {

constexpr std::size_t kIds = 0, kPositions = 1, kMask = 2, kFirstPast = 3, kLogits = 0, kFirstPresent = 1;

using Ids = std::vector<std::int32_t>;

void set_ids(example::Runner& model, std::size_t port, const Ids& ids) { model.set<std::int32_t>(port, ids, sluice::DType::kI32); }

/// [2, batch, heads, N, depth] without its first place: the next past.
std::vector<float> moved_up(const std::vector<float>& present, const sluice::Shape& shape) {
  const auto places = static_cast<std::size_t>(shape[3]), depth = static_cast<std::size_t>(shape[4]);
  std::vector<float> past;
  for (std::size_t head = 0; head < present.size() / (places * depth); ++head) {
    const float* first = present.data() + head * places * depth;
    past.insert(past.end(), first + depth, first + places * depth);
  }
  return past;
}

/// The logits of each token in one pass.
std::vector<float> in_one_pass(example::Runner& model, const Ids& tokens) {
  Ids positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(static_cast<std::int32_t>(i));
  set_ids(model, kIds, tokens);
  set_ids(model, kPositions, positions);
  set_ids(model, kMask, Ids(tokens.size(), 1));
  model.run();
  return model.output(kLogits);
}

/// The same, one run a token.
std::vector<float> token_by_token(example::Runner& model, const Ids& tokens, std::size_t layers) {
  std::vector<std::vector<float>> past;
  for (std::size_t i = 0; i < layers; ++i)
    past.emplace_back(static_cast<std::size_t>(model.input_shape(kFirstPast + i).element_count()), 0.0f);
  std::vector<float> logits;
  Ids mask(tokens.size(), 0);
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    mask[tokens.size() - 1 - at] = 1;
    set_ids(model, kIds, {tokens[at]});
    set_ids(model, kPositions, {static_cast<std::int32_t>(at)});
    set_ids(model, kMask, mask);
    for (std::size_t i = 0; i < layers; ++i) model.set<float>(kFirstPast + i, past[i]);
    model.run();
    const std::vector<float> next = model.output(kLogits);
    logits.insert(logits.end(), next.begin(), next.end());
    for (std::size_t i = 0; i < layers; ++i) past[i] = moved_up(model.output(kFirstPresent + i), model.shape(kFirstPresent + i));
  }
  return logits;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  example::Runner whole(argv[1]), step(argv[2]);
  const auto count = static_cast<std::size_t>(whole.input_shape(kIds)[1]);
  const auto vocabulary = static_cast<std::size_t>(whole.shape(kLogits)[2]);
  std::size_t layers = 0;
  Ids tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>((17 + 131 * i) % vocabulary));
  while (kFirstPast + layers < step.inputs()) ++layers;
  const std::vector<float> all = in_one_pass(whole, tokens), one = token_by_token(step, tokens, layers);
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    largest = std::max(largest, std::fabs(all[i]));
    difference = std::max(difference, std::fabs(all[i] - one[i]));
  }
  for (std::size_t at = 0; at < count; ++at) {
    const float* row = one.data() + at * vocabulary;
    std::printf("token %4d, most likely next %4d\n", tokens[at], static_cast<int>(std::max_element(row, row + vocabulary) - row));
  }
  std::printf("largest logit %.4f, largest difference from one pass %.1e: %s\n", largest, difference,
              difference <= 1e-5f * largest ? "the same" : "not the same");
}
