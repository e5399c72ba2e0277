#include "app/bench_save.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "app/output_file.h"
#include "base/error.h"
#include "base/files.h"
#include "cost/machine_file.h"

namespace sextant {

namespace fs = std::filesystem;

void require_writable(const std::string& file) {
  if (!file.ends_with(".toml"))
    throw UserError({.place = "--save " + file,
                     .got = "the name does not end in .toml",
                     .expected = "NAME.toml, which plan --machine reads"});
  require_output_file("--save", file);
}

Machine machine_to_save(const std::string& file, const std::optional<Machine>& known) {
  require_writable(file);
  if (fs::exists(file)) return load_machine(file);
  if (!known)
    throw UserError({.place = "--save " + file,
                     .got = "there is no such machine yet",
                     .hint = "`sextant bench machine --save` makes one; the other benchmarks then add to it"});
  Machine machine = *known;
  machine.name = fs::path(file).stem().string();
  return machine;
}

void require_kind(const std::string& file, const Machine& machine, MeasuredOn measured) {
  bool gpu = measured == MeasuredOn::gpu;
  if ((machine.device.kind == DeviceKind::cpu) != gpu) return;
  throw UserError({.place = "--save " + file,
                   .got = fmt::format("it is the machine of a {} ({}), and a {} is measured", gpu ? "CPU" : "GPU",
                                      machine.device.name, gpu ? "GPU" : "CPU"),
                   .expected = gpu ? "a GPU's file" : "a file of `sextant bench machine --device cpu --save`",
                   .hint = gpu ? "--device cpu measures the CPU" : "--device cuda measures the GPU"});
}

void write_machine(const std::string& file, const Machine& machine) {
  write_file_atomically(file, machine_text(machine));
  fmt::print(stderr, "saved in {}\n", file);
}

void report_interrupted(const std::string& file) {
  if (file.empty()) throw RunError("bench", "stopped by a signal before all was measured", "", ExitCode::stopped);
  throw RunError("--save " + file, "stopped by a signal before all was measured: nothing was saved",
                 "let it come to its end; a lower --seconds makes that sooner", ExitCode::stopped);
}

}  // namespace sextant
