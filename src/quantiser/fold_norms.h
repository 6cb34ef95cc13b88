// A batch norm after a convolution becomes part of it, so that the convolution's integers are those that the next layer reads.
#pragma once

#include "src/quantiser/editor.h"

namespace sluice::quantiser {

void fold_norms(Editor& editor);

}  // namespace sluice::quantiser
