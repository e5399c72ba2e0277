#include "app/bench_save.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

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
  fs::path directory = fs::absolute(file).parent_path();
  if (!fs::is_directory(directory))
    throw UserError({.place = "--save " + file,
                     .got = fmt::format("there is no directory {}", directory.string()),
                     .expected = "a file in a directory that exists",
                     .hint = "make it first, or name another"});
  if (fs::is_directory(file) || ::access(directory.c_str(), W_OK) != 0)
    throw UserError({.place = "--save " + file,
                     .got = fs::is_directory(file) ? "it is a directory" : std::strerror(errno),
                     .expected = "a file that may be written, such as NAME.toml"});
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

void require_kind(const std::string& file, const Machine& machine, Measured measured) {
  bool gpu = measured == Measured::gpu;
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

void refuse_interrupted(const std::string& file) {
  throw RunError("--save " + file, "interrupted before all was measured: nothing was saved",
                 "let it come to its end; a lower --seconds makes that sooner");
}

}  // namespace sextant
