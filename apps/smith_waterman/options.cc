#include "apps/smith_waterman/options.h"

#include "apps/smith_waterman/sequence.h"

namespace sw {

std::vector<apps::Option> table(Options& o) {
  std::vector<apps::Option> list{
      apps::whole("--rows", o.rows, 1, kLongest, "length of sequence a, a row each"),
      apps::whole("--columns", o.columns, 1, kLongest, "length of sequence b, a column each"),
      apps::whole("--seed", o.seed, 0, UINT64_MAX, "which sequences are generated"),
      apps::text("--a", "FILE", o.file_a, "sequence a: the first of a FASTA file, instead of a generated one"),
      apps::text("--b", "FILE", o.file_b, "sequence b, likewise"),
      apps::whole("--blocks", o.blocks, 1, kLongest, "blocks of rows; blocks + ranks - 1 supersteps"),
      apps::whole("--match", o.scoring.match, 1, 1000, "score of two equal letters"),
      apps::whole("--mismatch", o.scoring.mismatch, -1000, 0, "score of two others"),
      apps::text("--gap", "KIND", o.gap,
                 "a gap of k letters costs: affine open + extend (k - 1), logarithmic open + extend log2 k"),
      apps::whole("--gap-open", o.scoring.gap_open, 1, 1000, "cost of a gap's first letter"),
      apps::whole("--gap-extend", o.scoring.gap_extend, 0, 1000, "cost of each further letter, or doubling")};
  for (auto& option : list)
    if (option.name == "--blocks") option.help = "blocks of rows; blocks + ranks - 1 supersteps (as many as ranks)";
  for (auto& option : apps::common(o, "the whole alignment, as text")) list.push_back(std::move(option));
  return list;
}

std::string check(Options& o) {
  if (o.gap != "affine" && o.gap != "logarithmic")
    return "--gap: '" + o.gap + "' is not a value it can take: give affine or logarithmic";
  o.scoring.logarithmic = o.gap == "logarithmic";
  if (o.file_a.empty() != o.file_b.empty())
    return o.file_a.empty() ? "--b: it goes with --a: give both files, or none"
                            : "--a: it goes with --b: give both files, or none";
  return {};
}

}  // namespace sw
