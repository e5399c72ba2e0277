// Archives as tests want them: well-formed by default, and wrong in one place where asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct ZipBuilder {
  struct Entry {
    std::string name, content;
    uint16_t method = 0, flags = 0;
    std::string local_name;         // empty: the name
    std::string claimed_size = {};  // decimal; empty: the content's
    std::string header_at = {};     // decimal; empty: where it is
  };
  std::vector<Entry> entries;
  enum class Format { plain, zip64 } format = Format::plain;

  template <class T>
  static std::string le(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }

  std::string build() const {
    std::string file, list;
    for (const Entry& entry : entries) {
      uint64_t at = entry.header_at.empty() ? file.size() : std::stoull(entry.header_at);
      uint64_t size = entry.claimed_size.empty() ? entry.content.size() : std::stoull(entry.claimed_size);
      const std::string& local = entry.local_name.empty() ? entry.name : entry.local_name;
      file += "PK\x03\x04" + le<uint16_t>(20) + le(entry.flags) + le(entry.method) + le<uint32_t>(0) + le<uint32_t>(0) +
              le(static_cast<uint32_t>(size)) + le(static_cast<uint32_t>(size)) +
              le(static_cast<uint16_t>(local.size())) + le<uint16_t>(0) + local + entry.content;
      list += central(entry, size, at);
    }
    return file + list + end(file.size(), list.size());
  }

 private:
  std::string central(const Entry& entry, uint64_t size, uint64_t at) const {
    bool wide = format == Format::zip64;
    std::string extra = wide ? le<uint16_t>(1) + le<uint16_t>(24) + le(size) + le(size) + le(at) : "";
    auto narrow = [&](uint64_t number) { return le(wide ? 0xFFFFFFFFu : static_cast<uint32_t>(number)); };
    return "PK\x01\x02" + le<uint16_t>(20) + le<uint16_t>(20) + le(entry.flags) + le(entry.method) + le<uint32_t>(0) +
           le<uint32_t>(0) + narrow(size) + narrow(size) + le(static_cast<uint16_t>(entry.name.size())) +
           le(static_cast<uint16_t>(extra.size())) + std::string(10, '\0') + narrow(at) + entry.name + extra;
  }

  std::string end(uint64_t begin, uint64_t size) const {
    auto count = static_cast<uint64_t>(entries.size());
    auto plain = [](uint16_t n, uint32_t bytes, uint32_t at) {
      return "PK\x05\x06" + std::string(4, '\0') + le(n) + le(n) + le(bytes) + le(at) + le<uint16_t>(0);
    };
    if (format == Format::plain)
      return plain(static_cast<uint16_t>(count), static_cast<uint32_t>(size), static_cast<uint32_t>(begin));
    return "PK\x06\x06" + le<uint64_t>(44) + le<uint16_t>(45) + le<uint16_t>(45) + std::string(8, '\0') + le(count) +
           le(count) + le(size) + le(begin) + "PK\x06\x07" + std::string(4, '\0') + le(begin + size) + le<uint32_t>(1) +
           plain(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF);
  }
};

}  // namespace sextant
