// How fast this CPU decodes coded weights, for `sluice profile`: what plans price the decoding of a load with.
#pragma once

namespace sluice::executor::coding {

/// Values that one core decodes in a second, of a table such as the exponents of trained f32 have. Takes 20 ms.
double measure_decode_rate();

}  // namespace sluice::executor::coding
