// Words of the command line that the examples with the trained nets share: what stands alone, and `--name value`.
#pragma once

#include <sluice/sluice.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace example {

[[noreturn]] inline void complain(const std::string& what, int status = 1) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(status);
}

/// argv taken apart. Ends the program with `usage` when a word is missing, too many, or no option that is known.
class Words {
 public:
  Words(int argc, char** argv, std::size_t plain, const std::vector<std::string>& known, const char* usage) : usage_(usage) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word.rfind("--", 0) != 0) {
        plain_.push_back(word);
        continue;
      }
      const bool is_known = std::find(known.begin(), known.end(), word.substr(2)) != known.end();
      if (!is_known || i + 1 == argc) complain((is_known ? "a value is missing behind " : "unknown: ") + word + "\n" + usage_);
      options_[word.substr(2)] = argv[++i];
    }
    if (plain_.size() != plain) complain(usage_);
  }

  const std::string& operator[](std::size_t i) const { return plain_[i]; }
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = options_.find(name);
    return found == options_.end() ? otherwise : found->second;
  }
  /// A number in [least, most].
  double number(const std::string& name, double otherwise, double least, double most) const {
    const auto found = options_.find(name);
    if (found == options_.end()) return otherwise;
    double value = 0;
    const char* end = found->second.data() + found->second.size();
    const auto read = std::from_chars(found->second.data(), end, value);
    if (read.ec != std::errc{} || read.ptr != end || !(value >= least && value <= most))
      complain("--" + name + " " + found->second + ": not a number from " + short_text(least) + " to " + short_text(most) + "\n" + usage_);
    return value;
  }
  /// `8MiB`, `unlimited`.
  sluice::Bytes bytes(const std::string& name) const {
    const std::string value = text(name, "unlimited");
    const auto bytes = sluice::parse_bytes(value);
    if (!bytes) complain("--" + name + " " + value + ": not a size such as 2MiB\n" + usage_);
    return *bytes;
  }

 private:
  static std::string short_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  std::string usage_;
  std::vector<std::string> plain_;
  std::map<std::string, std::string> options_;
};

}  // namespace example
