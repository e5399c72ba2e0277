#include "supervise/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "events/run_event.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSlots = "slots=", kSpace = " \t\r";
constexpr int64_t kMostSlots = 1 << 20;

std::string_view next_word(std::string_view& line) {
  size_t begin = std::min(line.find_first_not_of(kSpace), line.size());
  size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
  std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

int64_t slots_in(std::string_view word, const std::string& place) {
  int64_t slots = 0;
  std::string_view digits = word.starts_with(kSlots) ? word.substr(kSlots.size()) : std::string_view();
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), slots);
  if (error != std::errc() || end != digits.data() + digits.size() || slots < 1 || slots > kMostSlots)
    throw UserError({.place = place,
                     .got = fmt::format("cannot use \"{}\"", printable(std::string(word))),
                     .expected = fmt::format("slots=N, with N from 1 to {}", kMostSlots)});
  return slots;
}

}  // namespace

std::vector<HostSlots> parse_hosts(std::string_view text, std::string_view place) {
  std::vector<HostSlots> hosts;
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, std::min(end, text.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string where = fmt::format("{}:{}", place, number);
    std::string_view name = next_word(line);
    if (name.empty()) continue;
    bool plain = std::ranges::all_of(name, [](unsigned char c) { return c > ' ' && c < 0x7f && c != ','; });
    if (!plain || name.starts_with('-') || name.find('=') != name.npos)
      throw UserError({.place = where,
                       .got = fmt::format("\"{}\" is not a host", printable(std::string(name))),
                       .expected = "a host, and slots=N behind it"});
    HostSlots host{.name = std::string(name)};
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
      host.slots = slots_in(word, where);
    if (std::ranges::count(hosts, host.name, &HostSlots::name) > 0)
      throw UserError(
          {.place = where, .got = fmt::format("{} stands here twice", host.name), .expected = "every host once"});
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::string hosts_text(const std::vector<HostSlots>& hosts) {
  std::string text;
  for (const HostSlots& host : hosts) text += fmt::format("{} slots={}\n", host.name, host.slots);
  return text;
}

int64_t slots_of(const std::vector<HostSlots>& hosts) {
  int64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

std::vector<HostSlots> first_hosts(const std::vector<HostSlots>& hosts, int64_t ranks) {
  std::vector<HostSlots> chosen;
  for (const HostSlots& host : hosts)
    if (slots_of(chosen) < ranks) chosen.push_back(host);
  return chosen;
}

HostPool::HostPool(fs::path hosts, const fs::path& out) : hosts_(std::move(hosts)), suspects_(out / "suspect-hosts") {}

std::vector<HostSlots> HostPool::available() const {
  std::vector<HostSlots> hosts = parse_hosts(read_file(hosts_), hosts_.string()), suspects;
  std::error_code ignored;
  if (fs::exists(suspects_, ignored)) suspects = parse_hosts(read_file(suspects_), suspects_.string());
  std::erase_if(hosts,
                [&](const HostSlots& host) { return std::ranges::count(suspects, host.name, &HostSlots::name) > 0; });
  return hosts;
}

void HostPool::set_aside(const std::string& host, const std::string& why) const {
  std::error_code ignored;
  std::string text =
      fs::exists(suspects_, ignored) ? read_file(suspects_) : "# Take a line out when its host is well again.\n";
  if (std::ranges::count(parse_hosts(text, suspects_.string()), host, &HostSlots::name) > 0) return;
  write_file_atomically(suspects_, text + fmt::format("{}  # {}: {}\n", host, utc_now(), why));
}

}  // namespace sextant
