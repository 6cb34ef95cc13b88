// Layers of the class int8, for the table of kernels.
#pragma once

namespace sluice::bench {

/// Registers them by the name int8/KIND/HxWxC-N. Counters: GOP/s, the peak of sums of four products meanwhile, the share of it.
void add_integer_layers();

}  // namespace sluice::bench
