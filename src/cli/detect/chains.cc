#include "src/cli/detect/chains.h"

#include <cstdint>
#include <protozero/pbf_writer.hpp>

namespace sluice::cli::detect {
namespace {

using protozero::pbf_writer;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kChannels = 32, kExtent = 28;
constexpr std::int64_t kOpset = 13, kIrVersion = 8;
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

class Chain {
 public:
  std::string write(const Pattern& pattern, int repeats) {
    port(11, "x");
    port(11, "z");
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (const std::string& word : pattern) add(word);
      node("separator", "Softmax", {at_}, {number("axis", 3)});
    }
    const std::string last = at_;
    at_ = "y";
    pbf_writer graph(graph_);
    graph.add_message(1, message([&](pbf_writer& w) {
                        w.add_string(1, last);
                        w.add_string(2, "y");
                        w.add_string(3, "end");
                        w.add_string(4, "Identity");
                      }));
    graph.add_string(2, "chain");
    port(12, "y");
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
  void port(std::uint32_t field, const char* name) {
    const std::string shape = message([&](pbf_writer& w) {
      for (const std::int64_t extent : {std::int64_t{1}, kChannels, kExtent, kExtent})
        w.add_message(1, message([&](pbf_writer& d) { d.add_int64(1, extent); }));
    });
    const std::string type = message([&](pbf_writer& w) {
      w.add_message(1, message([&](pbf_writer& t) {
                      t.add_int32(1, kFloat);
                      t.add_message(2, shape);
                    }));
    });
    pbf_writer(graph_).add_message(field, message([&](pbf_writer& w) {
                                     w.add_string(1, name);
                                     w.add_message(2, type);
                                   }));
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
    at_ = "t" + std::to_string(made_++);
    pbf_writer(graph_).add_message(1, message([&](pbf_writer& w) {
                                     for (const std::string& input : inputs) w.add_string(1, input);
                                     w.add_string(2, at_);
                                     w.add_string(3, word);
                                     w.add_string(4, op);
                                     for (const std::string& a : attributes) w.add_message(5, a);
                                   }));
  }

  void add(const std::string& word) {
    const std::vector<std::string> window = {ints("kernel_shape", {3, 3}), ints("pads", {1, 1, 1, 1}), ints("strides", {1, 1})};
    if (word == "conv" || word == "dwconv") {
      const std::int64_t groups = word == "conv" ? 1 : kChannels;
      std::vector<std::string> attributes = window;
      attributes.push_back(number("group", groups));
      node(word, "Conv", {at_, weight({kChannels, kChannels / groups, 3, 3}, 0), weight({kChannels}, 0)}, attributes);
    } else if (word == "bn") {
      node(word, "BatchNormalization",
           {at_, weight({kChannels}, 1), weight({kChannels}, 0), weight({kChannels}, 0), weight({kChannels}, 1)});
    } else if (word == "relu" || word == "sigmoid") {
      node(word, word == "relu" ? "Relu" : "Sigmoid", {at_});
    } else if (word == "add" || word == "mul") {
      node(word, word == "add" ? "Add" : "Mul", {at_, "z"});
    } else {
      node(word, word == "maxpool" ? "MaxPool" : "AveragePool", {at_}, window);
    }
  }

  std::string graph_;
  std::string at_ = "x";
  int made_ = 0;
};

}  // namespace

std::string chain_of(const Pattern& pattern, int repeats) { return Chain().write(pattern, repeats); }

}  // namespace sluice::cli::detect
