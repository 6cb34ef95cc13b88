#include "src/cli/detect/patterns.h"

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <utility>

namespace sluice::cli::detect {
namespace {

using protozero::pbf_writer;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kChannels = 16, kHeight = 44, kWidth = 46;
constexpr std::int64_t kOpset = 17, kIrVersion = 8;
constexpr int kFloat = 1;

std::string message(auto&& fill) {
  std::string bytes;
  pbf_writer writer(bytes);
  fill(writer);
  return bytes;
}

std::string ints(const char* name, const Ints& values) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (const std::int64_t value : values) w.add_int64(8, value);
    w.add_enum(20, 7);
  });
}
std::string number(const char* name, std::int64_t value) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_int64(3, value);
    w.add_enum(20, 2);
  });
}

class Writer {
 public:
  explicit Writer(Separator separator) : separator_(separator) {}

  std::string write(const Arrangement& asked) {
    port(11, "x", kHeight, kWidth);
    port(11, "z", kHeight, kWidth);
    const std::string x = stem("x");
    second_ = stem("z");
    at_ = x;
    for (int repeat = 0; repeat < asked.repeats; ++repeat) add_pattern(asked.pattern, asked.cut);
    // The second input is read at least once, so that what brings it costs the same in all models.
    node("end", "Add", {at_, second_});
    const std::string last = at_;
    pbf_writer graph(graph_);
    graph.add_message(1, message([&](pbf_writer& w) {
                        w.add_string(1, last);
                        w.add_string(2, "y");
                        w.add_string(3, "mean.0");
                        w.add_string(4, "GlobalAveragePool");  // so that what comes out is small
                      }));
    graph.add_string(2, "pattern");
    port(12, "y", 1, 1);
    return message([&](pbf_writer& w) {
      w.add_int64(1, kIrVersion);
      w.add_message(7, graph_);
      w.add_message(8, message([&](pbf_writer& o) {
                      o.add_string(1, "");
                      o.add_int64(2, kOpset);
                    }));
    });
  }

 private:
  std::string stem(const char* input) {
    at_ = input;
    convolution("stem", 1, 1);
    separate();
    return at_;
  }

  void port(std::uint32_t field, const char* name, std::int64_t height, std::int64_t width) {
    const std::string shape = message([&](pbf_writer& w) {
      for (const std::int64_t dim : {std::int64_t{1}, kChannels, height, width})
        w.add_message(1, message([&](pbf_writer& d) { d.add_int64(1, dim); }));
    });
    const std::string type = message([&](pbf_writer& w) {
      w.add_message(1, message([&](pbf_writer& t) {
                      t.add_int32(1, kFloat);
                      t.add_message(2, shape);
                    }));
    });
    const std::string value = message([&](pbf_writer& w) {
      w.add_string(1, name);
      w.add_message(2, type);
    });
    pbf_writer(graph_).add_message(field, value);
  }

