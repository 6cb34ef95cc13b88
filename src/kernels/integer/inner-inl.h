// All inner loops over a set of vector operations `V`, which must have been defined in the namespace that this is included in.
#include "src/kernels/integer/finish-inl.h"
#include "src/kernels/integer/lanes-inl.h"
#include "src/kernels/integer/runs-inl.h"
#include "src/kernels/integer/tile-inl.h"
