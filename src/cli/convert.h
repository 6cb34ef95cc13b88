// The programs that lie beside this one and do what no run needs: each is a process of its own, for what it links would count in every
// budget.
#pragma once

#include <string>

namespace sluice::cli {

std::string tool_path(const char* name);

/// Becomes that program; its arguments and exit status pass through. Returns only by Failure.
[[noreturn]] void become_tool(std::string name, char** arguments);

}  // namespace sluice::cli
