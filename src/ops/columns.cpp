// split_columns takes rows apart, join_columns puts rows one beside the other; each is the other's gradient. They save
// nothing. What follows must read the first part of what is taken apart; where nothing reads the second, its gradient
// is 0.
//
// No row along i, j or k: a rank would have to hold a part of both sides.
#include "base/error.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef split_columns{
    .name = "split_columns",
    .contract = "y | z = x: y has the first `columns` elements of each row, z the `others`.",
    .operands = "x[b s i] -> y[b s j], z[b s k]",
    .attrs = {"columns", "others"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& x = in[0].shape;
      return {{in[0].dtype, {x[0], x[1], attrs.integer("columns")}},
              {in[0].dtype, {x[0], x[1], attrs.integer("others")}}};
    },
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          BUG_IF(s.output_gradient(0) == kNoValue, "{}: nothing reads the first part", s.op().path);
          std::vector<ValueId> parts{s.output_gradient(0)};
          if (s.output_gradient(1) != kNoValue) parts.push_back(s.output_gradient(1));
          s.emit({join_columns, std::move(parts), {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "uneven", .inputs = {f64({2, 4, 7})}, .attrs = {{"columns", 5}, {"others", 2}}},
                 {.name = "three", .inputs = {f64({3, 12, 4})}, .attrs = {{"columns", 1}, {"others", 3}}}},
};

const OpDef join_columns{
    .name = "join_columns",
    .contract = "x = y | z, row by row, of `columns` and `others` elements; 0 where there is no z.",
    .operands = "y[b s j], z?[b s k] -> x[b s i]",
    .attrs = {"columns", "others"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& y = in[0].shape;
      return {{in[0].dtype, {y[0], y[1], attrs.integer("columns") + attrs.integer("others")}}};
    },
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          BUG_IF(s.input_count() < 2, "{}: rows joined with zeros are a gradient", s.op().path);
          s.emit({split_columns, {s.output_gradient(0)}, {0, 1}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples =
        {{.name = "uneven", .inputs = {f64({2, 4, 5}), f64({2, 4, 2})}, .attrs = {{"columns", 5}, {"others", 2}}},
         {.name = "three", .inputs = {f64({3, 12, 1}), f64({3, 12, 3})}, .attrs = {{"columns", 1}, {"others", 3}}}},
};

}  // namespace sextant::ops
