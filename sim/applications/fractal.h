// Fractal image compression: regular and bound by computation (AutoMig, Righi et al. 2011, table I).
//
//   An image of t×t pixels, ranges of r×r, domains of d×d; t = 1000, r = d/2.        pixels
//   t/r supersteps. In each, t/r ranges are compared with the (t/d)²/n domains of each of n ranks in 8 isometries:
//   comparisons(i) = t/r · 8·(t/d)²/n
//   I(i) = comparisons · c,  c = 1500             instructions (about 1 µs on Labtec)
//   i → i+1, the last to the first: 8·t/r         bytes
//   M(i) = t²/n, its part of the image            bytes, one per pixel (assumed: the source doesn't give it)
//
// d = 40, n = 10: 50 supersteps of 25,000 comparisons.
#pragma once

#include "sim/workload.h"

namespace bsp::sim {

struct Fractal {
  std::uint32_t ranks = 0;
  double image = 1000;                    // t
  double domain = 0;                      // d
  double range = 0;                       // r; 0 = d/2
  double comparison_instructions = 1500;  // c

  [[nodiscard]] double ranges() const { return image / (range > 0 ? range : domain / 2); }  // t/r, of each superstep
  [[nodiscard]] double comparisons() const;  // of each rank in a superstep
};

std::unique_ptr<Workload> make(const Fractal& parameters);
Application fractal();

}  // namespace bsp::sim
