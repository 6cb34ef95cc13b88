#include "src/cli/detect/patterns.h"

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <utility>

namespace sluice::cli::detect {
namespace {

using protozero::pbf_writer;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kChannels = 16, kExtent = 40;
constexpr std::int64_t kOpset = 14, kIrVersion = 8;
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
  std::string write(const Pattern& pattern, int repeats) {
    port(11, "x", kExtent);
    port(11, "z", kExtent);
    convolution("stem", 1, 1);
    separate();
    for (int repeat = 0; repeat < repeats; ++repeat) {
      if (pattern.form == Form::kFork)
        add_fork(pattern.words);
      else if (pattern.form == Form::kJoin)
        add_join(pattern.words);
      else
        for (const std::string& word : pattern.words) add(word);
      separate();
    }
    const std::string last = at_;
    at_ = "y";
    pbf_writer graph(graph_);
    graph.add_message(1, message([&](pbf_writer& w) {
                        w.add_string(1, last);
                        w.add_string(2, "y");
                        w.add_string(3, "end.0");
                        w.add_string(4, "GlobalAveragePool");  // so that what comes out is small
                      }));
    graph.add_string(2, "chain");
    port(12, "y", 1);
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
  void port(std::uint32_t field, const char* name, std::int64_t extent) {
    const std::string shape = message([&](pbf_writer& w) {
      for (const std::int64_t dim : {std::int64_t{1}, kChannels, extent, extent})
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

  void separate(const char* op = "Softmax") { node("separator", op, {at_}, {number("axis", 1)}); }

  void convolution(const std::string& word, std::int64_t kernel, std::int64_t groups) {
    const std::int64_t pad = kernel / 2;
    node(word, "Conv", {at_, weight({kChannels, kChannels / groups, kernel, kernel}, 0), weight({kChannels}, 0)},
         {ints("kernel_shape", {kernel, kernel}), ints("pads", {pad, pad, pad, pad}), number("group", groups)});
  }

  void add_fork(const std::vector<std::string>& words) {
    if (!words.empty()) add(words[0]);
    const std::string shared = at_;
    if (words.size() > 1) add(words[1]);
    separate();
    const std::string through = std::exchange(at_, shared);
    separate("LogSoftmax");
    node("merge", "Add", {through, at_});
  }

  void add_join(const std::vector<std::string>& words) {
    const std::string start = at_;
    if (words.size() > 1) add(words[0]);
    const std::string first = std::exchange(at_, start);
    separate("LogSoftmax");
    if (words.size() > 1) add(words[1]);
    const std::string second = std::exchange(at_, first);
    add(words.back(), second);
  }

  void add(const std::string& word) { add(word, "z"); }
  void add(const std::string& word, const std::string& second) {
    if (word == "conv" || word == "dwconv") {
      convolution(word, 3, word == "conv" ? 1 : kChannels);
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

  std::string graph_;
  std::string at_ = "x";
  int made_ = 0;
};

}  // namespace

const char* name_of(Form form) {
  constexpr std::array<const char*, 3> kNames = {"chain", "fork", "join"};
  return kNames[static_cast<std::size_t>(form)];
}

bool joins(std::string_view word) { return word == "add" || word == "mul"; }

std::string model_of(const Pattern& pattern, int repeats) { return Writer().write(pattern, repeats); }

}  // namespace sluice::cli::detect
