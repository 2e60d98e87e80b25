/* The shared memory between a rank and its sidecar: superstep records out, gate requests in.
 *
 * One file, /run/bsp/ring, created and sized by the sidecar before it opens the first epoch, mapped
 * shared by the sidecar (always) and by the shim inside the MPI program (while an epoch is open: the
 * shim unmaps it before it stops at a gate, because the file does not move with the process).
 *
 * Every field has ONE writer, named beside it. All are naturally aligned and accessed with the
 * atomic builtins through ring/ring_access.h; there is no lock. C ABI, fixed sizes, little-endian:
 * shim and sidecar may be built by different compilers.
 *
 * Units: times in nanoseconds, sizes in bytes, supersteps 1-based (0 = none yet). The
 * counters in a record cover one superstep; its slot is superstep % BSP_RING_RECORDS. */
#ifndef BSP_SIDECAR_RING_RING_H
#define BSP_SIDECAR_RING_RING_H

#include <stdint.h>

#define BSP_RING_MAGIC 0x31676e7270736275ull /* "ubsprng1" */
#define BSP_RING_VERSION 5u
#define BSP_RING_RECORDS 256u    /* slots; the sidecar must read each before it is overwritten */
#define BSP_MAX_SETS 64u         /* Sets one job can span */
#define BSP_RING_TEXT 160u       /* bytes of a reason, NUL included */
#define BSP_RING_COLLECTIVES 17u /* of names::kEdgeCalls (crds/names.h) */
#define BSP_RING_PARTNERS 16u    /* ranks that a rank hears from most */
#define BSP_RING_SEATS 256u      /* ranks that a pod can have */

/* What one rank did in one superstep. Writer: shim. A copy is valid only if `superstep` has the expected
 * value before and after copying (the shim sets it to 0 first and to its value last). */
struct bsp_superstep_record {
  uint64_t superstep;
  uint64_t end_ns;       /* CLOCK_REALTIME when the edge (the barrier) completed */
  uint64_t instructions; /* I_t(i): retired in the computation phase (perf event, else CPU ns) */
  uint64_t compute_ns;   /* CT_t(i): wall time outside MPI calls */
  uint64_t comm_ns;      /* wall time inside MPI calls, except the edge */
  uint64_t edge_ns;      /* wall time inside the edge call: waiting for the slowest */
  uint64_t sent_bytes;   /* point-to-point and collectives, as far as known */
  /* Indexed by the peer's Set number in the current epoch's descriptor (BSP_RANK_SETS). */
  uint64_t recv_bytes[BSP_MAX_SETS]; /* B_t(i,j) */
  uint64_t recv_ns[BSP_MAX_SETS];    /* BT_t(i,j): transfer time without waiting for the sender */
};

/* Where the program is. Writer of bsp_ring.state: shim. */
enum bsp_rank_state {
  BSP_RANK_STARTING = 0, /* MPI_Init not called yet */
  BSP_RANK_OPENING = 1,  /* opening an epoch */
  BSP_RANK_RUNNING = 2,  /* an epoch is open */
  BSP_RANK_AT_GATE = 3,  /* at a superstep edge, waiting for an armed gate to be committed or cancelled */
  BSP_RANK_CLOSING = 4,  /* closing the epoch; next it unmaps the ring and stops */
  BSP_RANK_FINALIZED = 5 /* MPI_Finalize was called */
};

/* How I_t is measured. Writer of bsp_ring.instruction_source: shim. */
enum bsp_instruction_source {
  BSP_INSTRUCTIONS_PERF = 1,    /* perf_event_open, user-space instructions of all threads */
  BSP_INSTRUCTIONS_CPU_TIME = 2 /* 1 "instruction" per CPU nanosecond of the process */
};

/* The gate word: superstep << 2 | one of these. Writer: sidecar. At the edge of superstep s the
 * shim stores `completed` = s (seq_cst), then loads this word (seq_cst). The sidecar stores the word,
 * then loads `completed`. So either the rank sees the gate or the sidecar sees that it is late. */
enum bsp_gate_state {
  BSP_GATE_NONE = 0,
  BSP_GATE_ARMED = 1,     /* at edge >= superstep: wait (epoch still open) for one of the others */
  BSP_GATE_COMMITTED = 2, /* at every edge >= superstep: agree among the ranks, close, stop */
  BSP_GATE_DROPPING = 3   /* committed, and this rank votes to drop it. One vote is enough: all ranks then
                           * drop the gate at the same edge (see gate_dropped) and continue. No sidecar may
                           * clear a committed gate by itself, or its rank would miss the agreement that
                           * the others are in. Ranks that agreed to close at an earlier edge do close. */
};

