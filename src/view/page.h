// An HTML page in one file: no script, font or picture from elsewhere; readable on a phone, on a dark screen and on
// paper. In: headings, figures and tables in order, as plain text (escaped here) and pictures as SVG. Out: the page's
// text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class Mood : uint8_t { plain, good, bad };

// One large figure and what it means.
struct PageFigure {
  std::string value, meaning;
  Mood mood = Mood::plain;
};

// The first column is text, the others are numbers unless the head says otherwise.
struct PageTable {
  struct Head {
    std::string name;
    bool words = false;  // aligned as text
  };
  std::vector<Head> heads;
  std::vector<std::vector<std::string>> rows;
  size_t total_rows = 0;      // the last so many stand out
  bool ends_in_text = false;  // the last column is sentences: on a phone they stand below their row
  size_t notes = 0;           // the last so many columns are sentences that stand below their row, each with its head
};

// Where a page comes from.
struct PageOrigin {
  std::string model, config;  // each may be empty
  std::string command, version, date;
};

class Page {
 public:
  explicit Page(std::string_view title);

  void lead(std::string_view text);  // a sentence under the title
  // `id` for a script that shows others in their place.
  void figures(const std::vector<PageFigure>& figures, std::string_view id = "");
  void section(std::string_view heading);
  void paragraph(std::string_view text);
  // Wider than a phone: it scrolls there. `caption` may be empty.
  void picture(std::string_view svg, std::string_view caption);
  // Side by side where there is room.
  void pictures(const std::vector<std::string>& svgs, std::string_view caption);
  void table(const PageTable& table);
  // Closed until it is opened.
  void folded(std::string_view summary, const PageTable& table);

  // Elements of HTML as they are.
  void insert(std::string_view html);
  void made_by(const PageOrigin& origin);  // a section of its own

  std::string finish() &&;

 private:
  std::string text_;
  bool in_section_ = false;
};

}  // namespace sextant
