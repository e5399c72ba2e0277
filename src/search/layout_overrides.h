// A layout that a search found, as a person uses it: `key=value` pairs to type behind the config, or a config file of
// its own. Either gives exactly the layout that was priced, whatever the config said before.
#pragma once

#include <string>

#include "config/run_config.h"

namespace sextant {

// `layout` is what with_choice made of `run`. Every key of the layout that `run` was given, that is not the default, or
// that tells layouts apart: "mesh.dp=16 mesh.tp=8 … pipeline.chunks=1 pipeline.layers=".
std::string layout_overrides(const RunConfig& run, const RunConfig& layout);

// The whole config with this layout as TOML, which load_config reads as `layout`. `remark` becomes a comment at the
// top.
std::string layout_toml(const RunConfig& layout, const std::string& remark);

}  // namespace sextant
