#include "view/page.h"

#include <fmt/format.h>

#include "view/svg.h"

namespace sextant {

namespace {

constexpr std::string_view kPageStyle = R"(
:root { color-scheme: light dark; --ink: #1f2a33; --quiet: #5d6b78; --ground: #f4f6f8; --card: #ffffff; --line: #dfe4e8; --good: #1d7a46; --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 16px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 12px 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 10px; }
p { margin: 6px 0 10px; overflow-wrap: anywhere; }
figcaption { color: var(--quiet); font-size: 0.9rem; }
.lead { color: var(--quiet); margin: 0 0 14px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px; margin: 14px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 14px 0; }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; }
.figures b { display: block; font-size: 1.3rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.figures span { color: var(--quiet); font-size: 0.86rem; }
.good b { color: var(--good); } .bad b { color: var(--bad); }
figure { margin: 0 0 6px; }
.wide { overflow-x: auto; }
.wide > svg { display: block; max-width: 100%; height: auto; min-width: 680px; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr)); gap: 10px; }
.panels > svg { display: block; width: 100%; height: auto; max-width: 560px; }
.scroll { overflow-x: auto; margin-bottom: 6px; }
table { border-collapse: collapse; font-size: 0.92rem; min-width: 50%; }
th, td { text-align: right; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: var(--quiet); font-weight: 600; }
th:first-child, td:first-child, th.words, td.words { text-align: left; overflow-wrap: anywhere; min-width: 10em; }
td.words { min-width: 14em; }
td:not(:first-child):not(.words) { white-space: nowrap; }
tr.total td { font-weight: 600; }
tr.noted td { border-bottom: none; padding-bottom: 0; }
tr.notes td, tr.notes td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; padding: 0 0 6px; font-size: 0.94em; }
tr.notes span { color: var(--quiet); }
code { font-size: 0.9em; overflow-wrap: anywhere; }
summary { cursor: pointer; padding: 4px 0; }
footer { color: var(--quiet); font-size: 0.85rem; padding: 4px 2px 20px; }
@media (max-width: 480px) { main { padding: 10px; } section { padding: 10px; } .figures { grid-template-columns: 1fr 1fr; } .figures b { font-size: 1.15rem; } table { font-size: 0.84rem; }
  .texts, .texts tbody { display: block; } .texts thead { display: none; } .texts tr { display: flex; flex-wrap: wrap; gap: 0 12px; padding: 6px 0; border-bottom: 1px solid var(--line); }
  .texts td { border: none; padding: 0; } .texts td:last-child { flex-basis: 100%; } }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e2e7eb; --quiet: #a3b0bb; --ground: #0f1316; --card: #171c21; --line: #2c353d; --good: #6ddc9a; --bad: #ff8a80; } }
@media print { body { background: #ffffff; font-size: 11pt; } main { max-width: none; padding: 0; } section, .figures div { border-color: #bbbbbb; } tr, figure, svg, .figures div { break-inside: avoid; } h2, tr.noted { break-after: avoid; } .wide > svg { min-width: 0; } .scroll, .wide { overflow: visible; }
  table { font-size: 0.8rem; } th:first-child, td:first-child, th.words, td.words { min-width: 0; } td:not(:first-child):not(.words) { white-space: normal; } }
)";

// Lines below a row: "what hurts: …", one for each note.
std::string notes_text(const PageTable& table, const std::vector<std::string>& cells) {
  auto label = [](const std::string& name) {
    return name.empty() ? std::string() : fmt::format("<span>{}</span> ", escaped(name));
  };
  std::string lines;
  for (size_t i = cells.size() - table.notes; i < cells.size(); ++i)
    if (!cells[i].empty()) lines += fmt::format("<div>{}{}</div>", label(table.heads[i].name), escaped(cells[i]));
  return fmt::format("<tr class=\"notes\"><td colspan=\"{}\">{}</td></tr>\n", cells.size() - table.notes, lines);
}

