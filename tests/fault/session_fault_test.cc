// What goes wrong between a session and its file: each read fails once, the file is cut or replaced or damaged, and the session goes on.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <thread>

#include "sluice/core/file.h"
#include "sluice/engine/shared_arena.h"
#include "tests/fault/fixture.h"

namespace sluice {
namespace {

using test::Fixture;
using test::ReadMethod;
using namespace literals;

/// System calls of which the n-th read misbehaves, and with io_uring the pread that is to make up for it too.
struct FaultyReads {
  enum class Kind { kError, kShort, kInterrupted };
  static inline std::atomic<std::int64_t> reads = 0;
  static inline std::int64_t bad = -1;  // this read, counted from 0
  static inline std::int64_t also_bad = -1;
  static inline Kind kind = Kind::kError;
  static inline int error = EIO;

  static ssize_t pread(int fd, void* target, std::size_t size, std::int64_t offset) noexcept {
    const std::int64_t n = reads++;
    if (n != bad && n != also_bad) return system_file_ops().pread(fd, target, size, offset);
    if (kind == Kind::kShort) return system_file_ops().pread(fd, target, size > 4096 ? 4096 : size, offset);
    errno = kind == Kind::kInterrupted ? EINTR : error;
    return -1;
  }
  static std::int64_t arrived(std::int64_t result) noexcept {
    if (reads++ != bad) return result;
    if (kind == Kind::kShort) return std::min<std::int64_t>(result, 4096);
    return kind == Kind::kInterrupted ? -EINTR : -error;
  }

  FaultyReads() {
    ops = system_file_ops();
    ops.pread = &FaultyReads::pread;
    ops.arrived = &FaultyReads::arrived;
    reads = 0;
    bad = also_bad = -1;
    replace_file_ops(&ops);
  }
  ~FaultyReads() { replace_file_ops(nullptr); }
  FileOps ops;
};

/// Reads of which one in sixteen takes 0 to 200 ms, and the others up to 1 ms.
struct SlowReads {
  static void delay() noexcept {
    static std::atomic<std::uint32_t> count{0};
    const std::uint32_t random = (count++ * 2654435761u) >> 8;
    usleep(random % 16 == 0 ? random / 16 % 200'000 : random / 16 % 1000);
  }
  SlowReads() {
    ops = system_file_ops();
    ops.pread = [](int fd, void* target, std::size_t size, std::int64_t offset) noexcept {
      delay();
      return system_file_ops().pread(fd, target, size, offset);
    };
    ops.arrived = [](std::int64_t result) noexcept {
      delay();
      return result;
    };
    replace_file_ops(&ops);
  }
  ~SlowReads() { replace_file_ops(nullptr); }
  FileOps ops;
};

/// Reads that do not end before `release`, as on a disk that is gone.
struct StuckReads {
  static inline std::atomic<bool> stuck = false;
  static inline std::atomic<int> waiting = 0;

