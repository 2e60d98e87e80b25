#include "apps/lu/options.h"

namespace lu {

std::vector<apps::Option> table(Options& o) {
  constexpr std::uint64_t kMost = 50000;
  std::vector<apps::Option> list{
      apps::whole("--order", o.matrix.order, 1, kMost, "rows and columns of the matrix"),
      apps::whole("--block", o.block, 1, 1000, "order of a block; 2 order/block + 1 supersteps"),
      apps::whole("--process-rows", o.process_rows, 0, 1'000'000,
                  "rows of the grid of ranks; 0: as square as possible"),
      apps::whole("--seed", o.matrix.seed, 0, UINT64_MAX, "seed of the generated matrix"),
      apps::whole("--zero-column", o.matrix.zero_column, 0, kMost,
                  "set this column (from 1) to zero, which makes the matrix singular")};
  for (auto& option : apps::common(o, "the factors, L below U: order x order raw doubles, row by row"))
    list.push_back(std::move(option));
  return list;
}

std::uint64_t default_rows(std::uint64_t ranks) {
  std::uint64_t rows = 1;
  while (rows * rows < ranks || ranks % rows != 0) ++rows;
  return rows;
}

}  // namespace lu