  /// Values that differ, so that nothing is folded, and are small, so that no map overflows.
  std::string weight(const Ints& dims, float around) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(around + 0.01f * static_cast<float>((i * 7 + made_) % 23 - 11));
    const std::string name = "w" + std::to_string(made_++);
    pbf_writer(graph_).add_message(5, message([&](pbf_writer& w) {
                                     for (const std::int64_t dim : dims) w.add_int64(1, dim);
                                     w.add_int32(2, kFloat);
                                     w.add_string(8, name);
                                     w.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
                                   }));
    return name;
  }

  void node(const std::string& word, const char* op, const std::vector<std::string>& inputs,
            const std::vector<std::string>& attributes = {}) {
    const std::string number = std::to_string(made_++);
    at_ = "t" + number;
    pbf_writer(graph_).add_message(1, message([&](pbf_writer& w) {
                                     for (const std::string& input : inputs) w.add_string(1, input);
                                     w.add_string(2, at_);
                                     w.add_string(3, word + "." + number);
                                     w.add_string(4, op);
                                     for (const std::string& a : attributes) w.add_message(5, a);
                                   }));
  }

  /// Each has weights of its own, so that no runtime finds the same one twice.
  void separate(int count = 1) {
    for (int i = 0; i < count; ++i) {
      const std::vector<std::string> weights = {weight({kChannels}, 1), weight({kChannels}, 0)};
      const bool of_channels = separator_ == Separator::kChannels;
      if (of_channels) node("separator", "Transpose", {at_}, {ints("perm", {0, 2, 3, 1})});
      node("separator", of_channels ? "LayerNormalization" : "InstanceNormalization", {at_, weights[0], weights[1]});
      if (of_channels) node("separator", "Transpose", {at_}, {ints("perm", {0, 3, 1, 2})});
    }
  }

  void convolution(const std::string& word, std::int64_t kernel, std::int64_t groups) {
    const std::int64_t pad = kernel / 2;
    node(word, "Conv", {at_, weight({kChannels, kChannels / groups, kernel, kernel}, 0), weight({kChannels}, 0)},
         {ints("kernel_shape", {kernel, kernel}), ints("pads", {pad, pad, pad, pad}), number("group", groups)});
  }

  void add_pattern(const Pattern& pattern, int cut) {
    if (pattern.form == Form::kFork) return add_fork(pattern.words, cut);
    if (pattern.form == Form::kJoin) return add_join(pattern.words, cut);
    const int count = static_cast<int>(pattern.words.size());
    for (int i = 0; i < count; ++i) {
      add(pattern.words[static_cast<std::size_t>(i)], second_);
      if (cut == i + 1) separate();
    }
    separate(count < 2 || cut != 0 ? 1 : 2);
  }

  void add_fork(const std::vector<std::string>& words, int cut) {
    if (!words.empty()) add(words[0], second_);
    // The side way first, so that the last reader of the shared map may write over it.
    const std::string shared = at_;
    separate();
    const std::string past = std::exchange(at_, shared);
    if (cut == 1) separate();
    if (words.size() > 1) add(words[1], second_);
    separate(cut == 0 ? 2 : 1);
    node("merge", "Add", {at_, past});
    separate();
  }

  /// The first operator stands on a way from the second input, which is alive throughout: with the other one on the same map, fusing would
  /// change how long that map lives, and so which results can be written in place.
  void add_join(const std::vector<std::string>& words, int cut) {
    const std::string way = std::exchange(at_, second_);
    const int apart = cut == 1 ? 1 : 0;
    separate();
    if (words.size() > 1) add(words[0], second_);
    separate(apart);
    const std::string first = std::exchange(at_, way);
    if (words.size() > 1) add(words[1], second_);
    separate(apart);
    add(words.back(), first);
    separate(cut == 0 ? 3 : 1);
  }

  void add(const std::string& word, const std::string& second) {
    if (word == "conv" || word == "dwconv") {
      word == "conv" ? convolution(word, 1, 1) : convolution(word, 3, kChannels);
    } else if (word == "bn") {
      node(word, "BatchNormalization",
           {at_, weight({kChannels}, 1), weight({kChannels}, 0), weight({kChannels}, 0), weight({kChannels}, 1)});
    } else if (word == "clip") {
      node(word, "Clip", {at_, weight({}, 0), weight({}, 6)});
    } else if (joins(word)) {
      node(word, word == "add" ? "Add" : "Mul", {at_, second});
    } else if (word.ends_with("pool")) {
      node(word, word == "maxpool" ? "MaxPool" : "AveragePool", {at_},
           {ints("kernel_shape", {3, 3}), ints("pads", {1, 1, 1, 1}), ints("strides", {1, 1})});
    } else {
      node(word, word == "relu" ? "Relu" : word == "hswish" ? "HardSwish" : "Sigmoid", {at_});
    }
  }

  Separator separator_;
  std::string graph_;
  std::string at_, second_;
  int made_ = 0;
};

}  // namespace

const char* name_of(Form form) {
  constexpr std::array<const char*, 3> kNames = {"chain", "fork", "join"};
  return kNames[static_cast<std::size_t>(form)];
}

const char* name_of(Separator separator) { return separator == Separator::kImage ? "image" : "channels"; }

bool joins(std::string_view word) { return word == "add" || word == "mul"; }

int cuts_of(const Pattern& pattern) { return pattern.form == Form::kChain ? static_cast<int>(pattern.words.size()) - 1 : 1; }

std::string file_name_of(const Arrangement& arrangement) {
  std::string name = std::string(name_of(arrangement.separator)) + "-" + name_of(arrangement.pattern.form);
  for (const std::string& word : arrangement.pattern.words) name += "-" + word;
  name += "-" + std::to_string(arrangement.repeats);
  const std::string how = arrangement.cut == kBare ? "bare" : arrangement.cut == 0 ? "together" : "cut" + std::to_string(arrangement.cut);
  return name + "-" + how + ".onnx";
}

std::string model_of(const Arrangement& arrangement) { return Writer(arrangement.separator).write(arrangement); }

}  // namespace sluice::cli::detect
