#include "src/cli/detect/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>

#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli::detect {
namespace {

using Clock = ProcessRunner::Clock;
constexpr std::size_t kMostAnswer = 4096;

[[noreturn]] void become(const std::string& command, int in, int out) {
  ::setpgid(0, 0);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  ::_exit(127);
}

/// Sleeps until a pipe can be read from or written to; false at `end`.
bool wait_for(int pipe, short event, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{pipe, event, 0};
    const int ready = left <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left));
    if (ready >= 0 || errno != EINTR) return ready != 0;
  }
}

}  // namespace

ProcessRunner::ProcessRunner(const std::string& command, double seconds_to_answer)
    : command_(command), seconds_to_answer_(seconds_to_answer) {
  ::signal(SIGPIPE, SIG_IGN);  // a runner that ends is an answer too
  std::array<int, 2> in{}, out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0) raise(make_io_error(command, "no pipe can be made", errno));
  if (::pipe2(out.data(), O_CLOEXEC) != 0) raise(make_io_error(command, "no pipe can be made", errno));
  // A runner that answers without reading what it is asked fills this pipe: whoever writes must not sleep in it.
  if (::fcntl(in[1], F_SETFL, O_NONBLOCK) != 0) raise(make_io_error(command, "the pipe to the runner cannot be set up", errno));
  child_ = ::fork();
  if (child_ < 0) raise(make_io_error(command, "the runner cannot be started", errno));
  if (child_ == 0) become(command_, in[0], out[1]);
  ::close(in[0]);
  ::close(out[1]);
  to_child_ = in[1];
  from_child_ = out[0];
}

ProcessRunner::~ProcessRunner() {
  ::close(to_child_);
  ::close(from_child_);
  ::kill(-child_, SIGTERM);
  // A runner that minds neither the end of its input nor the request is not waited for.
  constexpr int kPatience = 100;
  constexpr ::timespec kGlance{.tv_sec = 0, .tv_nsec = 10'000'000};
  for (int glance = 0; glance < kPatience; ++glance) {
    const pid_t ended = ::waitpid(child_, nullptr, WNOHANG);
    if (ended == child_ || (ended < 0 && errno != EINTR)) return;
    ::nanosleep(&kGlance, nullptr);
  }
  ::kill(-child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void ProcessRunner::write_line(const std::string& line, Clock::time_point end) {
  for (std::size_t done = 0; done < line.size();) {
    if (!wait_for(to_child_, POLLOUT, end))
      throw Failure(ErrorCode::kIo, fmt::format("{}: the runner read no path in {} s", command_, seconds_to_answer_));
    const ssize_t put = ::write(to_child_, line.data() + done, line.size() - done);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (put <= 0) throw Failure(ErrorCode::kIo, fmt::format("{}: the runner reads no more paths", command_));
    done += static_cast<std::size_t>(put);
  }
}

std::string ProcessRunner::read_line(Clock::time_point end) {
  while (pending_.find('\n') == std::string::npos) {
    if (!wait_for(from_child_, POLLIN, end))
      throw Failure(ErrorCode::kIo, fmt::format("{}: the runner gave no answer in {} s", command_, seconds_to_answer_));
    std::array<char, kMostAnswer> buffer;
    const ssize_t got = ::read(from_child_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || pending_.size() > kMostAnswer)
      throw Failure(ErrorCode::kIo, fmt::format("{}: the runner ended or answered no line", command_));
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  const std::size_t newline = pending_.find('\n');
  std::string line = pending_.substr(0, newline);
  pending_.erase(0, newline + 1);
  return line;
}

double ProcessRunner::time(const std::string& path) {
  const Clock::time_point latest =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_to_answer_));
  write_line(path + "\n", latest);
  const std::string answer = read_line(latest);
  double ms = 0;
  const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), ms);
  if (error != std::errc{} || !std::isfinite(ms) || ms <= 0)
    throw Failure(ErrorCode::kIo,
                  fmt::format("{}: the runner answered '{}' to {}, not milliseconds", command_, answer.substr(0, 100), path));
  return ms;
}

}  // namespace sluice::cli::detect
