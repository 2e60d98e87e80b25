#include "apps/fractal/options.h"

namespace fractal {

std::vector<apps::Option> table(Options& o) {
  std::vector<apps::Option> list{
      apps::whole("--width", o.width, 1, kLargest, "columns of the picture"),
      apps::whole("--height", o.height, 1, kLargest, "rows of the picture"),
      apps::whole("--seed", o.seed, 0, UINT64_MAX, "which picture is generated"),
      apps::text("--image", "FILE", o.image, "a picture (binary PGM) instead of a generated one"),
      apps::whole("--range", o.range, 2, 32, "width and height of a range; domains are twice as large"),
      apps::whole("--flat", o.flat, 0, 255, "replace a range with a standard deviation up to this by its mean"),
      apps::text("--code", "FILE", o.code, "the compressed picture"),
      apps::text("--original", "FILE", o.original, "the picture that was compressed, as PGM"),
      apps::text("--decompress", "FILE", o.compressed,
                 "only decompress a file written by --code to --output; without MPI")};
  for (auto& option : apps::common(o, "the picture after compression and decompression, as PGM"))
    list.push_back(std::move(option));
  return list;
}

std::string check(Options& o) {
  if (!o.compressed.empty()) {
    if (o.output.empty()) return "--decompress requires --output, the file for the picture";
    o.sequential = true;
  }
  return {};
}

}  // namespace fractal
