#include "src/backends/opencl_device.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/core/hash.h"
#include "src/backends/opencl_source.h"

namespace sluice::backends {
namespace {

constexpr Bytes kLargestBinary = Bytes(std::uint64_t{64} << 20);

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// GPU before accelerator before CPU, over all platforms.
cl_device_id best_device(std::span<const cl_platform_id> platforms) {
  for (const cl_device_type type :
       {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_ACCELERATOR}, cl_device_type{CL_DEVICE_TYPE_CPU}})
    for (const cl_platform_id platform : platforms) {
      cl_device_id device = nullptr;
      if (clGetDeviceIDs(platform, type, 1, &device, nullptr) == CL_SUCCESS && device != nullptr) return device;
    }
  return nullptr;
}

}  // namespace

Error cl_error(const char* call, cl_int code) noexcept {
  std::array<char, 80> subject{};
  std::snprintf(subject.data(), subject.size(), "%s (%d)", call, static_cast<int>(code));
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES ||
                      code == CL_INVALID_BUFFER_SIZE;
  if (memory) return make_error(ErrorCode::kOutOfMemory, subject.data(), "the OpenCL device or its driver has no memory for it");
  return make_error(ErrorCode::kInternal, subject.data(), "the OpenCL driver refused the call");
}

bool means_lost(cl_int code) noexcept {
  return code == CL_DEVICE_NOT_AVAILABLE || code == CL_OUT_OF_RESOURCES || code == CL_INVALID_COMMAND_QUEUE || code == CL_INVALID_CONTEXT ||
         code == CL_INVALID_DEVICE || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

Result<std::shared_ptr<ClDevice>> ClDevice::open(const std::string& cache) {
  auto device = std::make_shared<ClDevice>();
  SLUICE_RETURN_IF_ERROR(device->choose());
  SLUICE_RETURN_IF_ERROR(device->build(cache));
  return device;
}

Status ClDevice::choose() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0)
    return fail(ErrorCode::kUnsupported, "opencl", "no OpenCL driver is installed");
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  device_ = best_device(platforms);
  if (device_ == nullptr) return fail(ErrorCode::kUnsupported, "opencl", "no OpenCL driver has a device here");
  cl_device_type type = 0;
  clGetDeviceInfo(device_, CL_DEVICE_TYPE, sizeof type, &type, nullptr);
  name_ = ((type & CL_DEVICE_TYPE_GPU) != 0   ? "GPU: "
           : (type & CL_DEVICE_TYPE_CPU) != 0 ? "CPU: "
                                              : "accelerator: ") +
          text(CL_DEVICE_NAME);
  cl_int code = CL_SUCCESS;
  context_ = ClContext(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code));
  if (code != CL_SUCCESS) return fail(cl_error("clCreateContext", code));
  queue_ = ClQueue(clCreateCommandQueue(context_.get(), device_, 0, &code));
  if (code != CL_SUCCESS) return fail(cl_error("clCreateCommandQueue", code));
  return {};
}

std::string ClDevice::text(cl_device_info what) const {
  std::array<char, 512> value{};
  if (clGetDeviceInfo(device_, what, value.size() - 1, value.data(), nullptr) != CL_SUCCESS) return {};
  return value.data();
}

Status ClDevice::build(const std::string& cache) {
  std::string path;
  if (!cache.empty()) {
    const std::string made_for = name_ + '\n' + text(CL_DRIVER_VERSION) + '\n' + text(CL_DEVICE_VERSION) + '\n' + kOpenClSource;
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%016llx", static_cast<unsigned long long>(xxh3_64(bytes_of(made_for))));
    path = cache + "/opencl-" + number.data() + ".bin";
    if (build_from(path)) return {};
  }
  SLUICE_RETURN_IF_ERROR(compile());
  if (!path.empty()) {
    ::mkdir(cache.c_str(), 0700);
    keep(path);
  }
  return {};
}

/// The file is a hash and the driver's binary. Drivers believe what they have written: PoCL aborts the process over one that was cut short,
/// and runs one that has other bytes.
bool ClDevice::build_from(const std::string& path) {
  const auto file = read_file(path, kLargestBinary);
  std::uint64_t hash = 0;
  if (!file || file->size() <= sizeof hash) return false;
  std::memcpy(&hash, file->data(), sizeof hash);
  const auto binary = std::span(*file).subspan(sizeof hash);
  if (xxh3_64(binary) != hash) return false;
  const std::size_t size = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
  program_ = ClProgram(clCreateProgramWithBinary(context_.get(), 1, &device_, &size, &data, &loaded, &code));
  return code == CL_SUCCESS && loaded == CL_SUCCESS && clBuildProgram(program_.get(), 1, &device_, "", nullptr, nullptr) == CL_SUCCESS &&
         kernel("convolution").has_value();
}

Status ClDevice::compile() {
  const char* source = kOpenClSource;
  cl_int code = CL_SUCCESS;
  program_ = ClProgram(clCreateProgramWithSource(context_.get(), 1, &source, nullptr, &code));
  if (code != CL_SUCCESS) return fail(cl_error("clCreateProgramWithSource", code));
  if (clBuildProgram(program_.get(), 1, &device_, "-cl-std=CL1.2", nullptr, nullptr) == CL_SUCCESS) return {};
  std::vector<char> log(1 << 16, '\0');
  clGetProgramBuildInfo(program_.get(), device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
  const std::string_view first = std::string_view(log.data()).substr(0, std::strcspn(log.data(), "\n"));
  return fail(ErrorCode::kUnsupported, first.empty() ? std::string_view(name_) : first, "the OpenCL driver does not compile our kernels");
}

/// Whether it succeeds changes nothing but how long the next start takes.
void ClDevice::keep(const std::string& path) const {
  std::size_t size = 0;
  if (clGetProgramInfo(program_.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || size == 0) return;
  std::uint64_t hash = 0;
  std::vector<unsigned char> hashed(sizeof hash + size);
  unsigned char* data = hashed.data() + sizeof hash;
  if (clGetProgramInfo(program_.get(), CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) != CL_SUCCESS) return;
  hash = xxh3_64(std::as_bytes(std::span(hashed).subspan(sizeof hash)));
  std::memcpy(hashed.data(), &hash, sizeof hash);
  Result<AtomicFile> file = AtomicFile::create(path);
  if (file && file->write_at(Bytes(), std::as_bytes(std::span(hashed)))) [[maybe_unused]]
    const Status kept = file->commit();
}

Result<ClKernel> ClDevice::kernel(const char* name) const {
  cl_int code = CL_SUCCESS;
  ClKernel kernel(clCreateKernel(program_.get(), name, &code));
  if (code != CL_SUCCESS) return fail(cl_error("clCreateKernel", code));
  return kernel;
}

}  // namespace sluice::backends
