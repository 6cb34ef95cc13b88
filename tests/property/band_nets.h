// Small networks in which rows go every way that bands must follow: windows, strides, residuals, joins, skips, an attention.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/nets.h"

namespace sluice::planner {

/// Every kind of neighbour: 3x3 and 1x1, strides, depthwise, residuals in place, pooling, elementwise, dense rows.
inline model::Graph image_net() {
  NetBuilder net("image");
  TensorId x = net.conv(net.input({1, 21, 18, 3}), {.channels = 24, .kernel = 3, .stride = 2});
  x = net.conv(x, {.channels = 48});
  x = net.conv(x, {.channels = 48, .kernel = 3, .groups = 48});
  x = net.conv(x, {.channels = 24});
  TensorId y = net.conv(net.conv(x, {.channels = 40}), {.channels = 40, .kernel = 3, .groups = 40});
  x = net.conv(y, {.channels = 24, .residual = x});
  x = net.conv(net.conv(x, {.channels = 32, .kernel = 3}), {.channels = 24, .kernel = 3, .residual = x});
  x = net.pool(net.relu(net.conv(x, {.channels = 32, .kernel = 5})), 3, 2, 1);
  net.output(net.dense(net.reshape(x, {1, net.shape(x).element_count()}), 10));
  return net.finish();
}

inline model::Graph winograd_net() {
  NetBuilder net("winograd");
  TensorId x = net.conv(net.input({2, 19, 13, 16}), {.channels = 32, .kernel = 3});
  net.last_node().numeric = model::NumericClass::kWinograd4;
  x = net.conv(x, {.channels = 48, .kernel = 3});
  net.last_node().numeric = model::NumericClass::kWinograd4;
  x = net.conv(x, {.channels = 32, .kernel = 3});
  net.output(net.pool(x, 2, 2));
  return net.finish();
}

inline model::Graph row_net() {
  NetBuilder net("rows");
  const TensorId x = net.relu(net.input({1, 37, 48}));
  const TensorId hidden = net.softmax(net.dense(net.dense(x, 96), 80));
  net.output(net.binary(net.dense(hidden, 48), x));
  return net.finish();
}

/// A dense block: each layer reads all that were made before it.
inline model::Graph joining_net() {
  NetBuilder net("joins");
  std::vector<TensorId> made{net.conv(net.input({1, 19, 12, 3}), {.channels = 24, .kernel = 3})};
  for (int layer = 0; layer < 3; ++layer) {
    const TensorId all = made.size() == 1 ? made[0] : net.concat(made, 3);
    made.push_back(net.conv(net.conv(net.relu(all), {.channels = 40}), {.channels = 16, .kernel = 3}));
  }
  net.output(net.pool(net.conv(net.concat(made, 3), {.channels = 32}), 2, 2));
  return net.finish();
}

/// Maps of one size, each made of up to three before it that are put together along the channels, in windows of one row or three: parts that
/// run ahead of the rest, parts of several concatenations, and such as something else reads. `sums`: half of the convolutions add what
/// they make to one of the maps that they read, many of them in its place.
inline model::Graph random_joining_net(std::uint32_t seed, bool sums = false) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  NetBuilder net("random joins " + std::to_string(seed));
  struct Map {
    TensorId id;
    bool read = false;
  };
  std::vector<Map> maps{{net.conv(net.input({1, 13, 6, 3}), {.channels = 16, .kernel = 3})}};
  const auto concat = [&](const std::vector<std::size_t>& parts) {
    std::vector<TensorId> ids;
    for (const std::size_t i : parts) {
      ids.push_back(maps[i].id);
      maps[i].read = true;
    }
    return ids.size() == 1 ? ids[0] : net.concat(ids, 3);
  };
  for (int layer = 0; layer < 5; ++layer) {
    std::vector<std::size_t> parts{maps.size() - 1};
    for (int more = pick(0, 2); more > 0; --more) {
      const auto other = static_cast<std::size_t>(pick(0, static_cast<int>(maps.size()) - 1));
      if (std::find(parts.begin(), parts.end(), other) == parts.end()) parts.push_back(other);
    }
    std::shuffle(parts.begin(), parts.end(), random);
    const TensorId in = concat(parts);
    if (pick(0, 3) == 0) {
      maps.push_back({net.pool(in, 3, 1, 1)});
      continue;
    }
    NetBuilder::Conv conv{.channels = 8 * pick(1, 3), .kernel = 2 * pick(0, 1) + 1};
    if (sums && pick(0, 1) == 0) {
      conv.residual = maps[parts[static_cast<std::size_t>(pick(0, static_cast<int>(parts.size()) - 1))]].id;
      conv.channels = net.shape(conv.residual)[3];
    }
    maps.push_back({net.conv(in, conv)});
  }
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < maps.size(); ++i)
    if (!maps[i].read) rest.push_back(i);
  if (rest.size() == 1) rest.insert(rest.begin(), 0);
  net.output(net.pool(net.conv(concat(rest), {.channels = 16, .kernel = 3}), 2, 2));
  return net.finish();
}

/// A sum takes the place of a map that a concatenation shows where it lies, while another concatenation, which copies it, still reads it.
inline model::Graph sum_in_a_join_net() {
  NetBuilder net("a sum in a join");
  const TensorId in = net.input({1, 13, 6, 3});
  const TensorId part = net.conv(in, {.channels = 16, .kernel = 3}), beside = net.conv(in, {.channels = 8});
  const TensorId seen = net.conv(net.concat({part, beside}, 3), {.channels = 8});
  const TensorId copied = net.concat({part, seen}, 3);
  net.output(net.pool(net.conv(copied, {.channels = 16, .kernel = 3, .residual = part}), 2, 2));  // the pool for rings round the sum
  return net.finish();
}

/// An encoder and a decoder, with what the first map keeps for the last.
inline model::Graph skipping_net() {
  NetBuilder net("skips");
  const TensorId top = net.conv(net.input({1, 16, 12, 3}), {.channels = 16, .kernel = 3});
  const TensorId low = net.conv(net.pool(top, 2, 2), {.channels = 48, .kernel = 3});
  const TensorId up = net.conv_transpose(low, 16);
  net.output(net.conv(net.conv(net.concat({top, up}, 3), {.channels = 24, .kernel = 3}), {.channels = 16}));
  return net.finish();
}

/// A layer of an encoder: queries go by rows, keys and values are read whole.
inline model::Graph attending_net() {
  NetBuilder net("attends");
  const TensorId x = net.relu(net.input({1, 37, 48}));
  const TensorId k = net.dense(x, 48), v = net.dense(x, 48), q = net.dense(x, 48);
  const TensorId y = net.binary(net.dense(net.attention(q, k, v, 3), 48), x);
  net.output(net.dense(net.relu(net.dense(y, 144)), 48));
  return net.finish();
}

/// Sums of what was before, one after the other on the same bytes, each followed by a norm: `window` is that of the second sum's branch.
inline model::Graph sums_in_place_net(std::int64_t window) {
  NetBuilder net("sums in place");
  const TensorId x = net.pool(net.input({1, 22, 10, 16}), 2, 2);
  const TensorId first = net.layer_norm(net.binary(x, net.conv(net.conv(x, {.channels = 48}), {.channels = 16})));
  const TensorId branch = net.conv(net.conv(first, {.channels = 40, .kernel = window}), {.channels = 16});
  const TensorId second = net.layer_norm(net.binary(first, branch));
  net.output(net.pool(second, 2, 2));
  return net.finish();
}

}  // namespace sluice::planner
