// Reads documents and comments and fails on a link, a heading, a file or a name in code that they name and that is not there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path path = SLUICE_SOURCE_DIR;
  return path;
}

/// Files that belong to the repository, relative to it: nothing that was built, no hidden folder.
const std::vector<std::string>& repository_files() {
  static const std::vector<std::string> files = [] {
    std::vector<std::string> found;
    for (fs::recursive_directory_iterator it(root()), end; it != end; ++it) {
      const std::string name = it->path().filename().string();
      if (it->is_directory() && (name.starts_with(".") || (it.depth() == 0 && name == "build"))) {
        it.disable_recursion_pending();
      } else if (it->is_regular_file()) {
        found.push_back(fs::relative(it->path(), root()).generic_string());
      }
    }
    return found;
  }();
  return files;
}

bool has_extension(const std::string& path, const std::set<std::string>& extensions) {
  return extensions.contains(fs::path(path).extension().string());
}

std::string text_of(const std::string& path) {
  std::ifstream stream(root() / path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// All ends of paths that are whole names: of a/b/c.h those are a/b/c.h, b/c.h and c.h.
std::set<std::string> endings_of(const std::vector<std::string>& paths) {
  std::set<std::string> endings;
  for (const std::string& path : paths) {
    endings.insert(path);
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) endings.insert(path.substr(at + 1));
  }
  return endings;
}

/// The anchor that a heading has where Markdown is shown: small letters, digits and dashes.
std::string anchor_of(const std::string& heading) {
  static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  std::string anchor;
  for (const char c : std::regex_replace(heading, link, "$1")) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) || c == '-' || c == '_' || letter >= 0x80) {
      anchor += static_cast<char>(letter < 0x80 ? std::tolower(letter) : letter);
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::string& document) {
  std::set<std::string> anchors;
  std::istringstream lines(document);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    const std::size_t text = line.find_first_not_of('#');
    if (!code && text != std::string::npos && text > 0 && line[text] == ' ') anchors.insert(anchor_of(line.substr(text + 1)));
  }
  return anchors;
}

/// What is wrong with the links of one document.
std::vector<std::string> broken_links(const std::string& path, const std::string& document) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> broken;
  for (std::sregex_iterator it(document.begin(), document.end(), link), end; it != end; ++it) {
    const std::string target = (*it)[1];
    if (target.starts_with("http:") || target.starts_with("https:") || target.starts_with("mailto:")) continue;
    const std::size_t hash = target.find('#');
    const std::string file = target.substr(0, hash);
    const fs::path place = file.empty() ? fs::path(path) : (fs::path(path).parent_path() / file).lexically_normal();
    if (!fs::exists(root() / place)) {
      broken.push_back(path + ": there is no " + target);
    } else if (hash != std::string::npos && place.extension() == ".md" &&
               !anchors_of(text_of(place.string())).contains(target.substr(hash + 1))) {
      broken.push_back(path + ": no heading for " + target);
    }
  }
  return broken;
}

/// The comment of a line of C, C++, JavaScript or shell; empty where it has none.
std::string comment_of(const std::string& line, bool hashes) {
  const std::size_t at = line.find(hashes ? "#" : "//");
  return at == std::string::npos ? "" : line.substr(at);
}

/// File names in a comment that no file of the repository has. `NAME` in capitals and a leading dash stand for something else.
std::vector<std::string> unknown_files(const std::string& comment, const std::set<std::string>& endings) {
  static const std::regex name(R"([\w./*-]*\w\.(h|cc|md|mjs|sh|cmake|fbs)\b)");
  static const std::regex record(R"(ADR (\d{4}))");
  std::vector<std::string> unknown;
  for (std::sregex_iterator it(comment.begin(), comment.end(), name), end; it != end; ++it) {
    std::string file = it->str();
    while (file.starts_with("../") || file.starts_with("./")) file.erase(0, file.find('/') + 1);
    const bool stands_for_others =
        file.find("NAME") != std::string::npos || file.find('*') != std::string::npos || file.front() == '-' || file.front() == '_';
    if (!stands_for_others && !endings.contains(file)) unknown.push_back(file);
  }
  for (std::sregex_iterator it(comment.begin(), comment.end(), record), end; it != end; ++it) {
    const std::string number = (*it)[1];
    const bool known = std::any_of(endings.begin(), endings.end(), [&](const std::string& path) { return path.starts_with(number + "-"); });
    if (!known) unknown.push_back(it->str());
  }
  return unknown;
}

/// Words that a program could name something by.
std::vector<std::string> identifiers_of(const std::string& text) {
  static const std::regex identifier(R"([A-Za-z_]\w*)");
  return {std::sregex_token_iterator(text.begin(), text.end(), identifier), {}};
}

