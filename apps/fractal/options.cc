#include "apps/fractal/options.h"

namespace fractal {

std::vector<apps::Option> table(Options& o) {
  std::vector<apps::Option> list{
      apps::whole("--width", o.width, 1, kLargest, "columns of the picture"),
      apps::whole("--height", o.height, 1, kLargest, "rows of the picture"),
      apps::whole("--seed", o.seed, 0, UINT64_MAX, "which picture is generated"),
      apps::text("--image", "FILE", o.image, "a picture (binary PGM) instead of a generated one"),
      apps::whole("--range", o.range, 2, 32, "width and height of a range; domains have twice that"),
      apps::whole("--flat", o.flat, 0, 255,
                  "a range whose standard deviation is up to this is its mean, and compared with nothing"),
      apps::text("--code", "FILE", o.code, "the compressed picture"),
      apps::text("--original", "FILE", o.original, "the picture that was compressed, as PGM"),
      apps::text("--decompress", "FILE", o.compressed, "only decompress what --code wrote, to --output; without MPI")};
  for (auto& option : apps::common(o, "the picture after compression and decompression, as PGM"))
    list.push_back(std::move(option));
  return list;
}

std::string check(Options& o) {
  if (!o.compressed.empty()) {
    if (o.output.empty()) return "--decompress: it goes with --output: give a file for the picture";
    o.sequential = true;
  }
  return {};
}

}  // namespace fractal
