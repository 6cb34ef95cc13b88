// Rows as a table for a terminal, as Markdown, CSV or JSON. Each names the machine and the build: a figure without them says nothing.
#pragma once

#include <span>
#include <string>

#include "src/cli/bench/bench.h"

namespace sluice::cli::bench_detail {

struct Machine {
  std::string processor;
  int processors = 0;
  std::uint64_t memory_bytes = 0;
  std::string isa;
  std::string system;  // the kernel's name and release
  std::string build;   // version and commit
};
Machine this_machine();

void print_table(const Machine& machine, std::span<const Row> rows);
void print_markdown(const Machine& machine, std::span<const Row> rows);
void print_csv(std::span<const Row> rows);
void print_as_json(const Machine& machine, const BenchOptions& options, std::span<const Row> rows);

}  // namespace sluice::cli::bench_detail
