// Tokens to experts with one copy for each rank that holds some of a token's experts, instead of one for each expert
// (dispatch.cpp has groups, blocks and queues). A group has `copies` rows for the tokens that it sends to a block, and
// the block has `capacity` rows for their slots, filled at the receiver:
//   copies_map      which token goes into which copy, and which slot into which row
//   copies_to_rows  rows from the copies that a rank got
//   rows_to_copies  the sum of each copy's rows, which goes back
// dispatch and combine take tokens to copies and back: what names a copy is the token's first slot in the block.
//
// row_experts says of a row its token in the group too: token·experts + expert, of which the linears read the expert
// modulo their count in a block. The rows of a token stand side by side in a block, and copies in the order of tokens:
// that is all a receiver needs.
//
// Several rounds take pieces of the tokens, `tokens` of them each, so that a token's sums are made in one round and
// have the bits of a Program with rows for all (on CPUs). Pieces may be small enough for any routing, or larger, and
// then leave what finds no row.
//
// copies_map has no row for ranks that hold some blocks: where a slot goes depends on all slots before it.
//
// No row along k: slots are split with their tokens.
#include "ops/ops.h"
#include "ops/row_shapes.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef copies_map{
    .name = "copies_map",
    .contract =
        "Of each group, the tokens that `round` takes go in order: one with k > 0 experts in block d takes the next "
        "of d's `copies` copies and the next k of its `capacity` rows, unless one of them, or a token before, found no "
        "place. copies names the first of those slots, sources each row's, row_experts[row] = token·(blocks·"
        "experts_per_block) + expert. All tokens go in n rounds of `tokens` each; lost[n - 1] counts the slots of all "
        "groups that they leave, the others lost[i], for each group and block, rows or copies beyond i + 1 times what "
        "there are.",
    .operands = "experts[b s k] -> copies[a c m], sources[a c n], row_experts[a c n], lost[l]",
    .attrs = {"batch", "positions", "blocks", "capacity", "copies", "most", "tokens", "round", "rounds",
              "experts_per_block"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      TensorType copies{DType::i32, of_all_blocks(attrs, in[0].shape, attrs.integer("copies"))};
      TensorType rows{DType::i32, of_all_blocks(attrs, in[0].shape, attrs.integer("capacity"))};
      return {copies, rows, rows, lost_in_rounds(attrs.integer("rounds"))};
    },
    .rows = {"experts:S(b) -> copies:S(a) sources:S(a) row_experts:S(a) lost:P",
             "experts:S(s) -> copies:S(c) sources:S(c) row_experts:S(c) lost:P"},
    .cost = streaming_cost(4),
    .recompute = Recompute::never,
    .examples = {{.name = "two_blocks",
                  .inputs = {i32({2, 4, 2})},
                  .attrs = {{"batch", 1},
                            {"positions", 2},
                            {"blocks", 2},
                            {"capacity", 4},
                            {"copies", 2},
                            {"most", 4},
                            {"tokens", 2},
                            {"round", 0},
                            {"rounds", 1},
                            {"experts_per_block", 2}},
                  .integers_below = 4},
                 {.name = "second_of_three_rounds",
                  .inputs = {i32({4, 4, 3})},
                  .attrs = {{"batch", 2},
                            {"positions", 2},
                            {"blocks", 3},
                            {"capacity", 7},
                            {"copies", 2},
                            {"most", 12},
                            {"tokens", 2},
                            {"round", 1},
                            {"rounds", 2},
                            {"experts_per_block", 2}},
                  .integers_below = 6}},
};

const OpDef copies_to_rows{
    .name = "copies_to_rows",
    .contract =
        "y of a row = x of its copy: in each block, the first rows of one token have the first copy, and so on; 0 "
        "where a row has no expert.",
    .operands = "x[a c m h], row_experts[a c n] -> y[a c n h]",
    .attrs = {"capacity", "copies", "experts"},
    .shape = rows_as_numbered,
    .rows = {"a", "c", "x:S(m) row_experts:S(n) -> y:S(n)", "x:S(h) row_experts:R -> y:S(h)",
             "x:P row_experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({rows_to_copies, {s.output_gradient(0), s.input(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "four_blocks",
                  .inputs = {f64({2, 2, 8, 4}), i32({2, 2, 12})},
                  .attrs = {{"capacity", 3}, {"copies", 2}, {"experts", 2}},
                  .integers_below = 7}},
};

const OpDef rows_to_copies{
    .name = "rows_to_copies",
    .contract = "y of a copy = the sum of x over its rows, as copies_to_rows gives them out, in their order.",
    .operands = "x[a c n h], row_experts[a c n] -> y[a c m h]",
    .attrs = {"capacity", "copies", "experts"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& rows = in[1].shape;
      return {{in[0].dtype,
               {rows[0], rows[1], rows[2] / attrs.integer("capacity") * attrs.integer("copies"), in[0].shape[3]}}};
    },
    .rows = {"a", "c", "x:S(n) row_experts:S(n) -> y:S(m)", "x:S(h) row_experts:R -> y:S(h)",
             "x:P row_experts:R -> y:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({copies_to_rows, {s.output_gradient(0), s.input(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(1),
    .examples = {{.name = "four_blocks",
                  .inputs = {f64({2, 2, 12, 4}), i32({2, 2, 12})},
                  .attrs = {{"capacity", 3}, {"copies", 2}, {"experts", 2}},
                  .integers_below = 7}},
};

}  // namespace sextant::ops
