// Tables of pages: sentences that stand below their row leave the width to the numbers.
#include "view/page.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

std::string page_with(const PageTable& table) {
  Page page("tables");
  page.section("one");
  page.table(table);
  return std::move(page).finish();
}

size_t count_of(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(PageTables, NotesStandBelowTheirRow) {
  PageTable table{.heads = {{"layout"}, {"a step"}, {"why", true}, {"keys", true}},
                  .rows = {{"1", "2 ms", "compute <b>", "mesh.dp=2"}, {"2", "3 ms", "", "mesh.pp=2"}},
                  .notes = 2};
  std::string html = page_with(table);
  EXPECT_EQ(count_of(html, "<th"), 2u + 1);  // and <thead>
  EXPECT_NE(
      html.find(
          "<td>2 ms</td></tr>\n<tr class=\"notes\"><td colspan=\"2\"><div><span>why</span> compute &lt;b&gt;</div>"
          "<div><span>keys</span> mesh.dp=2</div></td></tr>"),
      html.npos)
      << html.substr(html.find("<table"));
  EXPECT_NE(
      html.find("<td>3 ms</td></tr>\n<tr class=\"notes\"><td colspan=\"2\"><div><span>keys</span> mesh.pp=2</div>"),
      html.npos);
  table.notes = 0;
  EXPECT_EQ(count_of(page_with(table), "class=\"notes\""), 0u);
}

// On paper a table goes on over pages: one that is kept whole leaves a page empty, or is cut.
TEST(PageTables, GoOnOverPagesOfPaper) {
  std::string html = page_with({.heads = {{"a"}}, .rows = {{"1"}}});
  std::string print = html.substr(html.find("@media print"));
  std::string sections =
      print.substr(print.find("section"), print.find('}', print.find("section")) - print.find("section"));
  EXPECT_EQ(sections.find("break-inside"), sections.npos) << sections;
}

}  // namespace
}  // namespace sextant
