#include "src/cli/text.h"

#if FMT_VERSION < 100000
FMT_BEGIN_NAMESPACE
template void detail::vformat_to<char>(detail::buffer<char>&, basic_string_view<char>, basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                                       detail::locale_ref);
FMT_END_NAMESPACE
#endif
