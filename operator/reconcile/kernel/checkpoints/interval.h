// How often a job makes checkpoint sets: as spec.checkpoint.interval says, or, with Auto, after √(2 · cost · MTBF).
//
// J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17 (1974); J. T. Daly, A higher order estimate of
// the optimum checkpoint interval for restart dumps, FGCS 22 (2006): for intervals far shorter than the mean time between failures both
// give this, and the run loses √(2 · cost / MTBF) of its time.
#pragma once

#include <cstdint>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// A node is lost, drained or taken back once in so long, before the job knows better.
inline constexpr double kNodeMtbf = 365.0 * 86'400;                 // s
inline constexpr double kMostOfRun = 0.01;                          // of the run's time, for sets
inline constexpr double kLeastInterval = 10, kMostInterval = 3600;  // s
inline constexpr double kFirstInterval = 60;                        // s, until a set has shown its cost

// Seconds between two losses of a job that has run for `ran` seconds on `nodes` nodes and lost ranks `losses` times: the prior counts as
// one loss.
double mean_time_between_losses(std::uint32_t nodes, double ran, std::uint32_t losses);
// `cost`: seconds that the ranks wait for a set; <= 0: not known.
double auto_interval(double cost, double mtbf);

// Of the job as it is, and with these sets.
Duration set_interval(const Observed& o);
Duration set_interval(const Observed& o, const crds::CheckpointStatus& checkpoint);

}  // namespace bsp::reconcile
