// Hosts that ranks may run on, as Open MPI's hostfiles name them: a host a line, with slots=N (1 unless given); '#'
// begins a comment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct HostSlots {
  std::string name;
  int64_t slots = 1;

  bool operator==(const HostSlots&) const = default;
};

// UserError at `place` for a line that cannot be read.
std::vector<HostSlots> parse_hosts(std::string_view text, std::string_view place);
std::string hosts_text(const std::vector<HostSlots>& hosts);

int64_t slots_of(const std::vector<HostSlots>& hosts);

// Those needed for so many ranks, from the front; all of them where they do not suffice.
std::vector<HostSlots> first_hosts(const std::vector<HostSlots>& hosts, int64_t ranks);

// A hostfile of spares included, and OUT/suspect-hosts, which the supervisor appends to and a person takes lines out of
// when a host is well again. Both are read anew each time.
class HostPool {
 public:
  HostPool(std::filesystem::path hosts, const std::filesystem::path& out);

  std::vector<HostSlots> available() const;  // in the file's order, without suspects
  void set_aside(const std::string& host, const std::string& why) const;
  const std::filesystem::path& suspects_file() const { return suspects_; }

 private:
  std::filesystem::path hosts_, suspects_;
};

}  // namespace sextant
