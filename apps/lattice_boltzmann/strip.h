// A vertical strip of the channel: the columns one rank owns, and the D2Q9 BGK model on them.
//
// Model: lattice Boltzmann with nine velocities and single-time relaxation (Qian, d'Humieres and Lallemand 1992),
// lattice units (cell = 1, time step = 1, density ~ 1):
//   f_q(x + c_q, t + 1) = f_q(x, t) + omega * (feq_q - f_q) + 3 w_q c_q,x g
//   feq_q = w_q rho (1 + 3 c.u + 4.5 (c.u)^2 - 1.5 u.u)
// A channel, periodic in x, with walls above and below and a cylinder in the flow (both halfway bounce-back), driven
// by the acceleration g along x. Mass is conserved exactly, except for rounding.
//
// The strip keeps one ghost column on each side. One time step is collide() - exchange of the ghost columns -
// stream(). Every cell is computed by the same operations in the same order whatever the decomposition, so the field
// is identical bit for bit for any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lbm {

inline constexpr int kQ = 9;

struct Channel {
  std::size_t width = 256;     // columns of the whole channel
  std::size_t height = 128;    // cells in one column
  double omega = 1.7;          // relaxation rate, 0 < omega < 2
  double acceleration = 1e-6;  // g
  bool cylinder = true;        // of radius height / 9, at a quarter of the width
};

class Strip {
 public:
  // Columns [first, first + count) of the channel, fluid at rest.
  Strip(const Channel& channel, std::size_t first, std::size_t count);

  // Relaxes every cell `work` times: the result doesn't depend on `work`, the time does. A fraction repeats that
  // fraction of the columns.
  void collide(double work);

  // Border data for the neighbours: the three populations that move right (left).
  [[nodiscard]] std::size_t halo_size() const { return 3 * height_; }
  void pack_right(std::span<double> halo) const;
  void pack_left(std::span<double> halo) const;
  // Copies the left (right) neighbour's halo into this strip's ghost column.
  void unpack_left(std::span<const double> halo);
  void unpack_right(std::span<const double> halo);

  // Moves the populations by one cell and reflects them at walls and cylinder.
  void stream();

  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] double mass() const;       // sum of the density over the fluid cells
  [[nodiscard]] double max_speed() const;  // largest |u|
  // All populations of one own column (0-based in the strip), height * 9 doubles.
  [[nodiscard]] std::size_t column_size() const { return kQ * height_; }
  void copy_column(std::size_t column, std::span<double> out) const;

 private:
  struct Reflection {  // population q of this cell is reflected by a wall or the cylinder
    std::size_t to, from;
  };
  [[nodiscard]] std::size_t at(int q, std::size_t column, std::size_t y) const {
    return (static_cast<std::size_t>(q) * (count_ + 2) + column) * height_ + y;
  }

  std::size_t first_, count_, height_;
  double omega_, acceleration_;
  std::vector<double> now_;              // f, index at(q, column, y); columns 0 and count+1 are ghosts
  std::vector<double> after_;            // f after the collision
  std::vector<unsigned char> solid_;     // 1: cylinder; index column * height + y, with ghosts
  std::vector<Reflection> reflections_;  // indices into now_ and after_
};

}  // namespace lbm
