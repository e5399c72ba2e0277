// dispatch and combine: tokens go to the ranks that hold their experts, and what the experts give comes back. Experts
// stand in blocks, one for each rank of expert parallelism; tokens stand in groups, one or more for each rank that has
// some: `batch` sequences by `positions` positions. The slots of a group (a token and one of its experts each) that go
// to a block stand in a queue, in the order of tokens, and `most` is the longest that a routing makes. A group has
// `capacity` rows for each block, and n is all of them; with a capacity below `most`, rows may go in several rounds, of
// which round r takes the places [r·capacity, (r + 1)·capacity) of every queue:
//   dispatch_map      which slot goes into which row, and to which expert
//   dispatch          rows from tokens
//   combine           tokens from rows: each is the sum of its slots' rows
//   dispatch_weights  the routing weight of each row's slot
// A slot counts within its group: (position in the group)·top_k + j. A row without a slot has source and expert -1 and
// holds zeros. Groups of one rank and blocks of another meet by redistribution of rows, from the dims of groups to n
// (all-to-all), or by gathering tokens first: then each rank fills the rows of its own block (`gathered`). A third way
// is that of token_copies.cpp.
//
// A token's rows are added in the order of their places in queues, the last first where `last_first` is set: rounds are
// pieces of that order, so that a sum which goes on from one round to the next is, to the bit, the sum of one round
// with rows for all (on CPUs).
//
// dispatch_map has no row for ranks that hold some blocks: where a slot goes depends on all slots before it.
//
// No row along k: slots are split with their tokens.
#include "base/units.h"
#include "ops/ops.h"
#include "ops/row_shapes.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

// Attrs that dispatch and combine share; only combine has `last_first`.
Attrs moves(const Attrs& attrs) {
  Attrs shared;
  for (std::string_view name : {"batch", "positions", "top_k", "capacity"}) shared.set(name, attrs.integer(name));
  return shared;
}

}  // namespace

const OpDef dispatch_map{
    .name = "dispatch_map",
    .contract =
        "Of each group, the slots whose experts are in block d stand in the queue of d in order, and the capacity of "
        "them that `round` takes go into the rows [d·capacity, (d + 1)·capacity): sources names them, row_experts "
        "their experts. lost[i] counts the slots of all groups beyond place (i + 1)·capacity of their queue: those "
        "that i + 1 rounds leave.",
    .operands = "experts[b s k] -> sources[a c n], row_experts[a c n], lost[m]",
    .attrs = {"batch", "positions", "blocks", "capacity", "most", "round", "experts_per_block", "gathered"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      TensorType rows{DType::i32, of_all_blocks(attrs, in[0].shape, attrs.integer("capacity"))};
      return {rows, rows, lost_in_rounds(ceil_div(attrs.integer("most"), attrs.integer("capacity")))};
    },
    .rows = {"experts:S(b) -> sources:S(a) row_experts:S(a) lost:P",
             "experts:S(s) -> sources:S(c) row_experts:S(c) lost:P"},
    .cost = streaming_cost(4),
    .recompute = Recompute::never,
    .examples = {{.name = "two_blocks",
                  .inputs = {i32({2, 4, 2})},
                  .attrs = {{"batch", 1},
                            {"positions", 2},
                            {"blocks", 2},
                            {"capacity", 4},
                            {"most", 4},
                            {"round", 0},
                            {"experts_per_block", 2}},
                  .integers_below = 4},
                 {.name = "second_of_three_rounds",
                  .inputs = {i32({4, 4, 3})},
                  .attrs = {{"batch", 2},
                            {"positions", 2},
                            {"blocks", 3},
                            {"capacity", 4},
                            {"most", 12},
                            {"round", 1},
                            {"experts_per_block", 1}},
                  .integers_below = 3}},
};

