// A batch norm behind a convolution becomes part of it: its integers are then those of what the next layer reads.
#pragma once

#include "src/quantiser/editor.h"

namespace sluice::quantiser {

void fold_norms(Editor& editor);

}  // namespace sluice::quantiser
