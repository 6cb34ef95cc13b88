#include "src/cli/image.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "src/cli/failure.h"
#include "src/cli/inputs.h"
#include "src/cli/outputs.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

/// A grey PNG of 8 bits, its zlib stream one stored block; the reader looks at no checksum.
std::string grey_png(const TemporaryFolder& folder, int width, int height, const std::vector<std::uint8_t>& pixels) {
  const auto big = [](std::uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
  };
  const auto chunk = [&](const std::string& type, const std::string& data) {
    return big(static_cast<std::uint32_t>(data.size())) + type + data + big(0);
  };
  std::string rows;
  for (int y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + y * width, static_cast<std::size_t>(width));
  }
  const auto size = static_cast<char>(rows.size());
  REQUIRE(rows.size() < 128);
  const std::string stream = std::string("\x78\x01\x01") + size + '\0' + static_cast<char>(~size) + '\xff' + rows + big(0);
  const std::string path = folder.path("grey.png");
  std::ofstream(path, std::ios::binary) << "\x89PNG\r\n\x1a\n"
                                        << chunk("IHDR", big(static_cast<std::uint32_t>(width)) + big(static_cast<std::uint32_t>(height)) +
                                                             std::string("\x08\0\0\0\0", 5))
                                        << chunk("IDAT", stream) << chunk("IEND", "");
  return path;
}

std::vector<float> loaded(const std::string& path, ImageFit fit) {
  const HostTensor tensor = load_image(path, {.shape = Shape{1, 1, 4, 4}, .dtype = DType::kF32, .rule = {}, .fit = fit});
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

}  // namespace

TEST_CASE("a chunk that claims more than a picture of its size can hold is refused before there is memory for it") {
  const TemporaryFolder folder;
  const std::string path = grey_png(folder, 4, 3, std::vector<std::uint8_t>(12, 9));
  CHECK_NOTHROW(loaded(path, ImageFit::kStretch));
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  bytes[bytes.find("IDAT") - 4] = '\x20';  // half a GiB
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK_THROWS_WITH(loaded(path, ImageFit::kStretch), Catch::Contains("holds more than its size says"));
}

TEST_CASE("a picture of other proportions is cut, stretched or put between bars") {
  const TemporaryFolder folder;
  // Eight columns of four rows: 0 in the left half, 200 in the right.
  std::vector<std::uint8_t> pixels(32);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = i % 8 < 4 ? 0 : 200;
  const std::string path = grey_png(folder, 8, 4, pixels);
  const std::vector<float> cut = loaded(path, ImageFit::kCrop), stretched = loaded(path, ImageFit::kStretch),
                           boxed = loaded(path, ImageFit::kLetterbox);
  CHECK(cut == std::vector<float>{0, 0, 200, 200, 0, 0, 200, 200, 0, 0, 200, 200, 0, 0, 200, 200});
  for (std::size_t row = 0; row < 16; row += 4) {
    CHECK(stretched[row] == 0);
    CHECK(stretched[row + 1] == 25);  // the triangle's outermost eighth lies over the edge
    CHECK(stretched[row + 2] == 175);
    CHECK(stretched[row + 3] == 200);
    const bool bar = row == 0 || row == 12;
    for (std::size_t x = 0; x < 4; ++x) CHECK(boxed[row + x] == (bar ? 114.0f : stretched[row + x]));
  }
  CHECK(fit_of("stretch") == ImageFit::kStretch);
  CHECK(fit_of("letterbox") == ImageFit::kLetterbox);
}

