#include "bench/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>

#include "base/threads.h"
#include "base/units.h"

namespace sextant {

namespace {

constexpr const char* kVersion = "0.1.0";

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#else
  return fmt::format("gcc {}", __VERSION__);
#endif
}

std::string now_text() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min);
}

std::string or_unreadable(const std::string& text) {
  return text.empty() ? "not readable" : text;
}

}  // namespace

std::string today() {
  return now_text().substr(0, 10);
}

Environment environment_of(const DeviceProbe& probe) {
  DeviceFacts facts = probe.facts();
  utsname system{};
  ::uname(&system);
  int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * int64_t{::sysconf(_SC_PAGE_SIZE)};
  Environment environment{
      {"date", now_text()},
      {"program", fmt::format("sextant {}, {}", kVersion, compiler())},
      {"host", fmt::format("{} {} {}, {} cores, {}", system.sysname, system.release, system.machine, core_count(),
                           human(Bytes{memory}))},
      {"device", fmt::format("{}, {} units, {}", facts.name, facts.units, human(Bytes{facts.memory_bytes}))}};
  for (const auto& [library, version] : facts.versions) environment.emplace_back(library, or_unreadable(version));
  Readings readings = probe.readings();
  environment.emplace_back("clock", or_unreadable(readings.clock));
  environment.emplace_back("memory clock", or_unreadable(readings.memory_clock));
  environment.emplace_back("power", or_unreadable(readings.power));
  environment.emplace_back("temperature", or_unreadable(readings.temperature));
  return environment;
}

}  // namespace sextant