  StuckReads() {
    ops = system_file_ops();
    ops.pread = [](int fd, void* target, std::size_t size, std::int64_t offset) noexcept {
      ++waiting;
      stuck.wait(true);
      --waiting;
      return system_file_ops().pread(fd, target, size, offset);
    };
    replace_file_ops(&ops);
  }
  ~StuckReads() {
    release();
    replace_file_ops(nullptr);
  }
  static void begin() noexcept { stuck = true; }
  static void release() noexcept {
    stuck = false;
    stuck.notify_all();
    while (waiting > 0) usleep(100);
  }
  FileOps ops;
};

/// A run that is called off as soon as a read of it is stuck.
Status cancel_stuck_run(const Fixture& fixture, Session& session) {
  StuckReads::begin();
  std::thread caller([&] {
    while (StuckReads::waiting == 0) usleep(100);
    session.cancel();
  });
  const Status status = fixture.set_and_run(session);
  caller.join();
  return status;
}

std::int64_t reads_of_two_runs(const Fixture& fixture, ReadMethod method) {
  const FaultyReads ops;
  const auto session = fixture.create(method);
  REQUIRE(fixture.set_and_run(*session));
  REQUIRE(fixture.set_and_run(*session));
  return FaultyReads::reads;
}

}  // namespace

TEST_CASE("whichever read of the file fails, the run says so and the next is right") {
  const Fixture fixture;
  for (ReadMethod method : fixture.methods()) {
    const std::int64_t reads = reads_of_two_runs(fixture, method);
    REQUIRE(reads > 4);
    for (int error : {EIO, ENOMEM, EAGAIN}) {
      for (std::int64_t n = 0; n < reads; ++n) {
        CAPTURE(static_cast<int>(method), error, n);
        const FaultyReads ops;
        FaultyReads::bad = n;
        FaultyReads::also_bad = method == ReadMethod::kRing ? n + 1 : n;
        FaultyReads::kind = FaultyReads::Kind::kError;
        FaultyReads::error = error;
        const auto session = fixture.create(method);
        int failures = 0;
        for (int run = 0; run < 3; ++run) {
          const Status status = fixture.set_and_run(*session);
          if (!status) {
            ++failures;
            CHECK(status.error().code == ErrorCode::kIo);
            CHECK(status.error().os_error == error);
          } else {
            CHECK(fixture.right(*session));
          }
        }
        CHECK(failures == 1);
      }
    }
  }
}

TEST_CASE("short and interrupted reads change nothing") {
  const Fixture fixture;
  for (ReadMethod method : fixture.methods()) {
    const std::int64_t reads = reads_of_two_runs(fixture, method);
    for (FaultyReads::Kind kind : {FaultyReads::Kind::kShort, FaultyReads::Kind::kInterrupted}) {
      for (std::int64_t n = 0; n < reads; ++n) {
        CAPTURE(static_cast<int>(method), n);
        const FaultyReads ops;
        FaultyReads::bad = n;
        FaultyReads::kind = kind;
        const auto session = fixture.create(method);
        REQUIRE(fixture.set_and_run(*session));
        CHECK(fixture.right(*session));
      }
    }
  }
}

TEST_CASE("reads that take up to 200 ms change nothing, in single and in repeated runs") {
  const Fixture fixture;
  for (ReadMethod method : fixture.methods()) {
    for (bool repeat : {false, true}) {
      CAPTURE(static_cast<int>(method), repeat);
      const SlowReads ops;
      const auto session = fixture.create(method, repeat);
      for (int run = 0; run < 3; ++run) {
        REQUIRE(fixture.set_and_run(*session));
        REQUIRE(fixture.right(*session));
      }
    }
  }
}

TEST_CASE("an input is not written while a read that a run has left may still write there") {
  const Fixture fixture;
  const StuckReads ops;
  const auto session = fixture.create(ReadMethod::kThreads);
  REQUIRE(fixture.set_and_run(*session));
  CHECK(cancel_stuck_run(fixture, *session).error().code == ErrorCode::kCancelled);
  session->cancel();
  const Status refused = session->set_input(0, DType::kF32, std::as_bytes(std::span(fixture.toy.input)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCancelled);
  StuckReads::release();
  REQUIRE(session->set_input(0, DType::kF32, std::as_bytes(std::span(fixture.toy.input))));
  CHECK(session->run().error().code == ErrorCode::kCancelled);
  REQUIRE(fixture.set_and_run(*session));
  CHECK(fixture.right(*session));
}

TEST_CASE("a session is closed while reads of it are stuck, and what it left goes when they have ended") {
  const Fixture fixture;
  const StuckReads ops;
  for (const bool repeat : {false, true}) {
    CAPTURE(repeat);
    auto session = fixture.create(ReadMethod::kThreads, repeat);
    const std::weak_ptr<const Model> model = fixture.model;
    const auto users = model.use_count();
    REQUIRE(fixture.set_and_run(*session));
    CHECK(cancel_stuck_run(fixture, *session).error().code == ErrorCode::kCancelled);
    session.reset();
    CHECK(model.use_count() == users);  // it stayed behind with what the reads write to
    const auto other = Session::create(fixture.model, {.budget = fixture.budget, .repeat = repeat});  // another is not concerned
    REQUIRE(other);
    StuckReads::release();
    REQUIRE(fixture.set_and_run(**other));
    CHECK(fixture.right(**other));
    for (int i = 0; i < 1000 && model.use_count() > users; ++i) {
      usleep(1000);
      REQUIRE(fixture.create());
    }
    CHECK(model.use_count() == users);
  }
}

TEST_CASE("sessions of an arena wait for the stuck reads of one that was closed") {
  const Fixture fixture;
  const StuckReads ops;
  const auto arena = SharedArena::create({.budget = fixture.budget + 1_MiB});
  REQUIRE(arena);
  const auto join = [&] { return Session::create(fixture.model, {.arena = *arena, .tuning = {.read_method = ReadMethod::kThreads}}); };
  auto gone = join();
  const auto stays = join();
  REQUIRE((gone && stays));
  CHECK(cancel_stuck_run(fixture, **gone).error().code == ErrorCode::kCancelled);
  gone->reset();
  (*stays)->cancel();
  CHECK(fixture.set_and_run(**stays).error().code == ErrorCode::kCancelled);  // it would wait for the arena
  StuckReads::release();
  while (!fixture.set_and_run(**stays)) usleep(1000);  // the cancellation is of the first run
  CHECK(fixture.right(**stays));
  const auto newcomer = join();
  REQUIRE(newcomer);
  REQUIRE(fixture.set_and_run(**newcomer));
  CHECK(fixture.right(**newcomer));
}

TEST_CASE("a file that is cut while a session runs is an error of that run, never a wrong answer") {
  const std::vector<ReadMethod> methods = Fixture().methods();
  for (unsigned after_ms : {0u, 5u, 20u}) {
    for (ReadMethod method : methods) {
      const Fixture fixture;
      CAPTURE(after_ms, static_cast<int>(method));
      const SlowReads ops;
      const auto session = fixture.create(method, true);
      std::thread cutter([&] {
        usleep(after_ms * 1000);
        REQUIRE(truncate(fixture.path.str().c_str(), 8192) == 0);
      });
      int failures = 0;
      for (int run = 0; run < 3; ++run) {
        const Status status = fixture.set_and_run(*session);
        if (status) CHECK(fixture.right(*session));
        failures += !status;
        if (run == 0) cutter.join();
      }
      CHECK(failures >= 2);
    }
  }
}

TEST_CASE("a file that is cut while a session is open is an error, and mended, works again") {
  const Fixture fixture;
  const auto session = fixture.create();
  REQUIRE(fixture.set_and_run(*session));
  const Bytes size = fixture.model->file().file_size();
  for (std::uint64_t keep : {std::uint64_t{0}, std::uint64_t{4096}, size.count() / 2, size.count() - 4096}) {
    CAPTURE(keep);
    REQUIRE(truncate(fixture.path.str().c_str(), static_cast<off_t>(keep)) == 0);
    const Status cut = fixture.set_and_run(*session);
    REQUIRE_FALSE(cut);
    CHECK((cut.error().code == ErrorCode::kFileChanged || cut.error().code == ErrorCode::kChecksumMismatch));
  }
}

TEST_CASE("a file that is replaced while a session is open is an error") {
  const Fixture fixture;
  const auto session = fixture.create();
  REQUIRE(fixture.set_and_run(*session));
  const toy::ToyModel other = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 512, 10}, .seed = 9});
  REQUIRE(toy::write_toy_file(other, fixture.path.str()));
  const Status replaced = fixture.set_and_run(*session);
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().code == ErrorCode::kFileChanged);
}

