// What the words of an option have to be, beyond their type: for CLI11's `check`.
#pragma once

#include <CLI/App.hpp>

namespace sluice::cli {

/// A finite number that is not negative.
CLI::Validator share();

/// A folder, there already or not: what is called as an array's file is named is meant as one, and refused.
CLI::Validator folder();

}  // namespace sluice::cli
