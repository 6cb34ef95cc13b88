// What a person typed, read with good will: the word that was most likely meant, and several values behind one option.
//
//     argv --spread_values--> argv with one option a value --CLI11--> options, or an error with `nearest_word`'s suggestion
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// The candidate that differs least from `word`, where at most a third of its letters differ (a swap of neighbours is one difference);
/// empty where none is so near. Costs word x candidate letters each.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'X'?", or nothing where no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// `--dim N=1 S=2` as `--dim N=1 --dim S=2`: behind one of `options`, further words of the form NAME=VALUE are values of it, too, as long
/// as no file has that name. Everything else stays as it is.
std::vector<std::string> spread_values(std::span<const char* const> arguments, std::span<const std::string_view> options);

}  // namespace sluice::cli
