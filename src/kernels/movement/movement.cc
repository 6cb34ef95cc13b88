// The family's descriptors: what the reference says of the operator, and a faster run. Like the reference, they take every element type.
#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/movement/steps.h"
#include "src/kernels/reference/table.h"
#include "src/kernels/resolve.h"

namespace sluice::kernels {
namespace {

/// The steps' table of an instruction set is its name: the engine below looks its loops up by that.
constexpr Isa loops_of(Isa isa) noexcept { return isa; }

template <KernelId kId, auto kParameters, auto kRun>
constexpr KernelDescriptor describe(std::string_view name, model::OpKind op) noexcept {
  KernelDescriptor kernel = reference_table::reference_of(op);
  kernel.id = kId;
  kernel.name = name;
  kernel.resolve = if_built<kId, resolve_as<kParameters, entry_for<kRun, loops_of>>>();
  kernel.parameter_bytes = kParameterBytes<kParameters>;
  return kernel;
}

}  // namespace

std::span<const KernelDescriptor> movement_kernels() noexcept {
  using model::OpKind;
  static constexpr auto kKernels = as_built([] {
    return std::array{
        describe<kernel_id::kConcat, concat_parameters, movement::concat_step>("concat", OpKind::kConcat),
        describe<kernel_id::kSlice, slice_parameters, movement::slice_step>("slice", OpKind::kSlice),
        describe<kernel_id::kPad, pad_parameters, movement::pad_step>("pad", OpKind::kPad),
        describe<kernel_id::kTranspose, transpose_parameters, movement::transpose_step>("transpose", OpKind::kTranspose),
        describe<kernel_id::kReshape, reshape_parameters, movement::reshape_step>("reshape", OpKind::kReshape),
    };
  });
  return kKernels;
}

}  // namespace sluice::kernels
