// fmt as the tool uses it: header-only, so that no shared library is mapped into the budget.
#pragma once

#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#include <fmt/format.h>