std::string row_text(const PageTable& table, const std::vector<std::string>& cells, std::string_view look) {
  std::string out = fmt::format("<tr{}>", look);
  for (size_t i = 0; i + table.notes < cells.size(); ++i)
    out += fmt::format("<td{}>{}</td>", i < table.heads.size() && table.heads[i].words ? " class=\"words\"" : "",
                       escaped(cells[i]));
  return out + "</tr>\n" + (table.notes > 0 ? notes_text(table, cells) : "");
}

std::string_view look_of(const PageTable& table, size_t row) {
  if (row + table.total_rows >= table.rows.size()) return " class=\"total\"";
  return table.notes > 0 ? " class=\"noted\"" : "";
}

std::string table_text(const PageTable& table) {
  std::string out =
      fmt::format("<div class=\"scroll\"><table{}>\n<thead><tr>", table.ends_in_text ? " class=\"texts\"" : "");
  for (size_t i = 0; i + table.notes < table.heads.size(); ++i)
    out += fmt::format("<th{}>{}</th>", table.heads[i].words ? " class=\"words\"" : "", escaped(table.heads[i].name));
  out += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < table.rows.size(); ++i) out += row_text(table, table.rows[i], look_of(table, i));
  return out + "</tbody>\n</table></div>\n";
}

std::string caption_text(std::string_view caption) {
  return caption.empty() ? std::string() : fmt::format("<figcaption>{}</figcaption>", escaped(caption));
}

}  // namespace

Page::Page(std::string_view title) {
  text_ = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\"/>\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
      escaped(title), kPageStyle);
}

void Page::lead(std::string_view text) {
  text_ += fmt::format("<p class=\"lead\">{}</p>\n", escaped(text));
}

void Page::figures(const std::vector<PageFigure>& figures, std::string_view id) {
  text_ += fmt::format("<div class=\"figures\"{}>\n",
                       id.empty() ? "" : fmt::format(" id=\"{}\" aria-live=\"polite\"", escaped(id)));
  for (const PageFigure& figure : figures)
    text_ += fmt::format("<div{}><b>{}</b><span>{}</span></div>\n",
                         figure.mood == Mood::good  ? " class=\"good\""
                         : figure.mood == Mood::bad ? " class=\"bad\""
                                                    : "",
                         escaped(figure.value), escaped(figure.meaning));
  text_ += "</div>\n";
}

void Page::section(std::string_view heading) {
  if (in_section_) text_ += "</section>\n";
  in_section_ = true;
  text_ += fmt::format("<section>\n<h2>{}</h2>\n", escaped(heading));
}

void Page::paragraph(std::string_view text) {
  text_ += fmt::format("<p>{}</p>\n", escaped(text));
}

void Page::picture(std::string_view svg, std::string_view caption) {
  text_ += fmt::format("<figure><div class=\"wide\">{}</div>{}</figure>\n", svg, caption_text(caption));
}

void Page::pictures(const std::vector<std::string>& svgs, std::string_view caption) {
  text_ += "<figure><div class=\"panels\">\n";
  for (const std::string& svg : svgs) text_ += svg;
  text_ += fmt::format("</div>{}</figure>\n", caption_text(caption));
}

void Page::table(const PageTable& table) {
  text_ += table_text(table);
}

void Page::folded(std::string_view summary, const PageTable& table) {
  text_ += fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), table_text(table));
}

void Page::insert(std::string_view html) {
  text_ += html;
}

void Page::made_by(const PageOrigin& origin) {
  section("Made by");
  std::string what;
  if (!origin.model.empty()) what += fmt::format("Model {}", origin.model);
  if (!origin.config.empty()) what += fmt::format("{}config {}", what.empty() ? "" : ", ", origin.config);
  if (!what.empty()) what += "; ";
  text_ += fmt::format("<p>{}sextant {}, {}.</p>\n<p><code>{}</code></p>\n", escaped(what), escaped(origin.version),
                       escaped(origin.date), escaped(origin.command));
}

std::string Page::finish() && {
  if (in_section_) text_ += "</section>\n";
  text_ += "<footer>Written by sextant. This file needs no network.</footer>\n</main>\n</body>\n</html>\n";
  return std::move(text_);
}

}  // namespace sextant
