#include "sluice/core/storage_interrupts.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "sluice/core/cpu.h"
#include "tests/core/temporary_files.h"

namespace sluice {
namespace {

/// A machine whose /sys says what tests write: the device of the files in its own directory, and lines of interrupts.
class Machine {
 public:
  /// `disk`: the folder of the disk, below /sys/devices, when `device` is a partition of it.
  explicit Machine(const std::string& device, int queues = 1, const std::string& disk = {}) {
    write_text(file(), "a model");
    struct stat status;
    REQUIRE(::stat(file().c_str(), &status) == 0);
    const std::string place = directory_.file("sys/devices/" + device);
    std::filesystem::create_directories(place);
    const std::string queues_of = directory_.file("sys/devices/" + (disk.empty() ? device : disk) + "/mq/");
    for (int queue = 0; queue < queues; ++queue) std::filesystem::create_directories(queues_of + std::to_string(queue));
    std::filesystem::create_directories(directory_.file("sys/dev/block"));
    const std::string number = std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
    std::filesystem::create_directory_symlink(place, directory_.file("sys/dev/block/" + number));
  }

  void interrupts(int line, const std::string& name, const std::string& counts) {
    const std::string place = directory_.file("sys/kernel/irq/" + std::to_string(line));
    std::filesystem::create_directories(place);
    write_text(place + "/actions", name + "\n");
    write_text(place + "/per_cpu_count", counts + "\n");
  }

  std::string file() const { return directory_.file("model.sluice"); }
  std::optional<int> interrupted() const { return interrupted_by_reads(file(), directory_.file("")); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a disk of one queue interrupts one processor") {
  Machine machine("pci0000:00/0000:00:02.0/virtio1/block/vda");
  CHECK_FALSE(machine.interrupted());
  machine.interrupts(35, "virtio1-config", "1,0,0");
  machine.interrupts(36, "virtio1-req.0", "12,0,349523");
  machine.interrupts(37, "virtio11-req.0", "0,1000000,0");  // another device whose number begins alike
  machine.interrupts(41, "virtio3-rx", "99999999,0,0");
  machine.interrupts(42, "", "");
  CHECK(machine.interrupted() == 2);
}

TEST_CASE("a partition's disk is found, and a card's controller") {
  const std::string disk = "platform/soc/fe340000.mmc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0";
  Machine card(disk + "/mmcblk0p2", 1, disk);
  card.interrupts(14, "timer", "500,500,500,500");
  card.interrupts(39, "mmc1,mmc0", "90001,0,0,0");
  card.interrupts(40, "mmc2", "0,90001,0,0");
  CHECK(card.interrupted() == 0);
}

TEST_CASE("a disk with a queue for each processor has no such processor") {
  Machine machine("pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1", 2);
  machine.interrupts(24, "nvme0q0", "11,0");
  machine.interrupts(25, "nvme0q1", "90,0");
  machine.interrupts(26, "nvme0q2", "0,40000");  // whoever has read so far ran there
  CHECK_FALSE(machine.interrupted());
}

TEST_CASE("one tenth may have gone elsewhere, more may not") {
  Machine machine("virtual/virtio7/block/vdb");
  machine.interrupts(1, "virtio7-req.0", "0,99");
  CHECK_FALSE(machine.interrupted());  // nothing was read yet
  machine.interrupts(1, "virtio7-req.0", "100,900");
  CHECK(machine.interrupted() == 1);
  machine.interrupts(1, "virtio7-req.0", "102,900");
  CHECK_FALSE(machine.interrupted());
}

TEST_CASE("machines of more interrupt lines than are worth reading are left alone") {
  Machine machine("virtual/virtio7/block/vdb");
  machine.interrupts(1, "virtio7-req.0", "0,900");
  for (int line = 2; line <= 256; ++line) machine.interrupts(line, "other", "1,1");
  CHECK(machine.interrupted() == 1);
  machine.interrupts(257, "other", "1,1");
  CHECK_FALSE(machine.interrupted());
}

TEST_CASE("the loader is bound only where a processor is left for it") {
  const TemporaryDirectory directory;
  const std::string file = directory.file("model.sluice");
  write_text(file, "a model");
  const int count = processor_count();
  std::vector<int> all(1024);
  for (std::size_t cpu = 0; cpu < all.size(); ++cpu) all[cpu] = static_cast<int>(cpu);
  // Where there are small processors they load, whatever computes.
  if (processors_to_load_on(file, 1024).empty()) {
    CHECK(processors_to_load_on(file, count).empty());
    CHECK(processors_to_load_on(file, 1, all).empty());
    CHECK(processors_to_load_on(file, 1).size() <= 1);
  }
  CHECK(processors_to_load_on(directory.file("absent"), count).empty() == processors_to_load_on(file, 1024).empty());
}

}  // namespace sluice
