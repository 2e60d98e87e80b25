#include "apps/smith_waterman/options.h"

#include "apps/smith_waterman/sequence.h"

namespace sw {

std::vector<apps::Option> table(Options& o) {
  std::vector<apps::Option> list{
      apps::whole("--rows", o.rows, 1, kLongest, "length of sequence a, one row per letter"),
      apps::whole("--columns", o.columns, 1, kLongest, "length of sequence b, one column per letter"),
      apps::whole("--seed", o.seed, 0, UINT64_MAX, "seed of the generated sequences"),
      apps::text("--a", "FILE", o.file_a, "read sequence a, the first in a FASTA file, instead of generating it"),
      apps::text("--b", "FILE", o.file_b, "sequence b, likewise"),
      apps::whole("--blocks", o.blocks, 1, kLongest, "blocks of rows; blocks + ranks - 1 supersteps"),
      apps::whole("--match", o.scoring.match, 1, 1000, "score of two equal letters"),
      apps::whole("--mismatch", o.scoring.mismatch, -1000, 0, "score of two different letters"),
      apps::text("--gap", "KIND", o.gap,
                 "cost of a gap of k letters: affine open + extend (k - 1), logarithmic open + extend log2 k"),
      apps::whole("--gap-open", o.scoring.gap_open, 1, 1000, "cost of a gap's first letter"),
      apps::whole("--gap-extend", o.scoring.gap_extend, 0, 1000,
                  "cost of each further letter (affine) or doubling (logarithmic)")};
  for (auto& option : list)
    if (option.name == "--blocks") option.help = "blocks of rows; blocks + ranks - 1 supersteps (as many as ranks)";
  for (auto& option : apps::common(o, "the whole alignment, as text")) list.push_back(std::move(option));
  return list;
}

std::string check(Options& o) {
  if (o.gap != "affine" && o.gap != "logarithmic")
    return "--gap: invalid value '" + o.gap + "'; expected affine or logarithmic";
  o.scoring.logarithmic = o.gap == "logarithmic";
  if (o.file_a.empty() != o.file_b.empty())
    return o.file_a.empty() ? "--b requires --a: specify both files, or none"
                            : "--a requires --b: specify both files, or none";
  return {};
}

}  // namespace sw
