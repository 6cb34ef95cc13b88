// A language model from one file: the prompt in one run, then token by token: 11_prefill_and_decode gpt2.sluice PROMPT ALL
//
// The file is a GPT-2 with past inputs (tiny-random-gpt2) whose lengths are left open, for up to 16 tokens:
//
//     sluice convert gpt2.onnx -o gpt2.sluice --dim batch_size=1 --dim seq_len=1..16 --dim past_seq_len=0,15
//       --dim total_seq_len=seq_len+past_seq_len
//
// Two sessions share it. `prefill` takes PROMPT tokens and no past; its plan is for matrices of PROMPT rows. `decode` takes one token and a
// past of 15 places, a window: what is present moves up by one place, and the mask hides places that hold no token yet. Both bring the
// same weights from the same bytes of the file. A third session takes ALL tokens in one pass, to compare.
#include "picture.h"

namespace {

constexpr std::size_t kIds = 0, kPositions = 1, kMask = 2, kFirstPast = 3, kLogits = 0, kFirstPresent = 1;

using Ids = std::vector<std::int32_t>;
using Tensors = std::vector<std::vector<float>>;  // by layer

void set_ids(example::Runner& model, std::size_t port, const Ids& ids) { model.set<std::int32_t>(port, ids, sluice::DType::kI32); }

/// The last `to` places of [2, batch, heads, from, depth], behind zeros where there are fewer.
std::vector<float> last_places(const std::vector<float>& present, std::size_t from, std::size_t to, std::size_t depth) {
  const std::size_t heads = present.size() / (from * depth), kept = std::min(from, to);
  std::vector<float> past(heads * to * depth, 0.0f);
  for (std::size_t head = 0; head < heads; ++head)
    std::copy_n(present.data() + (head * from + from - kept) * depth, kept * depth, past.data() + (head * to + to - kept) * depth);
  return past;
}

/// The logits of tokens that have no past.
std::vector<float> prefill(example::Runner& model, const Ids& tokens) {
  Ids positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(static_cast<std::int32_t>(i));
  set_ids(model, kIds, tokens);
  set_ids(model, kPositions, positions);
  set_ids(model, kMask, Ids(tokens.size(), 1));
  model.run();
  return model.output(kLogits);
}

/// The past that `model`'s last run leaves for a window of `places`.
Tensors past_of(example::Runner& model, std::size_t layers, std::size_t places) {
  Tensors past;
  for (std::size_t i = 0; i < layers; ++i) {
    const sluice::Shape& shape = model.shape(kFirstPresent + i);
    past.push_back(
        last_places(model.output(kFirstPresent + i), static_cast<std::size_t>(shape[3]), places, static_cast<std::size_t>(shape[4])));
  }
  return past;
}

/// The logits of the token at place `at`, whose past is in the window.
std::vector<float> decode(example::Runner& model, std::int32_t token, std::size_t at, const Tensors& past, std::size_t window) {
  Ids mask(window + 1, 0);
  std::fill(mask.end() - static_cast<std::ptrdiff_t>(std::min(at, window) + 1), mask.end(), 1);
  set_ids(model, kIds, {token});
  set_ids(model, kPositions, {static_cast<std::int32_t>(at)});
  set_ids(model, kMask, mask);
  for (std::size_t i = 0; i < past.size(); ++i) model.set<float>(kFirstPast + i, past[i]);
  model.run();
  return model.output(kLogits);
}

/// Of the last row.
std::int32_t most_likely(const std::vector<float>& logits, std::size_t vocabulary) {
  const auto row = logits.end() - static_cast<std::ptrdiff_t>(vocabulary);
  return static_cast<std::int32_t>(std::max_element(row, logits.end()) - row);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const int prompt = std::atoi(argv[2]), count = std::atoi(argv[3]);
  if (prompt < 1 || count <= prompt) return 1;
  const auto model = example::Runner::open(argv[1]);
  example::Runner first(model, {{"seq_len", prompt}, {"past_seq_len", 0}});
  example::Runner next(model, {{"seq_len", 1}});  // and the largest past there is
  example::Runner whole(model, {{"seq_len", count}, {"past_seq_len", 0}});
  const auto window = static_cast<std::size_t>(next.input_shape(kFirstPast)[3]);
  const auto vocabulary = static_cast<std::size_t>(next.shape(kLogits)[2]);
  const std::size_t layers = next.inputs() - kFirstPast;

  Ids tokens;
  for (std::size_t i = 0; i < static_cast<std::size_t>(prompt); ++i)
    tokens.push_back(static_cast<std::int32_t>((17 + 131 * i) % vocabulary));
  std::vector<float> logits = prefill(first, tokens);
  Tensors past = past_of(first, layers, window);
  while (tokens.size() < static_cast<std::size_t>(count)) {
    const std::size_t at = tokens.size();
    tokens.push_back(most_likely(logits, vocabulary));
    const std::vector<float> row = decode(next, tokens.back(), at, past, window);
    logits.insert(logits.end(), row.begin(), row.end());
    past = past_of(next, layers, window);
  }

  const std::vector<float> all = prefill(whole, tokens);
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    largest = std::max(largest, std::fabs(all[i]));
    difference = std::max(difference, std::fabs(all[i] - logits[i]));
  }
  std::printf("prompt of %d, then one at a time:", prompt);
  for (const std::int32_t token : tokens) std::printf(" %d", token);
  std::printf("\n%zu tokens, largest logit %.4f, largest difference from one pass %.1e: %s\n", tokens.size(), largest, difference,
              difference <= 1e-5f * largest ? "the same" : "not the same");
}
