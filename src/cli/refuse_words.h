// What every program says of words that its parser does not take: what was wrong, the option that was most likely meant, where the list is.
// Include CLI11 before it; a header, since only those who parse need CLI11.
#pragma once

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "src/cli/failure.h"
#include "src/cli/words.h"

namespace sluice::cli {

/// "--budget" and the others that the command takes.
inline std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// A command that writes more than one kind of file has an option for each.
inline std::string hint_for_output(const std::vector<std::string>& names) {
  std::string hint;
  for (const char* name : {"--save", "--svg", "--trace"})
    if (std::find(names.begin(), names.end(), name) != names.end())
      hint += std::string(hint.empty() ? "; did you mean '" : " or '") + name + "'";
  return hint.empty() ? hint : hint + "?";
}

/// An option of one letter, as other programs have them: the options that begin with it.
inline std::string hint_for_letter(const std::string& word, const std::vector<std::string>& names) {
  std::string hint;
  if (word.size() != 2 || word.front() != '-') return hint;
  for (const std::string& name : names)
    if (name.starts_with("-" + word)) hint += (hint.empty() ? "; did you mean '" : " or '") + name + "'";
  return hint.empty() ? hint : hint + "?";
}

/// A second file of a command that makes one of another.
inline std::string hint_for_second_file(const std::string& word, const std::string& typed) {
  const bool makes_one = typed == "sluice convert" || typed == "sluice quantize";
  return makes_one && (word.ends_with(".sluice") || word.ends_with(".onnx")) ? "; did you mean '-o " + word + "'?" : "";
}

/// What is wrong, in place of the parser's "--budget: 1 required TEXT missing".
inline std::string text_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::size_t missing = text.find(": 1 required ");
  return missing == std::string::npos ? text : text.substr(0, missing) + " wants a value";
}

/// The hint for the words that `command` did not take; `typed` is what a person types to run it: "sluice run".
inline std::string hint_for(const CLI::App& command, const std::string& typed) {
  std::string hint;
  const std::vector<std::string> names = option_names(command);
  const bool takes_input = std::find(names.begin(), names.end(), "--input") != names.end();
  for (const std::string& word : command.remaining()) {
    if (!hint.empty()) break;
    if (word == "-o" || word.starts_with("--output")) hint = hint_for_output(names);
    if (hint.empty()) hint = hint_for_letter(word, names);
    if (hint.empty()) hint = hint_for_second_file(word, typed);
    if (!hint.empty()) break;
    hint = word.starts_with("--") ? suggestion(word.substr(0, word.find('=')), names) : hint_for_stray(word, takes_input);
  }
  return hint + " (" + typed + " --help lists the options)";
}

/// Refuses an option with an empty value, as from an unset variable of a script: the user does not mean that nothing be encrypted, or
/// written.
inline void refuse_empty_words(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> given = option->get_items_expected_max() == 0 ? std::vector<std::string>() : option->results();
    if (std::find(given.begin(), given.end(), "") != given.end())
      throw Failure(ErrorCode::kInvalidArgument, option->get_name() + ": wants a value, and was given an empty word");
  }
}

/// Says it on stderr and gives the exit status.
inline int refuse_words(const char* program, const CLI::App& command, const std::string& typed, const CLI::ParseError& error) {
  constexpr int kUsage = 1;
  complain(program, text_of(error) + hint_for(command, typed));
  return kUsage;
}

}  // namespace sluice::cli
