#include "view/svg.h"

#include <cmath>

namespace sextant {

namespace {

// Blue, orange, bluish green and their neighbours in Okabe and Ito's palette, lightened so that dark text reads well on
// them: they stay apart for every common kind of colour blindness.
constexpr std::string_view kSvgStyle = R"(<style>
.pic { font-family: Helvetica, Arial, sans-serif; font-size: 12px; }
.pic text { fill: #26323d; }
.pic text.quiet { fill: #5d6b78; }
.pic text.title { font-size: 14px; font-weight: bold; }
.pic text.on { fill: #16202a; text-anchor: middle; dominant-baseline: central; }
.pic text.alarm { fill: #b3261e; }
.pic .paper { fill: #ffffff; }
.pic .box { fill: none; stroke: #9aa6b1; }
.pic .grid { stroke: #dfe4e8; }
.pic .axis { stroke: #9aa6b1; }
.pic .mark { stroke: #26323d; fill: none; }
.pic .limit { stroke: #c4342b; fill: none; }
.pic .band { fill: #8a98a5; fill-opacity: 0.14; }
.pic .hover { fill: #000000; fill-opacity: 0; }
.pic .hover:hover { fill-opacity: 0.12; }
.pic .hatch-ground { fill: #eef0f2; }
.pic .hatch-line { fill: #cfd5da; }
.pic .c0 { fill: #6fb5e5; } .pic .c1 { fill: #f0ae52; } .pic .c2 { fill: #60bea0; } .pic .c3 { fill: #b9a3dd; }
.pic .c4 { fill: #d9694f; } .pic .c5 { fill: #d98bb7; } .pic .c6 { fill: #e3d65c; } .pic .c7 { fill: #4a7fb5; }
.pic .c8 { fill: #9aa6b1; } .pic .c9 { fill: #8c7a5b; }
@media screen and (prefers-color-scheme: dark) {
.pic text { fill: #e2e7eb; }
.pic text.quiet { fill: #a3b0bb; }
.pic text.on { fill: #10171d; }
.pic text.alarm { fill: #ff8a80; }
.pic .paper { fill: #171c21; }
.pic .box, .pic .axis { stroke: #66737f; }
.pic .grid { stroke: #2c353d; }
.pic .mark { stroke: #e2e7eb; }
.pic .limit { stroke: #ff6f61; }
.pic .hover { fill: #ffffff; }
.pic .hatch-ground { fill: #20272d; }
.pic .hatch-line { fill: #39444d; }
}
</style>
)";

// Length of the UTF-8 character that starts there; 0 when none does.
size_t character_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t length = first < 0x80                    ? 1
                  : first >= 0xc2 && first < 0xe0 ? 2
                  : first >= 0xe0 && first < 0xf0 ? 3
                  : first >= 0xf0 && first < 0xf5 ? 4
                                                  : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond Unicode, and U+FFFE and U+FFFF, which XML does not have.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) >= 0xa0) return 0;
  if (first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    size_t length = character_length(text);
    char c = text.front();
    if (length == 0)
      safe += "\xef\xbf\xbd";
    else if (length > 1)
      safe += text.substr(0, length);
    else if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (c == '\'')
      safe += "&#39;";
    else
      safe += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? ' ' : c;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return safe;
}

std::string_view picture_style() {
  return kSvgStyle;
}

std::string shortened(std::string_view text, size_t most) {
  auto inside = [&](size_t at) { return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  if (text.size() <= most || most < 3) return std::string(text);
  size_t head = most / 2, tail = text.size() - (most - head - 1);
  while (head > 0 && inside(head)) --head;
  while (inside(tail)) ++tail;
  return std::string(text.substr(0, head)) + "…" + std::string(text.substr(tail));
}

std::string short_number(double v) {
  struct Size {
    double least;
    char letter;
  };
  for (auto [least, letter] : {Size{1e12, 'T'}, Size{1e9, 'G'}, Size{1e6, 'M'}, Size{1e3, 'k'}})
    if (std::fabs(v) >= least) return fmt::format("{:g}{}", v / least, letter);
  return fmt::format("{:g}", v);
}

double tick_step(double length, double ticks) {
  double rough = length / ticks, power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

Svg::Svg(const SvgSize& size, std::string_view name) {
  put("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pic\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
      "{0:.0f} {1:.0f}\" "
      "role=\"img\" aria-label=\"{2}\">\n{3}<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
      size.width, size.height, escaped(name), kSvgStyle);
}

void Svg::define_hatch(std::string_view id) {
  put("<defs><pattern id=\"{}\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\">"
      "<rect class=\"hatch-ground\" width=\"7\" height=\"7\"/><rect class=\"hatch-line\" width=\"2\" "
      "height=\"7\"/></pattern></defs>\n",
      id);
}

double Svg::legend_entry(double x, double y, std::string_view look, std::string_view word) {
  constexpr double kLetter = 6.3;
  put("<rect {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
      look, x, y - 10, x + 17, y, escaped(word));
  return x + 17 + kLetter * static_cast<double>(word.size()) + 16;
}

std::string Svg::finish() && {
  text_ += "</svg>\n";
  return std::move(text_);
}

std::string svg_grid(const std::vector<std::string>& pictures, const SvgGrid& grid) {
  constexpr double kHeading = 34, kGap = 12;
  size_t columns = pictures.size() > 1 ? 2 : 1, rows = (pictures.size() + columns - 1) / columns;
  double across = grid.each.width + kGap, down = grid.each.height + kGap, width = static_cast<double>(columns) * across;
  Svg svg({width, kHeading + static_cast<double>(rows) * down}, grid.title);
  svg.put(
      "<text class=\"title\" x=\"{:.0f}\" y=\"22\">{}</text><text class=\"quiet\" x=\"{:.0f}\" y=\"22\" "
      "text-anchor=\"end\">{}</text>\n",
      kGap, escaped(grid.title), width - kGap, escaped(grid.note));
  constexpr std::string_view kOpening = "<svg";
  for (size_t i = 0; i < pictures.size(); ++i) {
    size_t row = i / columns, column = i % columns;
    svg.put("<svg x=\"{:.0f}\" y=\"{:.0f}\"{}", static_cast<double>(column) * across,
            kHeading + static_cast<double>(row) * down, std::string_view(pictures[i]).substr(kOpening.size()));
  }
  return std::move(svg).finish();
}

}  // namespace sextant
