// How right a trained net is on its 1,000 held-out items, in whatever form it was converted:
//
//     15_measure_accuracy reader   reader.sluice   examples/models [--budget unlimited|middle|smallest|SIZE] [--threads 1]
//     15_measure_accuracy language language.sluice examples/models [...]
//
// The reader: shares of characters and of lines that are right (characters: 1 - edits / characters). The language model: perplexity over
// 128 predictions a passage. Both: the largest difference from the logits that PyTorch gave for the first items, and a checksum of all
// logits: the same bits have the same. A budget holds for the session of each shape; `smallest` is the least that works, `middle` lies
// half-way between it and what the session takes without a limit.
#include <sluice/core/hash.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "language.h"
#include "reader.h"

namespace {

constexpr const char* kUsage =
    "usage: 15_measure_accuracy reader|language MODEL.sluice FOLDER [--budget unlimited|middle|smallest|SIZE] [--threads N]";

template <class T>
T or_quit(sluice::Result<T> result) {
  if (!result) example::quit(result.error());
  return std::move(*result);
}

sluice::SessionOptions options_of(const sluice::Model& model, const example::Words& words) {
  sluice::SessionOptions options{.threads = static_cast<int>(words.number("threads", 1, 1, 64)), .repeat = true};
  const std::string budget = words.text("budget", "unlimited");
  if (budget != "smallest" && budget != "middle") {
    options.budget = words.bytes("budget");
    return options;
  }
  const sluice::Bytes least = or_quit(sluice::minimum_budget(model, options));
  if (budget == "middle") {
    const sluice::PlannedBudget unlimited = or_quit(sluice::plan_session(model, options));
    const sluice::Bytes all = unlimited.plan.arena_bytes + unlimited.overhead;
    options.budget = sluice::Bytes((least.count() + std::max(least, all).count()) / 2);
  } else {
    options.budget = least;
  }
  return options;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) example::complain(path + " cannot be read", 5);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The floats of a .npy file, which end it.
std::vector<float> golden_of(const std::string& path) {
  const std::string bytes = bytes_of(path);
  if (bytes.size() < 10 || bytes.compare(1, 5, "NUMPY") != 0) example::complain(path + " is no .npy file", 2);
  const std::size_t header = 10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  if (bytes.size() < header || bytes.find("'<f4'") > header || bytes.find("'fortran_order': False") > header)
    example::complain(path + " does not hold f32, row by row", 2);
  std::vector<float> values((bytes.size() - header) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + header, values.size() * sizeof(float));
  return values;
}

/// Compares the first logits with PyTorch's, and sums all up.
class Logits {
 public:
  explicit Logits(std::vector<float> golden) : golden_(std::move(golden)) {}

  void add(std::span<const float> logits) {
    compare(logits, compared_);
    compared_ += std::min(logits.size(), golden_.size() - compared_);
    all_.update(std::as_bytes(logits));
  }
  /// The same, without a place in the checksum.
  void compare(std::span<const float> logits, std::size_t from) {
    for (std::size_t i = 0; i < logits.size() && from + i < golden_.size(); ++i)
      difference_ = std::max(difference_, std::fabs(logits[i] - golden_[from + i]));
  }
  void print() const {
    std::printf("difference  %.1e at most from PyTorch's, of %zu logits\n", difference_, golden_.size());
    std::printf("bits        %016llx\n", static_cast<unsigned long long>(all_.digest()));
  }

 private:
  std::vector<float> golden_;
  std::size_t compared_ = 0;
  float difference_ = 0;
  sluice::Xxh3 all_;
};

/// Insertions, deletions and replacements that make `b` of `a`.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      before = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, before + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

/// reader_heldout.txt says where each item lies in reader_heldout.png, and what it says.
void measure_reader(const example::Words& words, const std::string& folder) {
  example::Reader reader(words[1], folder + "/reader_characters.txt", [&](const sluice::Model& model) { return options_of(model, words); });
  const example::Line sheet = example::grey_of(example::read_picture((folder + "/reader_heldout.png").c_str()));
  Logits all(golden_of(folder + "/reader_golden.npy"));
  std::size_t items = 0, lines = 0, characters = 0, edits = 0;
  for (const std::string& item : example::read_lines((folder + "/reader_heldout.txt").c_str())) {
    int left = 0, top = 0, width = 0, text_at = 0;
    if (std::sscanf(item.c_str(), "%d %d %d %n", &left, &top, &width, &text_at) != 3 || left < 0 || top < 0 || width < 1 ||
        left > sheet.width - width || top > sheet.height - example::kRows)
      example::complain("reader_heldout.txt: \"" + item + "\" lies in no picture", 2);
    const std::string text = item.substr(static_cast<std::size_t>(text_at));
    const std::vector<float> logits = reader.logits(example::cut(sheet, left, top, width, example::kRows));
    all.add(logits);
    const std::string read = reader.text_of(logits);
    ++items;
    lines += read == text;
    characters += text.size();
    edits += distance(text, read);
  }
  std::printf("items       %zu of %zu characters\n", items, characters);
  std::printf("characters  %.2f %%\n", 100 - 100.0 * static_cast<double>(edits) / static_cast<double>(characters));
  std::printf("lines       %.2f %%\n", 100.0 * static_cast<double>(lines) / static_cast<double>(items));
  all.print();
}

/// What it costs to be told `next` where `logits` were expected, in nats.
double surprise(const float* logits, char next) {
  const float most = *std::max_element(logits, logits + example::kTokens);
  double sum = 0;
  for (std::size_t i = 0; i < example::kTokens; ++i) sum += std::exp(static_cast<double>(logits[i] - most));
  return std::log(sum) + static_cast<double>(most - logits[static_cast<unsigned char>(next)]);
}

/// language_heldout.txt is passages of kChunk + 1 characters, one behind the other.
void measure_language(const example::Words& words, const std::string& folder) {
  const auto model = example::open_language(words[1], {{"S", example::kChunk}, {"P", 0}});
  example::Runner chunk(model, options_of(*model, words));
  const std::string text = bytes_of(folder + "/language_heldout.txt");
  Logits all(golden_of(folder + "/language_golden.npy"));
  constexpr std::size_t kPassage = example::kChunk + 1;
  double sum = 0;
  const std::size_t passages = text.size() / kPassage;
  for (std::size_t at = 0; at < passages * kPassage; at += kPassage) {
    const std::vector<float> logits = example::logits_of(chunk, text.substr(at, example::kChunk));
    all.add(logits);
    for (std::size_t i = 0; i < example::kChunk; ++i) sum += surprise(logits.data() + i * example::kTokens, text[at + i + 1]);
  }
  // The first passage again, token by token.
  const auto stepwise = example::open_language(words[1], {{"S", 1}, {"P", example::kWindow}});
  example::Continuation continuation(example::Runner(stepwise, options_of(*stepwise, words)));
  for (std::size_t i = 0; i < example::kChunk; ++i) all.compare(continuation.next(text[i]), i * example::kTokens);
  std::printf("items       %zu passages of %zu characters\n", passages, kPassage);
  std::printf("perplexity  %.4f\n", std::exp(sum / static_cast<double>(passages * example::kChunk)));
  all.print();
}

}  // namespace

int main(int argc, char** argv) {
  const example::Words words(argc, argv, 3, {"budget", "threads"}, kUsage);
  if (words[0] == "reader") {
    measure_reader(words, words[2]);
  } else if (words[0] == "language") {
    measure_language(words, words[2]);
  } else {
    example::complain(kUsage);
  }
}
