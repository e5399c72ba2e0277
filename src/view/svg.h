// Shared parts of all pictures: escaping, ticks, one look for light screens, dark screens and paper. A picture is one
// SVG text that needs no script, font or other file; it works on its own or inside a page.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant {

// Safe between tags and inside quoted attributes of XML and HTML; what is no UTF-8 or no character of XML becomes
// U+FFFD or a space.
std::string escaped(std::string_view text);

// At most `most` characters: the middle gives way to "…".
std::string shortened(std::string_view text, size_t most);

// 1, 2 or 5 times a power of ten, so that a length has at most about that many ticks.
double tick_step(double length, double ticks = 12);
// 25k, 1.5M: the number of a tick.
std::string short_number(double v);

// The look of all pictures, as a style element: a page that draws its own has it once.
std::string_view picture_style();

struct SvgSize {
  double width = 0, height = 0;  // px
};

// Collects the elements of one picture; text given to it must be escaped.
class Svg {
 public:
  // `name` is read out to those who do not see the picture; escaped here.
  Svg(const SvgSize& size, std::string_view name);

  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  // Oblique lines: `fill="url(#ID)"`. An id is unique in a page.
  void define_hatch(std::string_view id);

  // A square of this class and then a word; returns where the next one goes.
  double legend_entry(double x, double y, std::string_view look, std::string_view word);

  std::string finish() &&;

 private:
  std::string text_;
};

// Pictures of one size, two in a row, below a heading; `note` stands at its end.
struct SvgGrid {
  std::string title, note;
  SvgSize each;
};
std::string svg_grid(const std::vector<std::string>& pictures, const SvgGrid& grid);

}  // namespace sextant