struct bsp_ring {
  uint64_t magic;   /* sidecar */
  uint32_t version; /* sidecar */
  uint32_t pad0;

  uint64_t gate; /* sidecar: the gate word */

  uint64_t completed;          /* shim: last superstep whose edge completed */
  uint64_t epoch;              /* shim: the open epoch, or the last one */
  uint32_t state;              /* shim: enum bsp_rank_state */
  uint32_t instruction_source; /* shim: enum bsp_instruction_source */
  uint64_t opened_ns;          /* shim: CLOCK_REALTIME when the current epoch's opening ended */
  uint64_t open_ns;            /* shim: duration of the current epoch's opening */
  uint64_t open_cpu_ns;        /* shim: CPU time of that opening */
  uint64_t close_ns;           /* shim: duration of the last close, written before the ring is unmapped */
  uint64_t gate_reached_ns;    /* shim: CLOCK_REALTIME when the last gate was reached */
  uint64_t first_compute_ns;   /* shim: CLOCK_REALTIME when MPI returned to the program after that opening */
  uint64_t memory_bytes;       /* shim: M(i), resident private memory when last sampled */
  uint64_t calls;              /* shim: MPI calls so far */
  uint64_t gate_dropped;       /* shim: superstep of the last committed gate that the ranks agreed to drop. From
                                * then on the shim ignores a gate word with that superstep; the sidecar clears
                                * the word when it sees this. 0: none */

  /* What ends a superstep: every edge_stride-th call of the collective at edge_call - 1 in names::kEdgeCalls (0: not
   * chosen yet), since superstep edge_chosen_after has ended. Writer: shim, edge_call last. */
  uint64_t edge_chosen_after;
  uint64_t edge_stride;
  uint32_t edge_call;

  /* The program's MPI, for `bsp-operator check`. Writer: shim, in each opening; mpi_version last. */
  uint32_t fortran;      /* 1: the program has loaded the Fortran bindings */
  uint32_t thread_level; /* that MPI grants: 0 MPI_THREAD_SINGLE … 3 MPI_THREAD_MULTIPLE */
  uint32_t mpi_version;  /* of Open MPI: 5 << 16 | 0 << 8 | 7 for 5.0.7; 0: MPI_Init not reached */

  /* Why the last committed gate was postponed by this rank; "" if it was not. Writer: shim.
   * blocked_seq is odd while the string changes. */
  uint32_t blocked_seq;
  uint32_t postponed; /* shim: edges at which this rank was not migratable since the gate was set */
  char blocked_reason[BSP_RING_TEXT];

  /* Blocking collectives of all ranks so far, by their index in names::kEdgeCalls (crds/names.h): candidates for
   * this program's superstep edge. Writer: shim. */
  uint64_t collectives[BSP_RING_COLLECTIVES];

  struct bsp_superstep_record records[BSP_RING_RECORDS]; /* shim */

  /* What follows came after version 5 was in use. All else is where it was, so a shim that knows nothing of it still runs under
   * a sidecar that does: a rank that moves to a pod of a newer operator brings its shim along. */

  /* The ranks that this rank hears from most, heaviest first, as found at the edge of partners_superstep (0: not yet). Their
   * bytes are the mean of a superstep, in which earlier ones count less (measure.h); 0: no partner. Collectives that bring
   * every rank the same are left out. Writer: shim. partners_seq is odd while they change. */
  uint32_t partners_seq;
  uint32_t partner_ranks[BSP_RING_PARTNERS]; /* world ranks */
  uint64_t partner_bytes[BSP_RING_PARTNERS];
  uint64_t partners_superstep;

  /* Which ranks of this pod won't be in one pod with this rank any more if the latest prepared epoch is opened: bit i % 64 of
   * word i / 64 for the i-th of the open epoch's BSP_LOCAL_RANKS. Writer: sidecar, before it confirms that the epoch is prepared,
   * so it is right at every gate that is committed for that epoch. */
  uint64_t parting[BSP_RING_SEATS / 64];

  uint32_t blocked_for_good; /* shim: 1: blocked_reason, if not "", lasts as long as the process */
};

#endif