const OpDef dispatch{
    .name = "dispatch",
    .contract = "y of a row = x of the token whose slot is its source; 0 where there is none.",
    .operands = "x[b s h], sources[a c n] -> y[a c n h]",
    .attrs = {"batch", "positions", "top_k", "capacity"},
    .shape = rows_as_numbered,
    .rows = {"x:S(b) sources:S(a) -> y:S(a)", "x:S(s) sources:S(c) -> y:S(c)", "x:R sources:S(n) -> y:S(n)",
             "x:S(h) sources:R -> y:S(h)", "x:P sources:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({combine, {s.output_gradient(0), s.input(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "top_two",
                  .inputs = {f64({2, 4, 6}), i32({2, 2, 6})},
                  .attrs = {{"batch", 1}, {"positions", 2}, {"top_k", 2}, {"capacity", 3}},
                  .integers_below = 7,
                  .distinct = true}},
};

const OpDef combine{
    .name = "combine",
    .contract =
        "y of a token = the sum of x over the rows of its slots, added to onto where that is given; no two rows have "
        "one source.",
    .operands = "x[a c n h], sources[a c n], onto?[b s h] -> y[b s h]",
    .attrs = {"batch", "positions", "top_k", "capacity", "last_first"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, tokens_of_groups(attrs, in[1].shape, in[0].shape[3])}};
    },
    .rows = {"x:S(a) sources:S(a) onto:S(b) -> y:S(b)", "x:S(c) sources:S(c) onto:S(s) -> y:S(s)",
             "x:S(n) sources:S(n) onto:P -> y:P", "x:S(h) sources:R onto:S(h) -> y:S(h)",
             "x:P sources:R onto:P -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({dispatch, {s.output_gradient(0), s.input(1)}, {0}, moves(s.op().attrs)});
          if (s.input_count() > 2 && s.needs_gradient(2)) s.pass(2, s.output_gradient(0));
        },
    .cost = streaming_cost(1),
    .accumulate = Accumulate::supported,
    .examples = {{.name = "top_two",
                  .inputs = {f64({2, 2, 6, 4}), i32({2, 2, 6})},
                  .attrs = {{"batch", 1}, {"positions", 2}, {"top_k", 2}, {"capacity", 3}},
                  .integers_below = 7,
                  .distinct = true}},
};

const OpDef dispatch_weights{
    .name = "dispatch_weights",
    .contract = "y of a row = the weight of the slot that is its source; 0 where there is none.",
    .operands = "weights[b s k], sources[a c n] -> y[a c n]",
    .attrs = {"batch", "positions", "top_k"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, in[1].shape}};
    },
    .rows = {"weights:S(b) sources:S(a) -> y:S(a)", "weights:S(s) sources:S(c) -> y:S(c)",
             "weights:R sources:S(n) -> y:S(n)"},
    .backward =
        [](BackwardScope& s) {
          s.emit({dispatch_weights_backward, {s.output_gradient(0), s.input(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "top_two",
                  .inputs = {f64({2, 4, 2}), i32({2, 2, 6})},
                  .attrs = {{"batch", 1}, {"positions", 2}, {"top_k", 2}},
                  .integers_below = 7,
                  .distinct = true}},
};

const OpDef dispatch_weights_backward{
    .name = "dispatch_weights_backward",
    .contract = "dweights of a slot = dy of its row; 0 where it has none.",
    .operands = "dy[a c n], sources[a c n] -> dweights[b s k]",
    .attrs = {"batch", "positions", "top_k"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, tokens_of_groups(attrs, in[1].shape, attrs.integer("top_k"))}};
    },
    .rows = {"dy:S(a) sources:S(a) -> dweights:S(b)", "dy:S(c) sources:S(c) -> dweights:S(s)",
             "dy:S(n) sources:S(n) -> dweights:P", "dy:P sources:R -> dweights:P"},
    .cost = streaming_cost(0),
    .accumulate = Accumulate::supported,
    .examples = {{.name = "top_two",
                  .inputs = {f64({2, 2, 6}), i32({2, 2, 6})},
                  .attrs = {{"batch", 1}, {"positions", 2}, {"top_k", 2}},
                  .integers_below = 7,
                  .distinct = true}},
};

}  // namespace sextant::ops
