// The programs that lie beside this one: what they link would count in every budget.
#pragma once

#include <string>

namespace sluice::cli {

/// The path of a program in the folder of this one.
std::string sibling_program(const std::string& name);

}  // namespace sluice::cli
