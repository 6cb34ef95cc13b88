#include "src/cli/key.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "sluice/core/file.h"
#include "src/cli/failure.h"

namespace sluice::cli {
namespace {

using KeyBytes = std::span<std::byte, model::kKeyBytes>;

Status read_file_into(const std::string& path, KeyBytes key) {
  SLUICE_ASSIGN_OR_RETURN(const FileDescriptor file, open_for_reading(path));
  FileState state;
  if (file_ops().state(file.get(), &state) != 0) return fail(make_io_error(path, "the key's file cannot be examined", errno));
  if (state.size != Bytes(key.size()))
    return fail(make_error(ErrorCode::kWrongKey, path, "a key's file holds its bytes and nothing else", key.size(), state.size.count()));
  for (std::size_t done = 0; done < key.size();) {
    const std::int64_t got = file_ops().pread(file.get(), key.data() + done, key.size() - done, static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(make_io_error(path, "the key's file cannot be read", got < 0 ? errno : EIO));
    done += static_cast<std::size_t>(got);
  }
  return {};
}

/// Reads a file from its beginning, so that the programs that this one starts can read the key, too; a pipe from where it is.
Status read_descriptor_into(const std::string& number, KeyBytes key) {
  const std::string place = "fd:" + number;
  int fd = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), fd);
  if (error != std::errc() || end != number.data() + number.size() || fd < 0)
    return fail(ErrorCode::kInvalidArgument, place, "--key fd:N wants the number of an open descriptor");
  const bool seekable = ::lseek(fd, 0, SEEK_CUR) >= 0;
  for (std::size_t done = 0; done < key.size();) {
    const std::span<std::byte> rest = key.subspan(done);
    const ssize_t got = seekable ? ::pread(fd, rest.data(), rest.size(), static_cast<off_t>(done)) : ::read(fd, rest.data(), rest.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(make_io_error(place, "the key cannot be read", errno));
    if (got == 0) return fail(make_error(ErrorCode::kWrongKey, place, "the descriptor ends before the key does", key.size(), done));
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Status read_variable_into(const std::string& name, KeyBytes key) {
  const char* const text = std::getenv(name.c_str());
  if (text == nullptr) return fail(ErrorCode::kWrongKey, name, "the variable that should have the key is not set");
  const std::size_t length = std::strlen(text);
  if (length != 2 * key.size())
    return fail(make_error(ErrorCode::kWrongKey, name, "a variable has a key as hex digits, two for each byte", 2 * key.size(), length));
  for (std::size_t i = 0; i < key.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text + 2 * i;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2)
      return fail(ErrorCode::kWrongKey, name, "a character of the key is no hex digit");
    key[i] = static_cast<std::byte>(value);
  }
  return {};
}

}  // namespace

model::KeyCallback key_at(const std::string& place) {
  if (place.empty()) return {};
  return [place](KeyBytes key) -> Status {
    if (place.starts_with("fd:")) return read_descriptor_into(place.substr(3), key);
    if (place.starts_with("env:")) return read_variable_into(place.substr(4), key);
    return read_file_into(place, key);
  };
}

model::Key read_key_file(const std::string& path) {
  model::Key key;
  unwrap(read_file_into(path, key.bytes()));
  return key;
}

}  // namespace sluice::cli
