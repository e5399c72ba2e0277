#include "answers/plan_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <mutex>
#include <sstream>
#include <variant>

#include "base/error.h"
#include "base/threads.h"
#include "base/units.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "config/schema.h"
#include "run/resolve_spec.h"
#include "search/search.h"

namespace sextant {

namespace {

constexpr std::string_view kDevicesAxis = "devices", kLayoutAxis = "layout", kSequencesKey = "batch.sequences",
                           kContextKey = "batch.seq";

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 ? std::optional(value) : std::nullopt;
}

// A layout without its number of replicas, which follows from the devices.
struct GridLayout {
  std::string name;
  MeshSection mesh;
  std::vector<std::string> overrides;
};

std::string key_of_override(std::string_view text) {
  return std::string(text.substr(0, text.find('=')));
}

std::string value_in(const RunConfig& run, const std::string& name) {
  ConfigValue value = find_key(name)->get(run);
  auto text = std::get_if<std::string>(&value);
  return text ? *text : toml_text(value);
}

// Values in order, each once, with the config's own among them.
GridAxis axis_with(std::string name, std::vector<std::string> values, const std::string& own) {
  values.push_back(own);
  bool numbers = std::ranges::all_of(values, [](const std::string& v) { return whole_number(v).has_value(); });
  if (numbers) {
    std::ranges::sort(values, {}, [](const std::string& v) { return *whole_number(v); });
    values.erase(std::unique(values.begin(), values.end()), values.end());
  } else {
    values.pop_back();
    if (std::ranges::count(values, own) == 0) values.insert(values.begin(), own);
  }
  auto chosen = static_cast<size_t>(std::ranges::find(values, own) - values.begin());
  return {std::move(name), std::move(values), chosen};
}

// Half as many, as many, twice as many; of one, four times as many in place of half.
std::vector<std::string> around(int64_t own) {
  std::vector<std::string> values{fmt::format("{}", 2 * own)};
  if (own % 2 == 0) values.push_back(fmt::format("{}", own / 2));
  if (own == 1) values.push_back("4");
  return values;
}

class Grid {
 public:
  explicit Grid(const PlanGridRequest& request) : request_(request), devices_(ranks_of(request.run.mesh)) {
    add_axes();
    layouts_ = request.layouts == kNeighbouringLayouts ? neighbouring_layouts() : layouts_found();
    GridAxis layout{std::string(kLayoutAxis), {}, 0};
    for (const GridLayout& one : layouts_) layout.values.push_back(one.name);
    grid_.axes.push_back(std::move(layout));
    size_t count = 1;
    for (const GridAxis& axis : grid_.axes) count *= axis.values.size();
    if (count > kMostGridPlans)
      throw UserError({.place = "--vary",
                       .got = fmt::format("{} combinations", count),
                       .expected = fmt::format("at most {}", kMostGridPlans),
                       .hint = "give fewer values, or one value where nothing is to vary"});
    grid_.points.resize(count);
  }

