// fmt as the tool uses it: header-only, so that no shared library is mapped into the budget.
#pragma once

#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#include <fmt/format.h>

// What walks a format string is compiled once, in text.cc: every file that formats had a copy of its own, a third of its compile time.
// Later releases of fmt declare it otherwise.
#if FMT_VERSION < 100000
FMT_BEGIN_NAMESPACE
namespace detail {
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
}
FMT_END_NAMESPACE
#endif
