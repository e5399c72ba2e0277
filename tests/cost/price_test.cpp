// Prices worked out by hand on the machine of hand_program.h: every field of every kind of price.
#include "cost/price.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/attention_time.h"
#include "cost/collective.h"
#include "cost/gemm_time.h"
#include "cost/hand_program.h"

namespace sextant {
namespace {

using enum RegionKind;

void expect_price(const OpPrice& price, const OpPrice& expected) {
  EXPECT_NEAR(price.seconds, expected.seconds, 1e-9 * std::max(1.0, expected.seconds));
  EXPECT_DOUBLE_EQ(price.kernels, expected.kernels);
  EXPECT_DOUBLE_EQ(price.flops, expected.flops);
  EXPECT_DOUBLE_EQ(price.bytes, expected.bytes);
  EXPECT_EQ(price.message, expected.message);
  EXPECT_EQ(price.axes, expected.axes);
  EXPECT_EQ(price.level, expected.level);
}

OpPrice price_of(const HandProgram& hand, const Op& op, const SoftwareProfile& profile = own_profile(),
                 const Machine& machine = machine_on_paper()) {
  Pricer pricer(machine, machine.tables, profile);
  return pricer.price(hand.program, op);
}

// Stages in pairs of nodes; tp inside a node, dp between two.
Mesh mesh() {
  return {{{"pp", 2}, {"dp", 2}, {"tp", 2}}};
}

TEST(Price, StreamingKernels) {
  HandProgram hand(mesh(), 0);
  OpDef any = streaming_op("any"), rope = streaming_op("rope");
  Op& op = hand.add(forward, any, "x", {{"bytes", 3'000'000}});
  expect_price(price_of(hand, op), {.seconds = 3 + 2 + 0.125, .kernels = 1, .flops = 7, .bytes = 3e6});
  Op& nothing = hand.add(forward, any, "nothing", {{"bytes", 0}});
  expect_price(price_of(hand, nothing), {.seconds = 0.125, .kernels = 1, .flops = 7, .bytes = 0});
  // Written in elementary operations: 4.5 times the bytes in 12 kernels, each of which does not fill the device.
  Op& turned = hand.add(forward, rope, "rope", {{"bytes", 1'000'000}});
  SoftwareProfile eager = own_profile(), one = own_profile();
  eager.elementwise = Elementwise::eager;
  one.eager_ops = {"rope"};
  for (const SoftwareProfile& profile : {eager, one})
    expect_price(price_of(hand, turned, profile),
                 {.seconds = 4.5 + 12 * 2 + 12 * 0.125, .kernels = 12, .flops = 7, .bytes = 1e6});
  expect_price(price_of(hand, turned), {.seconds = 1 + 2 + 0.125, .kernels = 1, .flops = 7, .bytes = 1e6});
}

// A loss: two GEMMs, and 1000 logits that are made and read again inside.
TEST(Price, GemmsAndWhatTheyMakeInside) {
  Machine machine = machine_on_paper();
  Gemm one{.rows = 256, .columns = 128, .depth = 64}, two{.rows = 128, .columns = 64, .depth = 256};
  OpDef loss{.name = "loss"};
  Gemm::Of of = Gemm::Of::model;
  loss.cost = [&](const Attrs&, auto, auto) {
    Gemm first = one, second = two;
    first.of = second.of = of;
    return Cost{.flops = {11}, .read = {500}, .written = {200}, .gemms = {first, second}, .inner = 1000};
  };
  HandProgram hand(mesh(), 0);
  ValueId x = hand.value("x", 1000, ValueKind::activation, DType::bf16);
  Op& op = hand.add(forward, loss, "loss", {}, {x});
  double gemms = 0;
  for (const Gemm& gemm : {one, two}) gemms += gemm_seconds(machine, machine.tables, {gemm, 2, "bf16"});
  struct Case {
    bool eager, f32;
    double bytes_per_logit;
  };
  for (const Case& c : {Case{false, false, 6}, Case{false, true, 26}, Case{true, false, 52}, Case{true, true, 52}}) {
    SoftwareProfile profile = own_profile();
    profile.loss_eager = c.eager, profile.loss_in_f32 = c.f32;
    expect_price(
        price_of(hand, op, profile),
        {.seconds = gemms + c.bytes_per_logit * 1000 / kMega + 5 * 0.125, .kernels = 2 + 3, .flops = 11, .bytes = 700});
  }
  // In f32 the operands are twice as wide, on other units.
  HandProgram wide(mesh(), 0);
  Op& in_f32 = wide.add(forward, loss, "loss", {}, {wide.value("x", 1000)});
  double wide_gemms = 0;
  for (const Gemm& gemm : {one, two}) wide_gemms += gemm_seconds(machine, machine.tables, {gemm, 4, "fp32"});
  EXPECT_NE(wide_gemms, gemms);
  expect_price(price_of(wide, in_f32),
               {.seconds = wide_gemms + 0.006 + 5 * 0.125, .kernels = 5, .flops = 11, .bytes = 700});
  // A result that another op has already computed costs nothing with software that kept it.
  SoftwareProfile keeping = own_profile();
  keeping.keeps_logits = true;
  EXPECT_GT(price_of(hand, op, keeping).seconds, 0);
  of = Gemm::Of::repeated;
  EXPECT_GT(price_of(hand, op).seconds, 0);
  expect_price(price_of(hand, op, keeping), {});
}

// An embedding whose rows are looked up by a GEMM: 64 tokens, 512 words, 32 wide. The rows that are one at the token
// are written by a kernel of their own in forward, and are there in backward.
TEST(Price, EmbeddingsThatAreGemms) {
  Machine machine = machine_on_paper();
  OpDef lookup = streaming_op("lookup"), gradient = streaming_op("gradient");
  lookup.lookup = TokenLookup::rows, gradient.lookup = TokenLookup::gradients;
  HandProgram hand(mesh(), 0);
  ValueId tokens = hand.value("tokens", 64 * 4, ValueKind::feed, DType::i32), w = hand.value("w", 0),
          y = hand.value("y", 64 * 32 * 2, ValueKind::activation, DType::bf16), dw = hand.value("dw", 0);
  for (ValueId id : {w, dw}) hand.program.values[static_cast<size_t>(id)].local = LocalShape({512, 32});
  Op look_up = hand.add(forward, lookup, "look up", {{"bytes", 1'000'000}}, {tokens, w}, {y});
  Op back = hand.add(backward, gradient, "back", {{"bytes", 1'000'000}}, {y, tokens, w}, {dw});
  back.phase = Phase::weight_gradient;
  auto gemm = [&](double rows, double columns, double depth) {
    return gemm_seconds(machine, machine.tables, {{.rows = rows, .columns = columns, .depth = depth}, 2, "bf16"});
  };
  SoftwareProfile profile = own_profile();
  profile.embedding_gemm = true;
  expect_price(
      price_of(hand, look_up, profile),
      {.seconds = gemm(64, 32, 512) + 2.0 * 64 * 512 / kMega + 2 * 0.125, .kernels = 2, .flops = 7, .bytes = 1e6});
  expect_price(price_of(hand, back, profile),
               {.seconds = gemm(512, 32, 64) + 0.125, .kernels = 1, .flops = 7, .bytes = 1e6});
  expect_price(price_of(hand, look_up), {.seconds = 1 + 2 + 0.125, .kernels = 1, .flops = 7, .bytes = 1e6});
}

// Software whose GEMMs do not add a microbatch's weight gradient to those before it passes over both once more.
TEST(Price, WeightGradientsThatAnotherKernelAddsUp) {
  Machine machine = machine_on_paper();
  Gemm gemm{.rows = 256, .columns = 128, .depth = 64};
  OpDef gradient{.name = "gradient", .accumulate = Accumulate::supported};
  gradient.cost = [&](const Attrs&, auto, auto) { return Cost{.flops = {11}, .read = {500}, .gemms = {gemm}}; };
  HandProgram hand(mesh(), 0);
  ValueId x = hand.value("x", 1000, ValueKind::activation, DType::bf16),
          sum = hand.value("sum", 4000, ValueKind::gradient), dw = hand.value("dw", 4000, ValueKind::gradient);
  Op op = hand.add(backward, gradient, "dw", {{"accumulate", 1}}, {x, sum}, {dw});
  op.phase = Phase::weight_gradient;
  double alone = gemm_seconds(machine, machine.tables, {gemm, 2, "bf16"}) + 0.125;
  SoftwareProfile profile = own_profile();
  profile.accumulation_bytes = 18;
  hand.program.schedule = {{.region = forward}, {.region = backward}};
  expect_price(price_of(hand, op, profile), {.seconds = alone, .kernels = 1, .flops = 11, .bytes = 500});
  hand.program.schedule.push_back({.region = backward, .microbatch = 1});
  expect_price(price_of(hand, op), {.seconds = alone, .kernels = 1, .flops = 11, .bytes = 500});
  expect_price(price_of(hand, op, profile),
               {.seconds = alone + 1000 * 18 / kMega + 0.125, .kernels = 2, .flops = 11, .bytes = 500 + 18'000});
  op.phase = Phase::input_gradient;
  expect_price(price_of(hand, op, profile), {.seconds = alone, .kernels = 1, .flops = 11, .bytes = 500});
}

// A machine's grouped GEMMs are of our own kernels; of other software the profile says what is known.
TEST(Price, GroupedGemmsAsMeasuredOfOurKernelsAlone) {
  Machine machine = machine_on_paper();
  Gemm gemm{.rows = 64, .columns = 128, .depth = 256, .count = 8};
  OpDef experts{.name = "experts"};
  experts.cost = [&](const Attrs&, auto, auto) { return Cost{.flops = {gemm.flops()}, .gemms = {gemm}}; };
  HandProgram hand(mesh(), 0);
  ValueId x = hand.value("x", 1000, ValueKind::activation, DType::bf16);
  double modelled = gemm_seconds(machine, machine.tables, {gemm, 2, "bf16"});
  SoftwareProfile theirs = own_profile(), looping = own_profile();
  theirs.kernels = Kernels::theirs;
  looping.expert_gemms = ExpertGemms::loop;
  struct Case {
    Phase phase;
    GroupedPass pass;
  };
  for (const Case& c : {Case{Phase::forward, GroupedPass::forward}, Case{Phase::recompute, GroupedPass::forward},
                        Case{Phase::input_gradient, GroupedPass::input_gradient},
                        Case{Phase::weight_gradient, GroupedPass::weight_gradient}}) {
    machine.grouped_gemms = {{c.pass, 8, 64, 128, 256, 5 * modelled, "bf16"}};
    Op& op = hand.add(forward, experts, "experts", {}, {x});
    op.phase = c.phase;
    EXPECT_NEAR(price_of(hand, op, own_profile(), machine).seconds, 5 * modelled + 0.125, 1e-9);
    EXPECT_NEAR(price_of(hand, op, theirs, machine).seconds, modelled + 0.125, 1e-9);
    Machine without = machine;
    without.grouped_gemms.clear();
    EXPECT_EQ(price_of(hand, op, looping, machine).seconds, price_of(hand, op, looping, without).seconds);
  }
}

// An optimizer's GEMMs are executed and no work of the model; they may be computed in another type than their operands.
TEST(Price, GemmsOfAnOptimizer) {
  Machine machine = machine_on_paper();
  Gemm gemm{.rows = 256, .columns = 128, .depth = 64, .of = Gemm::Of::optimizer};
  OpDef orthogonal{.name = "orthogonal"};
  orthogonal.cost = [&](const Attrs&, auto, auto) {
    return Cost{.flops = {gemm.flops()}, .gemms = {gemm}, .computes_in = DType::bf16};
  };
  HandProgram hand(mesh(), 0);
  Op& op = hand.add(forward, orthogonal, "orthogonal", {}, {hand.value("x", 1000)});
  SoftwareProfile keeping = own_profile();
  keeping.keeps_logits = true;
  double seconds = gemm_seconds(machine, machine.tables, {gemm, 2, "bf16"});
  EXPECT_NEAR(price_of(hand, op, keeping).seconds, seconds + 0.125, 1e-12);
  EXPECT_EQ(model_flops(orthogonal.cost({}, {}, {}), CountAttention::causal).n, 0);
}

// Of a head, the logits: rows by words. Where they are made a second time, that is said.
TEST(Price, LogitsThatAHeadMakesInside) {
  for (const OpDef* def : {&ops::head_loss, &ops::head_loss_backward, &ops::head_lse}) {
    for (const Example& example : def->examples) {
      Cost cost = def->cost(example.attrs, example.inputs, infer_types(*def, example.attrs, example.inputs));
      double rows = static_cast<double>(example.inputs[0].shape.rows()),
             words = static_cast<double>(example.inputs[1].shape[0]);
      EXPECT_EQ(cost.inner, rows * words) << def->name;
      EXPECT_EQ(cost.gemms.front().of == Gemm::Of::repeated, def == &ops::head_lse) << def->name;
    }
  }
}

TEST(Price, AttentionIsItsKernelsAndTheirStarts) {
  Machine machine = machine_on_paper();
  machine.attention["cudnn"] = {.forward_64 = 0.4, .forward_128 = 0.6, .backward_64 = 0.2, .backward_128 = 0.5};
  AttentionWork work{.batch = 2, .heads = 4, .queries = 900, .keys = 1600, .head_dim = 96, .seen = 0.25};
  OpDef attention{.name = "attention"};
  attention.cost = [&](const Attrs&, auto, auto) {
    return Cost{.flops = {work.flops()}, .read = {300}, .written = {100}, .attention = work};
  };
  HandProgram hand(mesh(), 0);
  Op& op = hand.add(forward, attention, "attention", {}, {hand.value("qkv", 1000, ValueKind::activation, DType::bf16)});
  for (bool back : {false, true}) {
    work.backward = back;
    AttentionTime time = attention_time(machine, machine.tables, own_profile(), work, "bf16");
    double kernels = back ? 3 : 1;
    EXPECT_EQ(time.kernels, kernels);
    expect_price(price_of(hand, op, own_profile(), machine),
                 {.seconds = time.seconds + kernels * 0.125,
                  .kernels = kernels,
                  .flops = (back ? 5 : 2) * 2.0 * 2 * 4 * 900 * 1600 * 0.25 * 96,
                  .bytes = 400});
  }
}

// 96 lies between the table's 64 and 128; the length is the geometric mean, 1200, of which 1200/1900 of the rate is
// reached.
TEST(AttentionTime, FusedByHand) {
  Machine machine = machine_on_paper();
  machine.device.memory_bytes_per_s = 1e15;
  machine.attention["cudnn"] = {.forward_64 = 0.4, .forward_128 = 0.6, .backward_64 = 0.2, .backward_128 = 0.5};
  AttentionWork work{.batch = 2, .heads = 4, .queries = 900, .keys = 1600, .head_dim = 96, .seen = 0.5};
  double square = 2.0 * 4 * 900 * 1600, reached = 8e12 * 0.5 * 1200 / 1900;
  auto time = [&] { return attention_time(machine, machine.tables, own_profile(), work, "bf16"); };
  EXPECT_NEAR(time().seconds, 2 * 2 * square * 0.5 * 96 / (reached * 0.5), 1e-12);
  EXPECT_EQ(time().kernels, 1);
  work.backward = true;
  EXPECT_NEAR(time().seconds, 5 * 2 * square * 0.5 * 96 / (reached * 0.35), 1e-12);
  EXPECT_EQ(time().kernels, 3);
  // Heads of 80 are filled up to 96, those of 200 have the rate of 128 and are filled up to 224.
  work.backward = false, work.head_dim = 80;
  EXPECT_NEAR(time().seconds, 2 * 2 * square * 0.5 * 96 / (reached * 0.5), 1e-12);
  work.head_dim = 200;
  EXPECT_NEAR(time().seconds, 2 * 2 * square * 0.5 * 224 / (reached * 0.6), 1e-12);
  // One query over many keys waits for memory: q and y of its heads, k and v of theirs, at two bytes.
  machine.device.memory_bytes_per_s = 2 * kMega;
  work = {.batch = 2, .heads = 4, .queries = 1, .keys = 1000, .head_dim = 64, .seen = 1, .kv_heads = 2};
  EXPECT_NEAR(time().seconds, 2 * 2 * 64 * (2.0 * 4 + 2.0 * 2 * 1000) / kMega, 1e-9);
}

// A query that sees 200 of 1,000 keys on average has a window: two tiles more than that are gone over, at the rate of a
// causal length of 400. Where backward knows of no window, it goes over all that a causal one sees.
TEST(AttentionTime, WindowsByHand) {
  Machine machine = machine_on_paper();
  machine.device.memory_bytes_per_s = 1e15;
  machine.attention["cudnn"] = {.forward_64 = 0.4, .forward_128 = 0.6, .backward_64 = 0.2, .backward_128 = 0.5};
  AttentionWork work{.batch = 2, .heads = 4, .queries = 1000, .keys = 1000, .head_dim = 64, .seen = 0.2};
  SoftwareProfile profile = own_profile();
  auto seconds = [&] { return attention_time(machine, machine.tables, profile, work, "bf16").seconds; };
  double each_key = 2.0 * 4 * 1000 * 64;  // of all queries and heads
  double peak = 8e12 * machine.tables.attention;
  EXPECT_NEAR(seconds(), 2 * 2 * each_key * (200 + 128) / (peak * 0.4 * 400 / 1100), 1e-12);
  work.backward = true;
  EXPECT_NEAR(seconds(), 5 * 2 * each_key * (200 + 128) / (peak * 0.2 * 400 / 1100), 1e-12);
  profile.backward_without_window = true;
  EXPECT_NEAR(seconds(), 5 * 2 * each_key * 500 / (peak * 0.2 * 1000 / 1700), 1e-12);
  work.seen = 0.5;
  double causal = seconds();
  profile.backward_without_window = false;
  EXPECT_EQ(seconds(), causal);
}

// Copies around a kernel of sequences without padding: queries, keys and values are taken out of their batch (read and
// written), the output is put back into zeros; backward the other way round. Elements of two bytes.
TEST(AttentionTime, RepackingByHand) {
  Machine machine = machine_on_paper();
  machine.attention["cudnn"] = {.forward_64 = 0.4, .forward_128 = 0.6, .backward_64 = 0.2, .backward_128 = 0.5};
  AttentionWork work{.batch = 2, .heads = 4, .queries = 100, .keys = 50, .head_dim = 64, .seen = 0.5, .kv_heads = 2};
  double queries = 2.0 * 4 * 100 * 64, keys = 2.0 * 2 * 50 * 64;  // values as many as keys, outputs as queries
  SoftwareProfile plain = own_profile(), repacking = own_profile();
  repacking.repacks_attention = true;
  auto more = [&] {
    AttentionTime with = attention_time(machine, machine.tables, repacking, work, "bf16");
    AttentionTime without = attention_time(machine, machine.tables, plain, work, "bf16");
    return AttentionTime{.seconds = with.seconds - without.seconds, .kernels = with.kernels - without.kernels};
  };
  EXPECT_NEAR(more().seconds, (4 * (queries + 2 * keys) + 6 * queries) / kMega, 1e-9);
  EXPECT_EQ(more().kernels, 5);
  work.backward = true;
  EXPECT_NEAR(more().seconds, (6 * (queries + 2 * keys) + 4 * queries) / kMega, 1e-9);
  EXPECT_EQ(more().kernels, 7);
}

TEST(AttentionTime, UnfusedByHand) {
  Machine machine = machine_on_paper();  // without a table
  AttentionWork work{.batch = 2, .heads = 3, .queries = 64, .keys = 128, .head_dim = 64, .seen = 0.5};
  double scores = 2.0 * 3 * 64 * 128;
  auto gemm = [&](double rows, double columns, double depth) {
    return gemm_seconds(machine, machine.tables,
                        {{.rows = rows, .columns = columns, .depth = depth, .count = 6}, 2, "bf16"});
  };
  double there = gemm(64, 128, 64) + gemm(64, 64, 128);
  double back = gemm(64, 128, 64) + gemm(128, 64, 64) + gemm(64, 64, 128) + gemm(128, 64, 64);
  struct Case {
    bool backward, dropout, mask, again;
    double bytes_per_score, kernels;
  };
  for (const Case& c : {Case{false, false, false, false, 4, 4}, Case{false, true, false, false, 9, 5},
                        Case{false, false, true, false, 18, 4}, Case{true, false, false, false, 8, 6},
                        Case{true, true, false, false, 13, 7}, Case{true, true, true, false, 23, 7},
                        Case{true, false, false, true, 8 + 4, 6 + 4}}) {
    SoftwareProfile profile = own_profile();
    profile.attention = AttentionKernel::unfused;
    profile.dropout = c.dropout, profile.separate_mask = c.mask, profile.recompute_attention = c.again;
    work.backward = c.backward;
    AttentionTime time = attention_time(machine, machine.tables, profile, work, "bf16");
    EXPECT_NEAR(time.seconds, scores * c.bytes_per_score / kMega + (c.backward ? back : there) + (c.again ? there : 0),
                1e-9)
        << c.bytes_per_score;
    EXPECT_EQ(time.kernels, c.kernels) << c.bytes_per_score;
  }
  work.batch = 0;
  EXPECT_EQ(attention_time(machine, machine.tables, own_profile(), work, "bf16").seconds, 0);
}

TEST(Price, MessagesBetweenStages) {
  HandProgram hand(mesh(), 1);
  ValueId x = hand.value("x", 3'000'000);
  Op& sent = hand.add(forward, ops::send, "send", {{"peer", 0}, {"tag", 1}}, {x});
  expect_price(
      price_of(hand, sent),
      {.seconds = far_message(3), .kernels = 1, .bytes = 3e6, .message = Collective::send, .axes = "pp", .level = 1});
  Op& received = hand.add(forward, ops::recv, "recv", {{"peer", 0}, {"tag", 1}}, {}, {x});
  expect_price(price_of(hand, received), {.seconds = far_message(3),
                                          .kernels = 1,
                                          .bytes = 3e6,
                                          .message = Collective::receive,
                                          .axes = "pp",
                                          .level = 1});
  // Stages side by side in a node.
  HandProgram near(Mesh{{{"dp", 2}, {"pp", 2}}}, 0);
  Op& inside = near.add(forward, ops::send, "send", {{"peer", 1}, {"tag", 1}}, {near.value("x", 3'000'000)});
  expect_price(
      price_of(near, inside),
      {.seconds = near_message(3), .kernels = 1, .bytes = 3e6, .message = Collective::send, .axes = "pp", .level = 0});
  // f32 gradients of a tied weight that travel in 16 bits.
  SoftwareProfile narrow = own_profile();
  narrow.gradient_wire_bytes = 2;
  Op& tied = hand.add(update, ops::sum_stages, "tied", {{"stages", std::vector<int64_t>{0, 1}}}, {x}, {x});
  expect_price(price_of(hand, tied, narrow), {.seconds = far_all_reduce(1.5),
                                              .kernels = 1,
                                              .bytes = 1.5e6,
                                              .message = Collective::all_reduce,
                                              .axes = "pp",
                                              .level = 1});
}

Op& hop(HandProgram& hand, const char* transfer, const std::vector<std::string>& axes, ValueId x) {
  return hand.add(backward, ops::redistribute, transfer, {{"transfer", std::string(transfer)}, {"axes", axes}}, {x},
                  {hand.value("y", hand.program[x].local_bytes().n, ValueKind::activation, hand.program[x].dtype)});
}

// One way around the ring of two: half of what there is.
double near_one_way(double megabytes) {
  return (8.4 + 3.4) * 1e-6 + megabytes / 2;
}
double far_one_way(double megabytes) {
  return (8.4 + 14) * 1e-6 + megabytes / 2;
}

TEST(Price, CollectivesOfTensorParallelism) {
  HandProgram hand(mesh(), 0);
  ValueId x = hand.value("x", 4'000'000);
  expect_price(price_of(hand, hop(hand, "all_reduce", {"tp"}, x)), {.seconds = near_all_reduce(4),
                                                                    .kernels = 1,
                                                                    .bytes = 4e6,
                                                                    .message = Collective::all_reduce,
                                                                    .axes = "tp",
                                                                    .level = 0});
  expect_price(price_of(hand, hop(hand, "all_gather", {"tp"}, x)), {.seconds = near_one_way(4),
                                                                    .kernels = 1,
                                                                    .bytes = 4e6,
                                                                    .message = Collective::all_gather,
                                                                    .axes = "tp",
                                                                    .level = 0});
  expect_price(price_of(hand, hop(hand, "reduce_scatter", {"tp"}, x)), {.seconds = near_one_way(4),
                                                                        .kernels = 1,
                                                                        .bytes = 4e6,
                                                                        .message = Collective::reduce_scatter,
                                                                        .axes = "tp",
                                                                        .level = 0});
  // Half of what a rank has goes to the other.
  expect_price(price_of(hand, hop(hand, "all_to_all", {"tp"}, x)), {.seconds = (8.4 + 0.6) * 1e-6 + 2,
                                                                    .kernels = 1,
                                                                    .bytes = 4e6,
                                                                    .message = Collective::all_to_all,
                                                                    .axes = "tp",
                                                                    .level = 0});
  Op& shift = hand.add(forward, ops::ring_shift, "shift", {{"axis", std::string("tp")}}, {x}, {x});
  expect_price(
      price_of(hand, shift),
      {.seconds = near_message(4), .kernels = 1, .bytes = 4e6, .message = Collective::shift, .axes = "tp", .level = 0});
  // Nothing is done for a view, and nothing is sent in a group of one.
  expect_price(price_of(hand, hop(hand, "nothing", {"tp"}, x)), {});
  HandProgram alone(Mesh{{{"dp", 2}, {"tp", 1}}}, 0);
  expect_price(price_of(alone, hop(alone, "all_reduce", {"tp"}, alone.value("x", 4'000'000))), {});
}

// Gathered again for backward alone: free for software that kept it, unless something that is computed again reads it
// too.
TEST(Price, GathersThatSoftwareKeeps) {
  HandProgram hand(mesh(), 0);
  Op gather = hop(hand, "all_gather", {"tp"}, hand.value("x", 4'000'000));
  gather.phase = Phase::recompute;
  SoftwareProfile keeping = own_profile();
  keeping.keeps_gathered = true;
  expect_price(price_of(hand, gather, keeping), {});
  EXPECT_GT(price_of(hand, gather).seconds, 0);
  OpDef any = streaming_op("any");
  hand.add(backward, any, "again", {{"bytes", 1}}, {gather.outputs[0]}).phase = Phase::recompute;
  EXPECT_GT(price_of(hand, gather, keeping).seconds, 0);
}

TEST(Price, GradientsAndWeightsOfZero) {
  using enum Collective;
  HandProgram hand(mesh(), 0);
  ValueId gradient = hand.value("grad", 8'000'000, ValueKind::gradient),
          weight = hand.value("w", 4'000'000, ValueKind::parameter, DType::bf16);
  Op scatter = hop(hand, "reduce_scatter", {"dp"}, gradient), gather = hop(hand, "all_gather", {"dp"}, weight);
  SoftwareProfile profile = own_profile();
  expect_price(
      price_of(hand, scatter, profile),
      {.seconds = far_one_way(8), .kernels = 1, .bytes = 8e6, .message = reduce_scatter, .axes = "dp", .level = 1});
  expect_price(
      price_of(hand, gather, profile),
      {.seconds = far_one_way(4), .kernels = 1, .bytes = 4e6, .message = all_gather, .axes = "dp", .level = 1});
  // As wide as the software sends them.
  profile.gradient_wire_bytes = 2, profile.weight_wire_bytes = 4;
  expect_price(
      price_of(hand, scatter, profile),
      {.seconds = far_one_way(4), .kernels = 1, .bytes = 4e6, .message = reduce_scatter, .axes = "dp", .level = 1});
  expect_price(
      price_of(hand, gather, profile),
      {.seconds = far_one_way(8), .kernels = 1, .bytes = 8e6, .message = all_gather, .axes = "dp", .level = 1});
  // A part of a message of 16 MB has its part of the latency.
  profile = own_profile();
  profile.bucket_bytes = 16e6;
  expect_price(price_of(hand, scatter, profile), {.seconds = far_one_way(16) / 2,
                                                  .kernels = 1,
                                                  .bytes = 8e6,
                                                  .message = reduce_scatter,
                                                  .axes = "dp",
                                                  .level = 1});
  // Summed on every rank: there and back.
  profile = own_profile();
  profile.zero_all_reduces = true;
  expect_price(
      price_of(hand, scatter, profile),
      {.seconds = far_all_reduce(8), .kernels = 1, .bytes = 8e6, .message = reduce_scatter, .axes = "dp", .level = 1});
  // In one call with all the others: no start of its own, its hops and its bytes.
  profile.zero_coalesces = true;
  expect_price(
      price_of(hand, scatter, profile),
      {.seconds = 2 * 14e-6 + 8, .kernels = 1, .bytes = 8e6, .message = reduce_scatter, .axes = "dp", .level = 1});
  profile.zero_all_reduces = false;
  expect_price(price_of(hand, scatter, profile),
               {.seconds = 14e-6 + 4, .kernels = 1, .bytes = 8e6, .message = reduce_scatter, .axes = "dp", .level = 1});
  // Each rank broadcasts its half of the weights, one and a half tensors of the others' software: along a ring of two
  // the piece that the first hop passes on, and everything behind it.
  profile = own_profile();
  profile.zero_broadcasts = true;
  double each = (8.4 + 14) * 1e-6 + 0.524288 + 4.0 / 1.5;
  expect_price(price_of(hand, gather, profile),
               {.seconds = 1.5 * each, .kernels = 1, .bytes = 4e6, .message = all_gather, .axes = "dp", .level = 1});
}

// Shards inside a node and their copies in another: our sums go over shards and then over copies. Software that sums
// all gradients on every rank has one sum over both, and nothing is left for the second.
TEST(Price, GradientsOfShardsAndTheirCopies) {
  using enum Collective;
  HandProgram hand(Mesh{{{"pp", 1}, {"dp_out", 2}, {"dp", 2}, {"tp", 1}}}, 0);
  ValueId gradient = hand.value("g", 8'000'000, ValueKind::gradient);
  Op shards = hop(hand, "reduce_scatter", {"dp"}, gradient);
  Op copies = hop(hand, "all_reduce", {"dp_out"}, hand.value("shard", 4'000'000));
  shards.phase = copies.phase = Phase::weight_gradient;
  SoftwareProfile profile = own_profile();
  expect_price(
      price_of(hand, shards, profile),
      {.seconds = near_one_way(8), .kernels = 1, .bytes = 8e6, .message = reduce_scatter, .axes = "dp", .level = 0});
  expect_price(
      price_of(hand, copies, profile),
      {.seconds = far_all_reduce(4), .kernels = 1, .bytes = 4e6, .message = all_reduce, .axes = "dp_out", .level = 1});
  profile.zero_all_reduces = true;
  Machine machine = machine_on_paper();
  double all = collective_seconds(machine, machine.tables, all_reduce, 8e6, place_group(machine, {0, 1, 2, 3}));
  expect_price(price_of(hand, shards, profile),
               {.seconds = all, .kernels = 1, .bytes = 8e6, .message = reduce_scatter, .axes = "dp", .level = 1});
  expect_price(price_of(hand, copies, profile), {});
}

// An operand of 1,000 elements of 16 bits in NVFP4: read for its largest value, for its rows and for its columns, each
// of which is written in 4 bits with a sixteenth of a scale's byte. Weight gradients find theirs made.
TEST(Price, OperandsInNvfp4) {
  Machine machine = machine_on_paper();
  machine.device.peaks["fp4"] = 32e12;
  Gemm gemm{.rows = 256, .columns = 128, .depth = 64};
  OpDef linear{.name = "linear"};
  linear.cost = [&](const Attrs&, auto, auto) { return Cost{.flops = {gemm.flops()}, .gemms = {gemm}}; };
  HandProgram hand(mesh(), 0);
  ValueId x = hand.value("x", 2000, ValueKind::activation, DType::bf16);
  Op& op = hand.add(forward, linear, "linear", {}, {x}, {x});
  SoftwareProfile profile = own_profile();
  profile.products = Products::nvfp4;
  double alone = gemm_seconds(machine, machine.tables, {gemm, 0.5625, "fp4"});
  EXPECT_NEAR(price_of(hand, op, profile, machine).seconds,
              alone + 1000 * (3 * 2 + 2 * 0.5625) / kMega + (1 + 3) * kKernelSeconds, 1e-9);
  op.phase = Phase::weight_gradient;
  EXPECT_NEAR(price_of(hand, op, profile, machine).seconds, alone + 2 * kKernelSeconds, 1e-9);
}

// Ranks of a CPU: what was measured, else latency for every rank and the bytes.
TEST(Price, MessagesOfACpu) {
  Machine machine = machine_on_paper();
  machine.device.kind = DeviceKind::cpu;
  machine.levels.front().link = {2 * kMega, 0.25};
  HandProgram hand(mesh(), 0);
  ValueId x = hand.value("x", 4'000'000);
  Op sent = hand.add(forward, ops::send, "send", {{"peer", 1}, {"tag", 1}}, {x});
  expect_price(
      price_of(hand, sent, own_profile(), machine),
      {.seconds = 2 * 0.25 + 2, .kernels = 1, .bytes = 4e6, .message = Collective::send, .axes = "pp", .level = 0});
  Op sum = hand.add(update, ops::sum_stages, "tied", {{"stages", std::vector<int64_t>{0, 1, 3}}}, {x}, {x});
  expect_price(price_of(hand, sum, own_profile(), machine), {.seconds = 3 * 0.25 + 2,
                                                             .kernels = 1,
                                                             .bytes = 4e6,
                                                             .message = Collective::all_reduce,
                                                             .axes = "pp",
                                                             .level = 0});
  Op reduce = hop(hand, "all_reduce", {"dp", "tp"}, x);
  expect_price(price_of(hand, reduce, own_profile(), machine), {.seconds = 4 * 0.25 + 2,
                                                                .kernels = 1,
                                                                .bytes = 4e6,
                                                                .message = Collective::all_reduce,
                                                                .axes = "dp,tp",
                                                                .level = 0});
  machine.ops["all_reduce"] = {{.size = {4, 4e6}, .seconds = 9}};  // three times what latency and bytes say
  EXPECT_NEAR(price_of(hand, reduce, own_profile(), machine).seconds, 9, 1e-9);
  OpDef any = streaming_op("any");
  Op& op = hand.add(forward, any, "any", {{"bytes", 3'000'000}});
  machine.ops["any"] = {{.size = {3e6}, .seconds = 0.5}};
  expect_price(price_of(hand, op, own_profile(), machine), {.seconds = 0.5, .kernels = 1, .flops = 7, .bytes = 3e6});
  // Of two that were measured, the one nearer in size decides: a fifth away from one that took what its bytes say, and
  // more than three times from one that took three times as long.
  auto by_bytes = [](double bytes) { return 0.125 + bytes / kMega; };
  machine.ops["any"] = {{.size = {1e6}, .seconds = by_bytes(1e6)}, {.size = {4e6}, .seconds = 3 * by_bytes(4e6)}};
  Op& between = hand.add(forward, any, "between", {{"bytes", 1'200'000}});
  EXPECT_NEAR(price_of(hand, between, own_profile(), machine).seconds / by_bytes(1.2e6), 1, 0.01);
  // Nothing travels beside compute.
  Pricer pricer(machine, machine.tables, own_profile());
  EXPECT_FALSE(pricer.profile().overlap_gradients || pricer.profile().overlap_gathers ||
               pricer.profile().overlap_pipeline || pricer.profile().overlap_tensor ||
               pricer.profile().overlap_tensor_backward);
}

}  // namespace
}  // namespace sextant
