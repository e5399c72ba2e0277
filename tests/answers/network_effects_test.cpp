// Placements and slow links: step times against plans of machines that are written down so.
#include "answers/network_effects.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cost/rank_placement.h"
#include "cost/software_profile_file.h"

namespace sextant {
namespace {

// Two devices in a node, and a network of a hundredth of the node's links.
AskedPlace place_on_two(double far_bytes_per_s) {
  Machine machine;
  machine.name = "pairs", machine.device.name = "pairs";
  machine.device.units = 8, machine.device.clock_hz = 1e9;
  machine.device.peaks = {{"bf16", 2e12}, {"fp32", 2e11}};
  machine.device.memory_bytes = 1e11, machine.device.memory_bytes_per_s = 1e11;
  machine.devices_per_node = 2;
  machine.levels = {{.name = "node", .devices = 2, .link = {1e11, 2e-6}},
                    {.name = "cluster", .devices = 0, .link = {far_bytes_per_s, 5e-6}}};
  machine.attention["cudnn"] = {0.5, 0.5, 0.4, 0.4};
  return {.machine = machine, .profile = own_profile()};
}

NetworkEffects effects_of(const AskedPlace& place, const std::string& mesh, std::vector<double> slow = {0.5}) {
  std::vector<std::string> overrides{"batch.seq=128", "batch.sequences=8", "model.layers=2", "mesh.dp=2", mesh};
  AskedRun asked = asked_preset("pythia-70m", overrides, 1);
  return network_effects({.asked = asked, .place = place, .slow_links = std::move(slow)});
}

TEST(RankPlacement, CountsTheNearestAxisFastest) {
  Mesh mesh{{{"pp", 2}, {"dp", 2}, {"tp", 3}}};  // rank = tp + 3 (dp + 2 pp)
  std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(RankPlacement().devices_of(mesh, all), all);
  EXPECT_EQ(RankPlacement({"tp", "dp", "pp"}).devices_of(mesh, all), all);
  // dp + 2 (tp + 3 pp)
  EXPECT_EQ(RankPlacement({"dp"}).devices_of(mesh, all), (std::vector<int>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
  // pp + 2 (dp + 2 tp)
  EXPECT_EQ(RankPlacement({"pp", "dp"}).devices_of(mesh, all),
            (std::vector<int>{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11}));
}

// The gradients of 70 M parameters are more than the activations of a thousand tokens: their axis belongs in the node.
TEST(NetworkEffects, TheAxisThatSendsMostBelongsInTheNode) {
  NetworkEffects answer = effects_of(place_on_two(1e9), "mesh.tp=2");
  ASSERT_EQ(answer.axes.size(), 2u);
  EXPECT_EQ(answer.axes[0].axis, "tp");
  EXPECT_EQ(answer.axes[0].in_node, 2);
  EXPECT_EQ(answer.axes[0].level, "node");
  EXPECT_EQ(answer.axes[1].axis, "dp");
  EXPECT_EQ(answer.axes[1].in_node, 1);
  EXPECT_EQ(answer.axes[1].level, "cluster");
  ASSERT_EQ(answer.placements.size(), 1u);
  EXPECT_EQ(answer.placements[0].what, "dp tp");
  EXPECT_LT(answer.placements[0].step_s, 0.8 * answer.step_s);
  // Where all links are alike, so are all orders.
  AskedPlace flat = place_on_two(1e9);
  flat.machine.levels = {{.name = "all", .devices = 0, .link = {1e9, 5e-6}}};
  NetworkEffects alike = effects_of(flat, "mesh.tp=2");
  EXPECT_DOUBLE_EQ(alike.placements.at(0).step_s, alike.step_s);
}

TEST(NetworkEffects, EveryOrderOfThreeAxes) {
  NetworkEffects answer = effects_of(place_on_two(1e9), "mesh.pp=2");
  EXPECT_EQ(answer.placements.size(), 1u);
  std::vector<std::string> overrides{"batch.seq=128", "batch.sequences=8", "model.layers=2",
                                     "mesh.dp=2",     "mesh.tp=2",         "mesh.pp=2"};
  AskedRun asked = asked_preset("pythia-70m", overrides, 1);
  AskedPlace place = place_on_two(1e9);
  answer = network_effects({.asked = asked, .place = place, .slow_links = {}});
  ASSERT_EQ(answer.placements.size(), 5u);
  for (size_t i = 1; i < 5; ++i) EXPECT_LE(answer.placements[i - 1].step_s, answer.placements[i].step_s);
  EXPECT_TRUE(answer.slow_links.empty());
}

// One link of the cluster at a quarter: as a network that has a quarter.
TEST(NetworkEffects, ASlowLinkIsASlowNetwork) {
  NetworkEffects answer = effects_of(place_on_two(1e9), "mesh.tp=2", {0.25, 0.5});
  ASSERT_EQ(answer.slow_links.size(), 4u);
  EXPECT_EQ(answer.slow_links[2].what, "cluster");
  EXPECT_EQ(answer.slow_links[2].rate_share, 0.25);
  EXPECT_DOUBLE_EQ(answer.slow_links[2].step_s, effects_of(place_on_two(0.25e9), "mesh.tp=2").step_s);
  EXPECT_GT(answer.slow_links[2].step_s, answer.slow_links[3].step_s);
  auto json = network_effects_json(answer);
  EXPECT_EQ(json["slow_links"][2]["step_s"], answer.slow_links[2].step_s);
  std::string text = network_effects_text(answer);
  EXPECT_NE(text.find("cluster, at 0.25 of its rate"), text.npos) << text;
  // Two ranks on one node use no other level.
  EXPECT_EQ(effects_of(place_on_two(1e9), "mesh.tp=1").slow_links.size(), 1u);
}

TEST(NetworkEffects, WhatHasNoNetworkIsRefused) {
  AskedPlace place = place_on_two(1e9);
  AskedRun alone = asked_preset("pythia-70m", std::vector<std::string>{"batch.seq=128", "batch.sequences=8"}, 1);
  EXPECT_THROW(network_effects({.asked = alone, .place = place, .slow_links = {}}), UserError);
  place.machine.device.memory_bytes = 1e6;
  std::vector<std::string> two{"batch.seq=128", "batch.sequences=8", "mesh.dp=2"};
  AskedRun asked = asked_preset("pythia-70m", two, 1);
  EXPECT_THROW(network_effects({.asked = asked, .place = place, .slow_links = {}}), DoesNotFit);
}

}  // namespace
}  // namespace sextant
