#include "view/mesh_svg.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/units.h"
#include "view/svg.h"

namespace sextant {

namespace {

// px
constexpr double kWidth = 470, kLeft = 12, kTop = 50, kNode = 96, kGap = 20, kPad = 5, kTallest = 96;
constexpr double kLabel = 16, kBelow = 12;
constexpr size_t kMostNodes = 4;
constexpr int64_t kMostDevices = 128;  // drawn of a node
constexpr int64_t kRanksInARow = 8;    // where nodes are not known
constexpr double kReadable = 17;       // a square that holds a number
constexpr double kMuch = 0.01;         // of all bytes: what earns a set of axes a panel of its own

struct Group {
  std::string name;  // "tp", "dp,cp"
  std::vector<int> axes;
};

// Empty when an axis is not of this mesh, or all have one rank.
std::vector<int> axes_named(const Mesh& mesh, std::string_view names) {
  std::vector<int> axes;
  bool several = false;
  while (!names.empty()) {
    std::string_view word = names.substr(0, names.find(','));
    auto axis = mesh.find(word);
    if (!axis) return {};
    axes.push_back(*axis);
    several = several || mesh.size(*axis) > 1;
    names.remove_prefix(std::min(names.size(), word.size() + 1));
  }
  return several ? axes : std::vector<int>{};
}

// Innermost first: what is nearest sends most.
std::vector<Group> groups_of(const MeshPicture& picture) {
  std::vector<Group> groups;
  for (int axis = picture.mesh.axis_count(); axis-- > 0;)
    if (picture.mesh.size(axis) > 1) groups.push_back({picture.mesh.name(axis), {axis}});
  double all = 0;
  for (const auto& [axes, bytes] : picture.sent) all += static_cast<double>(bytes);
  for (const auto& [names, bytes] : picture.sent) {
    if (names.find(',') == std::string::npos || static_cast<double>(bytes) < kMuch * all) continue;
    if (std::vector<int> axes = axes_named(picture.mesh, names); !axes.empty()) groups.push_back({names, axes});
  }
  return groups;
}

class Panel {
 public:
  Panel(const MeshPicture& picture, Group group)
      : picture_(picture),
        group_(std::move(group)),
        members_(group_of(picture.mesh, 0, group_.axes)),
        ranks_(picture.mesh.world_size()) {
    known_ = picture.devices_per_node > 0;
    per_node_ = known_ ? picture.devices_per_node : kRanksInARow;
    choose_nodes();
    int64_t drawn = std::min(std::min(per_node_, kMostDevices), ranks_);
    columns_ = drawn <= 16 ? std::min<int64_t>(4, drawn)
                           : static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(drawn) * 1.2)));
    int64_t rows = ceil_div(drawn, columns_);
    cell_ = std::min(
        {(kNode - 2 * kPad) / static_cast<double>(columns_), (kTallest - 2 * kPad) / static_cast<double>(rows), 22.0});
    box_height_ = cell_ * static_cast<double>(rows) + 2 * kPad;
  }

  double height() const { return kTop + kLabel + box_height_ + kBelow; }

  std::string svg() {
    Svg svg({kWidth, height()}, "mesh axis " + group_.name);
    svg_ = &svg;
    words();
    double x = kLeft;
    int64_t before = -1;
    for (int64_t node : nodes_) {
      if (node > before + 1) dots(x);
      draw_node(node, x);
      x += kNode + kGap;
      before = node;
    }
    if ((before + 1) * per_node_ < ranks_) dots(x);
    join();
    return std::move(svg).finish();
  }

 private:
  int64_t node_of(int64_t rank) const { return rank / per_node_; }

  // Where the group begins and ends; then what lies between.
  void choose_nodes() {
    int64_t last = node_of(ranks_ - 1);
    std::set<int64_t> nodes = {0, node_of(members_.back())};
    for (size_t i = 0; i < members_.size() && nodes.size() < kMostNodes; ++i) nodes.insert(node_of(members_[i]));
    for (int64_t node = 1; node <= last && nodes.size() < kMostNodes; ++node) nodes.insert(node);
    nodes_.assign(nodes.begin(), nodes.end());
  }

  // Of every group along these axes: how many stay inside a node.
  std::string where() const {
    if (!known_) return "where they sit is not known";
    int64_t crossing = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      Coordinate at = coordinate_of(picture_.mesh, rank);
      for (int axis : group_.axes) at[static_cast<size_t>(axis)] = 0;
      crossing += node_of(rank) != node_of(rank_of(picture_.mesh, at));
    }
    std::set<int64_t> nodes;
    for (int rank : members_) nodes.insert(node_of(rank));
    if (crossing == 0) return "inside a node";
    return nodes.size() == 1 ? "some of them between nodes"
                             : fmt::format("between {} nodes", human_count(static_cast<int64_t>(nodes.size())));
  }

  void words() {
    if (group_.axes.empty()) {
      svg_->put(
          "<text class=\"title\" x=\"{:.0f}\" y=\"18\">one device</text><text class=\"quiet\" x=\"{:.0f}\" "
          "y=\"36\">nothing is sent</text>\n",
          kLeft, kLeft);
      return;
    }
    auto sent = picture_.sent.find(group_.name);
    std::string bytes = sent == picture_.sent.end() || sent->second == 0
                            ? "nothing is sent along it alone"
                            : fmt::format("each sends {} in a step", human(Bytes{sent->second}));
    int64_t groups = ranks_ / static_cast<int64_t>(members_.size());
    svg_->put(
        "<text class=\"title\" x=\"{0:.0f}\" y=\"18\">{1}: {2} group{3} of {4}</text><text class=\"quiet\" "
        "x=\"{0:.0f}\" y=\"36\">{5}; {6}</text>\n",
        kLeft, escaped(group_.name), human_count(groups), groups == 1 ? "" : "s",
        human_count(static_cast<int64_t>(members_.size())), where(), bytes);
  }

  void dots(double x) {
    svg_->put("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">…</text>\n", x - kGap / 2,
              kTop + 10 + box_height_ / 2);
  }

  void draw_node(int64_t node, double x) {
    int64_t first = node * per_node_, last = std::min(first + per_node_, ranks_) - 1;
    std::string name = known_ ? fmt::format("node {}", human_count(node)) : fmt::format("ranks {} to {}", first, last);
    svg_->put(
        "<text class=\"quiet\" x=\"{0:.1f}\" y=\"{1:.1f}\">{2}</text><rect class=\"box\" rx=\"4\" x=\"{0:.1f}\" "
        "y=\"{3:.1f}\" width=\"{4:.1f}\" "
        "height=\"{5:.1f}\"/>\n",
        x, kTop + 10, name, kTop + kLabel, cell_ * static_cast<double>(columns_) + 2 * kPad, box_height_);
    for (int64_t rank = first; rank <= std::min(last, first + kMostDevices - 1); ++rank) {
      int64_t slot = rank - first, row = slot / columns_, column = slot % columns_;
      draw_device(rank, x + kPad + static_cast<double>(column) * cell_,
                  kTop + kLabel + kPad + static_cast<double>(row) * cell_);
    }
  }

  void draw_device(int64_t rank, double x, double y) {
    Coordinate at = coordinate_of(picture_.mesh, static_cast<int>(rank));
    int64_t place = 0;
    for (int axis : group_.axes) place = place * picture_.mesh.size(axis) + at[static_cast<size_t>(axis)];
    bool member = std::binary_search(members_.begin(), members_.end(), rank);
    std::string coordinate;
    for (size_t axis = 0; axis < at.size(); ++axis)
      coordinate += fmt::format(" {}={}", picture_.mesh.axes[axis].name(), at[axis]);
    svg_->put(
        "<rect class=\"c{}\" {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\"><title>rank "
        "{}:{}</title></rect>",
        place % 10, member ? "" : "fill-opacity=\"0.35\"", x + 1, y + 1, cell_ - 2, cell_ - 2, cell_ / 8, rank,
        escaped(coordinate));
    if (member) centres_.emplace_back(x + cell_ / 2, y + cell_ / 2);
    if (cell_ < kReadable) return;
    std::string number = fmt::format("{}", rank);
    svg_->put(
        "<text class=\"{}\" font-size=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
        "dominant-baseline=\"central\">{}</text>\n",
        member ? "on" : "quiet", number.size() > 3 ? "6.5" : "9", x + cell_ / 2, y + cell_ / 2, number);
  }

  // Along the edges of the squares, so that their numbers stay readable.
  void join() {
    if (centres_.size() < 2) return;
    svg_->put("<polyline class=\"mark\" stroke-width=\"1.5\" stroke-opacity=\"{}\" points=\"",
              centres_.size() > 8 ? 0.35 : 0.75);
    for (auto [x, y] : centres_) svg_->put("{:.1f},{:.1f} ", x, y - cell_ / 2 + 2.5);
    svg_->put("\"/>\n");
  }

  const MeshPicture& picture_;
  Group group_;
  std::vector<int> members_;  // of rank 0's group, ascending
  int64_t ranks_;
  bool known_ = false;
  int64_t per_node_ = 1;
  std::vector<int64_t> nodes_;
  int64_t columns_ = 1;
  double cell_ = 0, box_height_ = 0;                // px
  std::vector<std::pair<double, double>> centres_;  // px, of the group's squares
  Svg* svg_ = nullptr;
};

struct Panels {
  std::vector<std::string> svgs;
  double height = 0;  // px, of each
};

Panels draw_panels(const MeshPicture& picture) {
  std::vector<Group> groups = groups_of(picture);
  if (groups.empty()) groups.push_back({});
  Panels out;
  for (Group& group : groups) {
    Panel panel(picture, std::move(group));
    out.height = panel.height();
    out.svgs.push_back(panel.svg());
  }
  return out;
}

}  // namespace

std::vector<std::string> mesh_panels(const MeshPicture& picture) {
  return draw_panels(picture).svgs;
}

std::string mesh_svg(const MeshPicture& picture) {
  int64_t ranks = picture.mesh.world_size(), per_node = picture.devices_per_node;
  std::string note =
      per_node > 0 ? fmt::format("{} ranks on {} nodes", human_count(ranks), human_count(ceil_div(ranks, per_node)))
                   : fmt::format("{} ranks", human_count(ranks));
  Panels panels = draw_panels(picture);
  return svg_grid(panels.svgs, {.title = "mesh " + picture.mesh.text(), .note = note, .each = {kWidth, panels.height}});
}

}  // namespace sextant
