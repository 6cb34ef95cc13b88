// Models that do not lie in a file of their own, and tensors that are written and read where they lie.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "sluice/core/file.h"
#include "tests/engine/fixture.h"

namespace sluice {
namespace {

using namespace literals;

std::vector<std::byte> bytes_of(const Fixture& fixture) {
  auto bytes = read_file(fixture.path.str(), 64_MiB);
  REQUIRE(bytes);
  return std::move(*bytes);
}

/// The right bits in the smallest budget, where all weights are streamed, and with all of it.
void check_runs(const Fixture& fixture, const std::shared_ptr<const Model>& model) {
  const auto minimum = minimum_budget(*model, {});
  REQUIRE(minimum);
  for (const Bytes budget : {*minimum, kUnlimitedBytes}) {
    auto session = Session::create(model, {.budget = budget, .repeat = true});
    REQUIRE(session);
    for (int i = 0; i < 3; ++i) REQUIRE(fixture.run(**session).value_or(false));
  }
}

/// A program's own way to read, which brings odd pieces.
struct Pieces {
  std::vector<std::byte> bytes;
  std::atomic<int> reads = 0;
  int fail_from = -1;

  static std::int64_t read(void* self, std::uint64_t offset, void* target, std::size_t size) {
    Pieces& pieces = *static_cast<Pieces*>(self);
    const int number = pieces.reads++;
    if (pieces.fail_from >= 0 && number >= pieces.fail_from) return -1;
    const std::size_t some = std::min<std::size_t>(size, 4099);
    std::memcpy(target, pieces.bytes.data() + offset, some);
    return static_cast<std::int64_t>(some);
  }
};

}  // namespace

TEST_CASE("a model in memory runs like one in a file") {
  const Fixture fixture;
  const std::vector<std::byte> bytes = bytes_of(fixture);
  const auto model = Model::open_buffer(bytes);
  REQUIRE(model);
  CHECK((*model)->file().hash() == fixture.model->file().hash());
  check_runs(fixture, *model);
  CHECK_FALSE(Session::create(*model, {.tuning = {.read_mode = model::ReadMode::kDirect}}));
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}, bytes.size() / 2})
    CHECK_FALSE(Model::open_buffer(std::span(bytes).first(size)));
}

TEST_CASE("a model in a part of a file runs, wherever it begins, after the caller has closed the file") {
  const Fixture fixture;
  const std::vector<std::byte> bytes = bytes_of(fixture);
  for (const std::size_t before : {4096, 100}) {
    CAPTURE(before);
    const toy::TemporaryPath archive("archive");
    {
      std::ofstream file(archive.str(), std::ios::binary);
      file << std::string(before, 'x');
      file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      file << "and more";
    }
    const int descriptor = ::open(archive.str().c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(descriptor >= 0);
    const auto model = Model::open_part(descriptor, Bytes(before), Bytes(bytes.size()));
    CHECK_FALSE(Model::open_part(descriptor, Bytes(before), Bytes(bytes.size() + 100)));
    CHECK_FALSE(Model::open_part(descriptor, Bytes(~std::uint64_t{0} - 5), Bytes(10)));
    CHECK((::fcntl(descriptor, F_GETFL) & O_DIRECT) == 0);
    ::close(descriptor);
    REQUIRE(model);
    check_runs(fixture, *model);
  }
  CHECK_FALSE(Model::open_part(-1, Bytes(), Bytes(bytes.size())));
}

TEST_CASE("a model that the program reads by itself runs, and its failures are errors of the run") {
  const Fixture fixture;
  Pieces pieces{bytes_of(fixture)};
  const auto model = Model::open_reader({&pieces, &Pieces::read, Bytes(pieces.bytes.size())});
  REQUIRE(model);
  check_runs(fixture, *model);
  CHECK_FALSE(Model::open_reader({nullptr, nullptr, Bytes(1)}));

  auto session = Session::create(*model, {});
  REQUIRE(session);
  pieces.fail_from = pieces.reads + 1;
  const auto failed = fixture.run(**session);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kIo);
  pieces.fail_from = -1;
  CHECK(fixture.run(**session).value_or(false));
}

TEST_CASE("tensors are written and read where they lie, without a copy") {
  const Fixture fixture;
  auto session = Session::create(fixture.model, {});
  REQUIRE(session);
  for (int run = 0; run < 2; ++run) {
    const auto input = (*session)->input_in_place(0);
    REQUIRE(input);
    CHECK(input->dtype == DType::kF32);
    REQUIRE(input->shape.element_count() == static_cast<std::int64_t>(fixture.toy.input.size()));
    const std::int64_t columns = input->shape[1];
    for (std::int64_t i = 0; i < input->shape.element_count(); ++i)
      std::memcpy(input->data + i / columns * input->strides[0] + i % columns * input->strides[1],
                  &fixture.toy.input[static_cast<std::size_t>(i)], sizeof(float));
    CHECK_FALSE((*session)->output_in_place(0));
    REQUIRE((*session)->run());
    const auto output = (*session)->output_in_place(0);
    REQUIRE(output);
    for (std::int64_t i = 0; i < output->shape.element_count(); ++i) {
      float value = 0;
      std::memcpy(&value, output->data + i / output->shape[1] * output->strides[0] + i % output->shape[1] * output->strides[1],
                  sizeof value);
      REQUIRE(value == fixture.toy.expected[static_cast<std::size_t>(i)]);
    }
  }
  CHECK_FALSE((*session)->input_in_place(1));
  CHECK_FALSE((*session)->output_in_place(1));
}

TEST_CASE("a tensor in place is dense where its strides follow from its shape") {
  TensorInPlace tensor{nullptr, DType::kF32, Shape{1, 3, 4}, {999, 16, 4}};
  CHECK(tensor.dense());  // an axis of one element steps nowhere
  tensor.strides[1] = 20;
  CHECK_FALSE(tensor.dense());
}

}  // namespace sluice
