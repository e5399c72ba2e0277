// Quantities with their unit in the type, and how a person reads them.
#pragma once

#include <cstdint>
#include <string>

namespace sextant {

struct Bytes {
  int64_t n = 0;
  auto operator<=>(const Bytes&) const = default;
  Bytes& operator+=(Bytes o) {
    n += o.n;
    return *this;
  }
  friend Bytes operator+(Bytes a, Bytes b) { return {a.n + b.n}; }
};

struct Flops {
  double n = 0;
  auto operator<=>(const Flops&) const = default;
  Flops& operator+=(Flops o) {
    n += o.n;
    return *this;
  }
  friend Flops operator+(Flops a, Flops b) { return {a.n + b.n}; }
};

std::string human(Bytes bytes);              // "1.50 GiB", powers of 1024
std::string human_count(int64_t n);          // "8,030,261,248"
std::string human_duration(double seconds);  // "2 m 05 s"

constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
constexpr int64_t ceil_div(int64_t n, int64_t d) {
  return (n + d - 1) / d;
}

}  // namespace sextant
