// The family's descriptors: what the reference says of the operator, and a faster run. Like the reference, they take every element type.
#include <array>

#include "sluice/kernels/reference.h"
#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/movement/steps.h"

namespace sluice::kernels {
namespace {

KernelDescriptor describe(KernelId id, std::string_view name, model::OpKind op, void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel = reference_kernel(op);
  kernel.id = id;
  kernel.name = name;
  kernel.run = run;
  return kernel;
}

}  // namespace

std::span<const KernelDescriptor> movement_kernels() noexcept {
  using model::OpKind;
  static const std::array kKernels{
      describe(kernel_id::kConcat, "concat", OpKind::kConcat, movement::concat_step),
      describe(kernel_id::kSlice, "slice", OpKind::kSlice, movement::slice_step),
      describe(kernel_id::kPad, "pad", OpKind::kPad, movement::pad_step),
      describe(kernel_id::kTranspose, "transpose", OpKind::kTranspose, movement::transpose_step),
      describe(kernel_id::kReshape, "reshape", OpKind::kReshape, movement::reshape_step),
  };
  return kKernels;
}

}  // namespace sluice::kernels