/// Is it a name of code, in any text? Small letters with a dash below, a constant, or words run together.
bool is_name_of_code(const std::string& word) {
  static const std::regex joined(R"(k[A-Z]\w*|[A-Z]\w*[a-z][A-Z]\w*)");
  return word.find('_') != std::string::npos || std::regex_match(word, joined);
}

/// Names of code that a comment has in back quotes and that no code has.
std::vector<std::string> unknown_names(const std::string& comment, const std::set<std::string>& known) {
  static const std::regex quoted("`([^`]+)`");
  std::vector<std::string> unknown;
  for (std::sregex_iterator it(comment.begin(), comment.end(), quoted), end; it != end; ++it)
    for (const std::string& word : identifiers_of((*it)[1]))
      if (is_name_of_code(word) && !known.contains(word)) unknown.push_back(word);
  return unknown;
}

bool is_source(const std::string& path) { return has_extension(path, {".h", ".cc", ".c"}); }

/// What code names, its comments left out.
std::set<std::string> known_names() {
  std::set<std::string> known;
  for (const std::string& path : repository_files()) {
    if (has_extension(path, {".md", ".svg", ".html"})) continue;
    std::istringstream lines(text_of(path));
    for (std::string line; std::getline(lines, line);)
      for (std::string& word : identifiers_of(is_source(path) ? line.substr(0, line.find("//")) : line)) known.insert(std::move(word));
  }
  return known;
}

}  // namespace

TEST_CASE("links of documents lead somewhere") {
  int documents = 0;
  std::vector<std::string> broken;
  for (const std::string& path : repository_files()) {
    if (!has_extension(path, {".md"})) continue;
    ++documents;
    for (std::string& link : broken_links(path, text_of(path))) broken.push_back(std::move(link));
  }
  for (const std::string& line : broken) UNSCOPED_INFO(line);
  CHECK(broken.empty());
  CHECK(documents > 20);
}

TEST_CASE("files that comments name are there") {
  const std::set<std::string> endings = endings_of(repository_files());
  std::vector<std::string> unknown;
  for (const std::string& path : repository_files()) {
    const bool hashes = has_extension(path, {".sh"});
    if (!(hashes || has_extension(path, {".h", ".cc", ".c", ".mjs"})) || path.starts_with("tests/layering/")) continue;
    std::istringstream lines(text_of(path));
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number)
      for (const std::string& file : unknown_files(comment_of(line, hashes), endings))
        unknown.push_back(path + ":" + std::to_string(number) + ": " + file);
  }
  for (const std::string& line : unknown) UNSCOPED_INFO(line);
  CHECK(unknown.empty());
}

TEST_CASE("names of code that comments quote are there") {
  const std::set<std::string> known = known_names();
  std::vector<std::string> unknown;
  for (const std::string& path : repository_files()) {
    if (!is_source(path) || path.starts_with("tests/layering/")) continue;
    std::istringstream lines(text_of(path));
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number)
      for (const std::string& name : unknown_names(comment_of(line, false), known))
        unknown.push_back(path + ":" + std::to_string(number) + ": " + name);
  }
  for (const std::string& line : unknown) UNSCOPED_INFO(line);
  CHECK(unknown.empty());
}

TEST_CASE("the check of references sees what it must") {
  const std::set<std::string> endings = endings_of({"include/sluice/core/arena.h", "docs/adr/0004-numeric-class.md"});
  CHECK(unknown_files("// see arena.h, core/arena.h and ADR 0004", endings).empty());
  CHECK(unknown_files("// see cellar.h", endings) == std::vector<std::string>{"cellar.h"});
  CHECK(unknown_files("// see score/arena.h", endings) == std::vector<std::string>{"score/arena.h"});
  CHECK(unknown_files("// ADR 0099", endings) == std::vector<std::string>{"ADR 0099"});
  CHECK(unknown_files("// NAME_generated.h", endings).empty());
  const std::set<std::string> known = {"kLanes", "in_place", "WeightSlice"};
  CHECK(unknown_names("// `kLanes` of `WeightSlice::in_place`, `x` and a bare kNothing", known).empty());
  CHECK(unknown_names("// `kGone` and `WeightSlice::at_once`", known) == std::vector<std::string>{"kGone", "at_once"});
  CHECK(anchors_of("# One\n## In a small `cgroup`, beside it\n```\n# code\n```\n") ==
        std::set<std::string>{"one", "in-a-small-cgroup-beside-it"});
  CHECK(broken_links("README.md", "[a](docs/no-such-page.md) [b](https://example.org/x) [c](#no-such-heading)").size() == 2);
  CHECK(broken_links("docs/index.md", "[a](../README.md) [b](planner.md)").empty());
}
