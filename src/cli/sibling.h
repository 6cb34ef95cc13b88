// Other programs in the folder of this one: if it linked their code, that would count in every budget.
#pragma once

#include <string>

namespace sluice::cli {

/// The path of a program in the folder of this one.
std::string sibling_program(const std::string& name);

}  // namespace sluice::cli
