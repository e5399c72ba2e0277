// Words, plots and themes of the stories, as text for the grammar compiler (stories_grammar.h). The format:
//
//   thing(noun, look): shell/pink | compass/brass      a word class, its fields, its entries
//     bucket/striped                                    a new line is a new entry too
//   [thing] [thing.look]                                a slot: the first field, or a named one
//   [scene2]                                            a second, different scene
//   #                                                   in a plot: a new paragraph
//
// Every slot is a variable of the story: chosen at its first use, the same until the story ends. Entries stand in
// order of frequency. A beat is a class whose parts, between slashes, are sentences; a line that begins with a slash
// goes on with the entry before; "-" is a beat left out. Beginnings are made capital and a becomes an where needed, so
// neither is written here.
#pragma once

#include <string_view>
#include <vector>

namespace sextant {

std::string_view story_words();                // classes every theme shares
std::string_view story_theme_classes();        // classes every theme fills for itself
std::vector<std::string_view> story_themes();  // "theme: name", then its classes; several themes a text
std::string_view story_beats();
std::string_view story_plots();  // each entry a list of beats

// The texts of story_themes(), one source file each.
std::string_view story_themes_of_nature();
std::string_view story_themes_of_town();
std::string_view story_themes_of_work();

}  // namespace sextant
