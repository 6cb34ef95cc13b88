// Whether this program was linked without shared libraries: it holds less before it does anything, and can load none.
#pragma once

namespace sluice {

bool statically_linked() noexcept;

}  // namespace sluice
