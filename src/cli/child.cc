#include "src/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>

#include "src/cli/failure.h"
#include "src/cli/leftovers.h"
#include "src/cli/text.h"

extern char** environ;

namespace sluice::cli {
namespace {

/// The pipe of one of a child's outputs.
struct Pipe {
  int read_end = -1, write_end = -1;

  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) raise(make_io_error("pipe", "no pipe to a program can be made", errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(read_end);
    close_writing();
  }
  void close_writing() {
    if (write_end >= 0) ::close(write_end);
    write_end = -1;
  }
};

/// Reads both pipes to their ends, whichever has something, so that neither fills up.
void drain(Pipe& first, std::string& first_text, Pipe& second, std::string& second_text) {
  std::array<pollfd, 2> waiting = {pollfd{first.read_end, POLLIN, 0}, pollfd{second.read_end, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&first_text, &second_text};
  std::array<char, 16384> buffer;  // of a stack that may be small (guarded_main.cc)
  for (int open = 2; open > 0;) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      const ssize_t got = ::read(waiting[i].fd, buffer.data(), buffer.size());
      if (got > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      if (got > 0 || (got < 0 && errno == EINTR)) continue;
      waiting[i].fd = -1;
      --open;
    }
  }
}

/// `leftover`: until the child's number may be another's.
int status_of(pid_t child, std::optional<LeftoverChild>& leftover) {
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  leftover.reset();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ChildResult run_program(const std::string& path, std::string name, const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments = {name.data()};
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  Pipe output, error;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output.write_end, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, error.write_end, STDERR_FILENO);
  ChildResult result;
  pid_t child = 0;
  std::optional<LeftoverChild> leftover;
  const auto start = std::chrono::steady_clock::now();
  int refused = 0;
  {
    const SignalsHeld held;
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &held.before());
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    refused = ::posix_spawn(&child, path.c_str(), &actions, &attributes, arguments.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (refused == 0) leftover.emplace(child);
  }
  if (refused != 0) raise(make_io_error(path, "the program cannot be started; it belongs beside this one", refused));
  output.close_writing();
  error.close_writing();
  drain(output, result.output, error, result.error);
  result.status = status_of(child, leftover);
  result.wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

ChildResult run_self(const std::vector<std::string>& words) { return run_program("/proc/self/exe", "sluice", words); }

void check_succeeded(const ChildResult& result) {
  if (result.status == 0) return;
  std::string text = result.error;
  for (const std::string_view prefix : {"sluice: ", "sluice-convert: "})
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  while (text.ends_with('\n')) text.pop_back();
  if (text.empty()) text = fmt::format("a run ended with status {}", result.status);
  throw Failure(code_of_status(result.status), text);
}

Json json_of_self(const std::vector<std::string>& words) {
  const ChildResult result = run_self(words);
  check_succeeded(result);
  Json json = Json::parse(result.output, nullptr, false);
  if (json.is_discarded()) throw Failure(ErrorCode::kInternal, "a run printed no JSON");
  return json;
}

}  // namespace sluice::cli