  PlanGrid planned() && {
    ThreadTeam team(0);
    std::mutex guard;
    std::exception_ptr failure;
    team.parallel_for(static_cast<int64_t>(grid_.points.size()), [&](int64_t i, int) {
      try {
        plan_point(static_cast<size_t>(i));
      } catch (...) {
        std::scoped_lock lock(guard);
        if (!failure) failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
    return std::move(grid_);
  }

 private:
  void add_axes() {
    std::vector<std::string> names{std::string(kDevicesAxis), std::string(kSequencesKey), std::string(kContextKey)};
    std::map<std::string, std::vector<std::string>> given;
    for (const QuestionChange& change : request_.vary) {
      require_variable(change);
      if (std::ranges::count(names, change.what) == 0) names.push_back(change.what);
      given[change.what].push_back(change.value);
    }
    for (const std::string& name : names) {
      std::string own = name == kDevicesAxis ? fmt::format("{}", devices_) : value_in(request_.run, name);
      std::optional<int64_t> number = whole_number(own);
      grid_.axes.push_back(axis_with(name,
                                     given.contains(name) ? given[name]
                                     : number             ? around(*number)
                                                          : std::vector<std::string>(),
                                     own));
    }
  }

  static void require_variable(const QuestionChange& change) {
    std::string place = "--vary " + change.text();
    bool devices = change.what == kDevicesAxis;
    const Key* key = find_key(change.what);
    if ((!devices && !key) || change.what == axis_of(&MeshSection::dp).key)
      throw UserError({.place = place,
                       .got = fmt::format("'{}' cannot be varied on the page", change.what),
                       .expected = "devices= or a key of the config but mesh.dp, which follows from the devices",
                       .hint = "`sextant ask what-if` compares machines, networks and prices"});
    if ((devices || key->kind == Kind::integer) && !whole_number(change.value))
      throw UserError({.place = place,
                       .got = fmt::format("'{}'", change.value),
                       .expected = devices ? "a number of devices" : expected_of(*key)});
  }

  // One thing changed of the config's layout, where some number of devices allows it.
  std::vector<GridLayout> neighbouring_layouts() const {
    const RunConfig& run = request_.run;
    std::vector<GridLayout> layouts{{"as in the config", run.mesh, {}}};
    auto add = [&](std::string_view key, const std::string& value, int64_t MeshSection::*size = nullptr) {
      if (std::ranges::any_of(grid_.axes, [&](const GridAxis& axis) { return axis.name == key; })) return;
      GridLayout layout{fmt::format("{}={}", key, value), run.mesh, {fmt::format("{}={}", key, value)}};
      if (size) layout.mesh.*size = *whole_number(value);
      layout.mesh.dp = 1;
      bool possible = std::ranges::any_of(grid_.axes.front().values, [&](const std::string& devices) {
        return *whole_number(devices) % ranks_of(layout.mesh) == 0;
      });
      if (possible) layouts.push_back(std::move(layout));
    };
    auto doubled_and_halved = [&](int64_t MeshSection::*size, int64_t most) {
      int64_t now = run.mesh.*size;
      if (now % 2 == 0) add(axis_of(size).key, fmt::format("{}", now / 2), size);
      if (2 * now <= most) add(axis_of(size).key, fmt::format("{}", 2 * now), size);
    };
    // Tensor parallelism beyond a node is nothing that people run.
    doubled_and_halved(&MeshSection::tp, request_.machine ? request_.machine->devices_per_node : run.mesh.tp * 2);
    doubled_and_halved(&MeshSection::pp, request_.spec.layers);
    add("train.recompute", std::string(word_of(run.train.recompute == RecomputeMode::full ? RecomputeMode::selective
                                                                                          : RecomputeMode::full)));
    return layouts;
  }

  std::vector<GridLayout> layouts_found() const {
    std::vector<GridLayout> layouts{{"as in the config", request_.run.mesh, {}}};
    if (request_.layouts == 0) return layouts;
    Target target = request_.target(request_.run, static_cast<int>(devices_));
    SearchResult found = search_layouts({.run = request_.run,
                                         .spec = request_.spec,
                                         .machine = *request_.machine,
                                         .profile = request_.profile,
                                         .devices = devices_,
                                         .keep = static_cast<size_t>(request_.layouts),
                                         .target = &target,
                                         .imbalance = request_.imbalance,
                                         .intervals = request_.intervals,
                                         .scope = SearchScope::fastest});
    for (const Candidate& candidate : found.best) {
      GridLayout layout{.name = {}, .mesh = candidate.choice.mesh, .overrides = {}};
      std::istringstream words(candidate.overrides);
      for (std::string word; words >> word;) {
        std::string key = key_of_override(word);
        if (key == axis_of(&MeshSection::dp).key) continue;
        for (const GridAxis& axis : grid_.axes)
          if (axis.name == key)
            throw UserError({.place = "--vary " + key,
                             .got = "the layouts of a search (--layouts) decide it",
                             .expected = "one of both"});
        layout.name += (layout.name.empty() ? "" : " ") + word;
        layout.overrides.push_back(std::move(word));
      }
      layouts.push_back(std::move(layout));
    }
    return layouts;
  }

  void plan_point(size_t index) {
    GridPoint& point = grid_.points[index];
    std::vector<size_t> at(grid_.axes.size());
    for (size_t a = grid_.axes.size(), rest = index; a-- > 0; rest /= grid_.axes[a].values.size())
      at[a] = rest % grid_.axes[a].values.size();
    try {
      point.overrides = overrides_at(at);
      std::vector<std::string> all = request_.overrides;
      all.insert(all.end(), point.overrides.begin(), point.overrides.end());
      RunConfig run = load_config(request_.config, all);
      bool same_model = std::ranges::none_of(point.overrides, [](const std::string& text) {
        return !text.starts_with("mesh.") && !text.starts_with("batch.") && !text.starts_with("pipeline.") &&
               !text.starts_with("train.");
      });
      ModelSpec spec = same_model ? request_.spec : resolve_spec(run);
      plan_run(index, run, spec);
    } catch (const UserError& error) {
      point.why_not = error.what();
    }
  }

  std::vector<std::string> overrides_at(const std::vector<size_t>& at) const {
    const GridLayout& layout = layouts_[at.back()];
    std::vector<std::string> overrides;
    RunConfig shaped = request_.run;
    shaped.mesh = layout.mesh;
    for (size_t a = 1; a + 1 < grid_.axes.size(); ++a) {
      const GridAxis& axis = grid_.axes[a];
      if (at[a] == axis.chosen) continue;
      const std::string& value = axis.values[at[a]];
      overrides.push_back(fmt::format("{}={}", axis.name, value));
      const Key& key = *find_key(axis.name);
      if (axis.name.starts_with("mesh.") && key.kind == Kind::integer) key.set(shaped, *whole_number(value));
      if (axis.name == kContextKey)
        if (std::string positions = positions_for(request_.spec, *whole_number(value)); !positions.empty())
          overrides.push_back(std::move(positions));
    }
    overrides.insert(overrides.end(), layout.overrides.begin(), layout.overrides.end());
    int64_t devices = *whole_number(grid_.axes.front().values[at.front()]), dp = shaped.mesh.dp;
    shaped.mesh.dp = 1;
    int64_t apart = ranks_of(shaped.mesh);
    if (devices % apart != 0)
      throw UserError({.place = fmt::format("{} devices", devices),
                       .got = fmt::format("no multiple of the {} ranks that hold one copy of the model ({})", apart,
                                          sizes_text(shaped.mesh)),
                       .expected = "a multiple"});
    if (devices / apart != dp || !layout.overrides.empty())
      overrides.push_back(fmt::format("{}={}", axis_of(&MeshSection::dp).key, devices / apart));
    return overrides;
  }

  void plan_run(size_t index, const RunConfig& run, const ModelSpec& spec) {
    Target target = request_.target(run, static_cast<int>(ranks_of(run.mesh)));
    // The rules of the IR are not checked: that would take most of the time.
    LoweredRun lowered = lower_run(run, spec, target, Checks::none);
    SimResult simulated;
    SimOptions simulation = request_.simulation;
    // Jitter is drawn by what has been recorded.
    if (simulation.jitter == 0) simulation.trace = KeepTrace::passes;
    RunPlan plan = make_plan({.run = run,
                              .lowered = lowered,
                              .machine = request_.machine,
                              .profile = &request_.profile,
                              .token_budget = request_.token_budget,
                              .imbalance = request_.imbalance,
                              .simulation = simulation,
                              .intervals = request_.intervals},
                             &simulated);
    request_.keep({.point = index, .plan = plan, .lowered = lowered, .trace = simulated.trace});
  }

  const PlanGridRequest& request_;
  int64_t devices_;
  std::vector<GridLayout> layouts_;
  PlanGrid grid_;
};

}  // namespace

size_t PlanGrid::chosen() const {
  size_t index = 0;
  for (const GridAxis& axis : axes) index = index * axis.values.size() + axis.chosen;
  return index;
}

PlanGrid plan_grid(const PlanGridRequest& request) {
  return Grid(request).planned();
}

}  // namespace sextant