TEST_CASE("resizing keeps a constant and a whole picture") {
  const std::vector<std::uint8_t> grey(40 * 30, 77);
  for (const float value : resize_window(grey, {40, 30, 1, 17, 53, 2, 3, 11, 47})) CHECK(value == 77.0f);
  std::vector<std::uint8_t> picture(6 * 4 * 3);
  for (std::size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<std::uint8_t>(i * 3);
  const std::vector<float> same = resize_window(picture, {6, 4, 3, 6, 4, 0, 0, 6, 4});
  for (std::size_t i = 0; i < picture.size(); ++i) CHECK(same[i] == static_cast<float>(picture[i]));
}

TEST_CASE("halving weights its four neighbours 1 3 3 1 over 8") {
  const std::vector<std::uint8_t> row = {0, 0, 80, 160, 0, 0, 0, 0};
  const std::vector<float> half = resize_window(row, {8, 1, 1, 4, 1, 0, 0, 4, 1});
  CHECK(half[1] == (0 + 3 * 80 + 3 * 160 + 0) / 8);
  CHECK(half[2] == 160 / 8);
}

TEST_CASE("a window is a part of the whole") {
  std::vector<std::uint8_t> picture(31 * 23);
  for (std::size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<std::uint8_t>((i * 37) % 251);
  const std::vector<float> whole = resize_window(picture, {31, 23, 1, 12, 9, 0, 0, 12, 9});
  const std::vector<float> part = resize_window(picture, {31, 23, 1, 12, 9, 3, 2, 5, 4});
  for (std::int64_t y = 0; y < 4; ++y)
    for (std::int64_t x = 0; x < 5; ++x)
      CHECK(part[static_cast<std::size_t>(y * 5 + x)] == whole[static_cast<std::size_t>((y + 2) * 12 + x + 3)]);
}

TEST_CASE("the place of channels is read from the shape") {
  CHECK_FALSE(image_layout(Shape{1, 3, 224, 224})->channels_last);
  CHECK(image_layout(Shape{1, 224, 200, 3})->channels_last);
  CHECK(image_layout(Shape{1, 224, 200, 3})->width == 200);
  CHECK(image_layout(Shape{1, 28, 28})->channels == 1);
  CHECK_FALSE(image_layout(Shape{2, 3, 8, 8}));
  CHECK_FALSE(image_layout(Shape{1, 1000}));
  CHECK_FALSE(image_layout(Shape{1, 3, 0, 8}));
}

TEST_CASE("presets, metadata and overrides apply in this order") {
  const ImageLayout layout{224, 224, 3, false};
  model::Preprocess metadata;
  metadata.bgr = true;
  metadata.scale = 0.5f;
  CHECK(preprocessing({}, metadata, layout).scale == 0.5f);
  ImageOptions options;
  options.preset = "imagenet";
  CHECK(preprocessing(options, metadata, layout).resize_short_side == 256);
  CHECK_FALSE(preprocessing(options, metadata, layout).bgr);
  options.scale = 2.0f;
  options.mean = {1, 2, 3};
  CHECK(preprocessing(options, metadata, layout).scale == 2.0f);
  CHECK(preprocessing(options, metadata, layout).mean[2] == 3.0f);
  options.preset = "other";
  CHECK_THROWS_AS(preprocessing(options, metadata, layout), Failure);
}

TEST_CASE("arguments find their ports") {
  std::vector<model::Port> ports(3);
  ports[0].name = "a";
  ports[1].name = "b=c";
  ports[2].name = "d";
  const auto assigned = assign_ports({"x.npy", "a=y.npy", "./z=1.npy"}, ports, "--input");
  REQUIRE(assigned.size() == 3);
  CHECK((assigned[0].port == 0 && assigned[0].value == "y.npy"));
  CHECK((assigned[1].port == 1 && assigned[1].value == "x.npy"));
  CHECK((assigned[2].port == 2 && assigned[2].value == "./z=1.npy"));
  CHECK_THROWS_WITH(assign_ports({"z=1.npy"}, ports, "--input"), Catch::Contains("no 'z' (it has 'a' [], 'b=c' [], 'd' [])"));
  CHECK(assign_ports({"b=c=x"}, ports, "--input")[0].port == 1);
  CHECK_THROWS_AS(assign_ports({"a=x", "a=y"}, ports, "--input"), Failure);
  CHECK_THROWS_AS(assign_ports({"1", "2", "3", "4"}, ports, "--input"), Failure);
}

TEST_CASE("random inputs depend on the seed alone") {
  const Shape shape{2, 50};
  CHECK(random_tensor(DType::kF32, shape, 1).data == random_tensor(DType::kF32, shape, 1).data);
  CHECK(random_tensor(DType::kF32, shape, 1).data != random_tensor(DType::kF32, shape, 2).data);
  const HostTensor random = random_tensor(DType::kF32, shape, 3);
  for (const float value : random.as<float>()) CHECK((value >= -1.0f && value < 1.0f));
}

TEST_CASE("the largest values come first, ties by index, NaN last") {
  HostTensor tensor = make_host_tensor(DType::kF32, Shape{6});
  const float values[] = {1.0f, 3.0f, std::nanf(""), 3.0f, -1.0f, 2.0f};
  std::copy(std::begin(values), std::end(values), tensor.as<float>().begin());
  const auto indices = [&](std::size_t count) {
    std::vector<std::size_t> list;
    for (const TopEntry& entry : top_values(pieces_of(tensor), count)) list.push_back(entry.index);
    return list;
  };
  CHECK(indices(3) == std::vector<std::size_t>{1, 3, 5});
  CHECK(indices(9) == std::vector<std::size_t>{1, 3, 5, 0, 4, 2});
  CHECK(indices(0).empty());
}

TEST_CASE("file names of outputs stay in their folder") {
  CHECK(file_name_of("prob_1") == "prob_1");
  CHECK(file_name_of("../../etc/x") == "_.._.._etc_x");
  CHECK(file_name_of("") == "_");
  CHECK(file_name_of(".hidden") == "_.hidden");
}
