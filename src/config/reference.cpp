#include "config/reference.h"

#include <fmt/format.h>

#include "config/schema.h"
#include "optim/optimizer.h"

namespace sextant {

namespace {

constexpr std::string_view kIntroduction = R"(# The config file

This page is made from the table of keys in `src/config/schema.cpp`; a test holds the two equal.

A run is described by one [TOML](https://toml.io) file. Every key has a default or can be derived, except that a model
must be named:

```toml
[model]
preset = "gpt2"

[data]
train = ["part-1.jsonl", "part-2.jsonl"]

[optimizer]
lr = 6e-4
warmup = 100
```

`configs/` holds complete examples.

## Overrides

After the file, `key=value` arguments replace single values:

    sextant train configs/tiny-llama.toml optimizer.lr=1e-3 model.layers=4 name=deeper

The key is the full name from the tables below. The value is written as in TOML, and a word needs no quotes:
`device=cpu`, `data.train=my.txt`, `data.train='["a.txt", "b.txt"]'`, `mesh.sequence_parallel=true`. Whole numbers may
be written as `2e5`. Of several overrides of one key the last holds. A list of one may be written without brackets.

## Editors

`sextant schema` prints a JSON schema of this file (installed as `share/sextant/config.schema.json`), made from the same table: names,
types, ranges, words and explanations. Editors with a TOML language server such as [taplo](https://taplo.tamasfe.dev) (in VS Code,
"Even Better TOML") complete and check a config by it when its first line names it:

```toml
#:schema ./config.schema.json
```

## Mistakes

All mistakes of a file and its overrides are reported at once, each with its place, what was found, what would be
right, and, where a name looks misspelt, the name that was probably meant:

    run.toml:3:1 model.hiden: is not a known key
      hint: did you mean model.hidden?
    command line: model.heads=7: heads 7 does not divide hidden 768; expected a divisor of 768
)";

std::string_view name_in_section(const Key& key) {
  std::string_view section = section_of(key.name);
  return key.name.substr(section.empty() ? 0 : section.size() + 1);
}

std::string section_table(const Section& section, std::span<const Key> keys) {
  std::string title = section.name.empty() ? "Top level" : fmt::format("[{}]", section.name);
  std::string out =
      fmt::format("\n## {}\n\n{}\n\n| key | type | default | meaning |\n|---|---|---|---|\n", title, section.help);
  for (const Key& key : keys)
    if (section_of(key.name) == section.name)
      out += fmt::format("| `{}` | {} | {} | {} |\n", name_in_section(key), type_text(key), default_text(key),
                         help_of(key));
  return out;
}

// Table of the settings that each optimizer reads, with their defaults.
std::string optimizer_table() {
  std::string out = "\n| optimizer | what it is | reads, with its defaults |\n|---|---|---|\n";
  for (const OptimizerDef* def : all_optimizers()) {
    std::string settings;
    for_each_setting([&](std::string_view name, auto member) {
      if (def->defaults.*member)
        settings += fmt::format("{}`{} = {}`", settings.empty() ? "" : ", ", name,
                                toml_text(to_setting(*(def->defaults.*member))));
    });
    out += fmt::format("| `{}` | {} | {} |\n", def->name, def->summary, settings);
  }
  return out;
}

bool is_below(std::string_view key, std::string_view name) {
  return name.empty() || key == name || (key.starts_with(name) && key.substr(name.size()).starts_with('.'));
}

}  // namespace

std::string type_text(const Key& key) {
  if (key.name == "model.architecture") return "string";  // sextant list models lists them
  if (key.kind == Kind::text && !key.choices.empty()) {
    std::string out;
    for (std::string_view word : words_of(key)) out += fmt::format("{}`{}`", out.empty() ? "" : ", ", word);
    return out;
  }
  std::string text = expected_of(key);
  for (std::string_view article : {"an ", "a "})
    if (text.starts_with(article)) text.erase(0, article.size());
  return text;
}

// The initialisers of RunConfig are the defaults.
std::string default_text(const Key& key) {
  return key.unset.empty() ? fmt::format("`{}`", toml_text(key.get(RunConfig{}))) : std::string(key.unset);
}

std::string config_reference(std::span<const Key> keys) {
  std::string out(kIntroduction);
  for (const Section& section : sections()) {
    out += section_table(section, keys);
    if (section.name == "optimizer") out += optimizer_table();
    if (section.name == "model") out += "\n`[model.rope_scaling]` may also be written as a section of its own.\n";
  }
  return out;
}

std::string config_help(std::string_view name, std::span<const Key> keys) {
  std::string out;
  for (const Key& key : keys)
    if (is_below(key.name, name))
      out +=
          fmt::format("{}\n    {}\n    {}; default: {}\n", key.name, help_of(key), type_text(key), default_text(key));
  // Backquotes are for the page; a terminal shows them as they are.
  std::erase(out, '`');
  return out;
}

}  // namespace sextant
