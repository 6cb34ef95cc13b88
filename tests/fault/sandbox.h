// A child process that refuses itself system calls, as sandboxes do: a seccomp filter for all of its threads, and what a test does in it.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

namespace sluice::test {

/// Whether a filter can be installed here (not under every emulator and in every container).
bool has_seccomp();

/// From now on these system calls of the whole process end with `error`. What was refused stays refused.
bool refuse_calls(std::initializer_list<long> calls, int error);

/// Runs `work` in a forked child and returns what it says: empty where all was well. A child that hangs is ended by an alarm and told of,
/// one that dies too.
std::string in_child(const std::function<std::string()>& work);

}  // namespace sluice::test