TEST_CASE("one wrong bit in a weight is found by the run that reads it") {
  const Fixture fixture;
  const model::Graph& graph = fixture.model->graph();
  const int file = open(fixture.path.str().c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0);
  for (std::size_t i = 0; i < graph.stretches.size(); ++i) {
    CAPTURE(i);
    const model::Stretch& stretch = graph.stretches[i];
    const auto at = static_cast<off_t>((stretch.offset + Bytes(i * 97 % stretch.stored_size.count())).count());
    char byte = 0;
    REQUIRE(pread(file, &byte, 1, at) == 1);
    byte = static_cast<char>(byte ^ (1 << i % 8));
    REQUIRE(pwrite(file, &byte, 1, at) == 1);
    // A new opening: the old one would already see that the file was written.
    auto model = Model::open(fixture.path.str());
    REQUIRE(model);
    auto session = Session::create(*model, {.budget = fixture.budget});
    REQUIRE(session);
    const Status damaged = fixture.set_and_run(**session);
    REQUIRE_FALSE(damaged);
    CHECK(damaged.error().code == ErrorCode::kChecksumMismatch);
    byte = static_cast<char>(byte ^ (1 << i % 8));
    REQUIRE(pwrite(file, &byte, 1, at) == 1);
  }
  close(file);
}

}  // namespace sluice
