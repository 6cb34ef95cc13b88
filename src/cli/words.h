// What a person typed, read with good will: the word that was most likely meant, and several values behind one option.
//
//     argv --spread_values--> argv with one option a value --CLI11--> options, or an error with `nearest_word`'s suggestion
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// The candidate that differs least from `word`, if at most a third of its letters differ (a swap of neighbours is one difference); empty
/// if none is so close. Costs word x candidate letters each.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'X'?", or nothing where no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// For a word that stands alone where none is expected: "; " and how it was probably meant, or nothing. `takes_input`: there is an option
/// --input.
std::string hint_for_stray(const std::string& word, bool takes_input);

/// "; did you mean" and a command line, for the name of a file where a command is wanted; nothing for other words.
std::string command_for_file(const std::string& word);

/// vgg.sluice for vgg.onnx: what a model file is called that is made of an ONNX file.
std::string name_of_converted(const std::string& onnx);

/// `--dim N=1 S=2` as `--dim N=1 --dim S=2`: behind one of `options`, further words of the form NAME=VALUE are values of it, too, as long
/// as no file has that name. Everything else stays as it is.
std::vector<std::string> spread_values(std::span<const char* const> arguments, std::span<const std::string_view> options);

}  // namespace sluice::cli
