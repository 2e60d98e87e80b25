/* The only way to access the fields of ring.h: atomic loads and stores for both ends, C and C++.
 *
 * Rules: each field has one writer (named in ring.h), so a plain load and store by the writer suffices
 * to add. `gate` and `completed` are sequentially consistent (the gate word's handshake needs a single
 * order of the two); everything else is release/acquire. A superstep record and the reason string
 * are protected like a seqlock: the reader retries or gives up when the guard has changed. */
#ifndef BSP_SIDECAR_RING_RING_ACCESS_H
#define BSP_SIDECAR_RING_RING_ACCESS_H

#include <stddef.h>
#include <string.h>

#include "sidecar/ring/ring.h"

#define BSP_RING_LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define BSP_RING_STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)
#define BSP_RING_LOAD_SEQ(field) __atomic_load_n(&(field), __ATOMIC_SEQ_CST)
#define BSP_RING_STORE_SEQ(field, value) __atomic_store_n(&(field), (value), __ATOMIC_SEQ_CST)

/* --- The file -------------------------------------------------------------------------------- */

/* Writer: sidecar, once, on zeroed memory. The magic is written last: a reader that sees it also sees the version. */
static inline void bsp_ring_format(struct bsp_ring* ring) {
  BSP_RING_STORE(ring->version, BSP_RING_VERSION);
  BSP_RING_STORE_SEQ(ring->magic, BSP_RING_MAGIC);
}

/* 1 if this is a ring of this version. */
static inline int bsp_ring_valid(const struct bsp_ring* ring) {
  return BSP_RING_LOAD_SEQ(ring->magic) == BSP_RING_MAGIC && BSP_RING_LOAD(ring->version) == BSP_RING_VERSION;
}

/* --- The gate word ----------------------------------------------------------------------------- */

static inline uint64_t bsp_gate_word(uint64_t superstep, enum bsp_gate_state state) {
  return superstep << 2 | (uint64_t)state;
}
static inline uint64_t bsp_gate_superstep(uint64_t word) { return word >> 2; }
static inline enum bsp_gate_state bsp_gate_state_of(uint64_t word) { return (enum bsp_gate_state)(word & 3u); }

/* Sidecar: sets the gate and returns the superstep that the rank has completed by then. If that is
 * >= `superstep` for an armed gate, the gate is late (the rank may or may not have seen it). */
static inline uint64_t bsp_gate_set(struct bsp_ring* ring, uint64_t superstep, enum bsp_gate_state state) {
  BSP_RING_STORE_SEQ(ring->gate, bsp_gate_word(superstep, state));
  return BSP_RING_LOAD_SEQ(ring->completed);
}

/* Shim, at the edge of `superstep`: publishes it and returns the gate word. */
static inline uint64_t bsp_gate_check(struct bsp_ring* ring, uint64_t superstep) {
  BSP_RING_STORE_SEQ(ring->completed, superstep);
  return BSP_RING_LOAD_SEQ(ring->gate);
}

/* --- Superstep records --------------------------------------------------------------------------- */

/* Shim: claims the slot of `superstep` and invalidates it for readers; fill it, then publish. */
static inline struct bsp_superstep_record* bsp_record_begin(struct bsp_ring* ring, uint64_t superstep) {
  struct bsp_superstep_record* r = &ring->records[superstep % BSP_RING_RECORDS];
  __atomic_store_n(&r->superstep, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE); /* readers see the 0 before anything written after it */
  return r;
}

static inline void bsp_record_publish(struct bsp_superstep_record* r, uint64_t superstep) {
  BSP_RING_STORE(r->superstep, superstep);
}

/* Writes one field of a record between begin and publish. */
static inline void bsp_record_set(uint64_t* field, uint64_t value) { __atomic_store_n(field, value, __ATOMIC_RELAXED); }

/* Sidecar: copies the record of `superstep`; 0 if it isn't available (not yet, overwritten, changing). */
static inline int bsp_record_read(const struct bsp_ring* ring, uint64_t superstep, struct bsp_superstep_record* out) {
  const struct bsp_superstep_record* r = &ring->records[superstep % BSP_RING_RECORDS];
  const uint64_t* from = (const uint64_t*)(const void*)r;
  uint64_t* to = (uint64_t*)(void*)out;
  size_t i;
  if (superstep == 0 || BSP_RING_LOAD(r->superstep) != superstep) return 0;
  for (i = 0; i < sizeof *r / sizeof *from; ++i) to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&r->superstep, __ATOMIC_RELAXED) == superstep;
}

/* --- Partners -------------------------------------------------------------------------------------- */

/* What ring.h's fields of the same names hold. */
struct bsp_partners {
  uint64_t superstep;
  uint32_t ranks[BSP_RING_PARTNERS];
  uint64_t bytes[BSP_RING_PARTNERS];
};

/* Shim. */
static inline void bsp_partners_set(struct bsp_ring* ring, const struct bsp_partners* partners) {
  size_t i;
  uint32_t seq = BSP_RING_LOAD(ring->partners_seq);
  __atomic_store_n(&ring->partners_seq, seq | 1u, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  for (i = 0; i < BSP_RING_PARTNERS; ++i) {
    __atomic_store_n(&ring->partner_ranks[i], partners->ranks[i], __ATOMIC_RELAXED);
    __atomic_store_n(&ring->partner_bytes[i], partners->bytes[i], __ATOMIC_RELAXED);
  }
  __atomic_store_n(&ring->partners_superstep, partners->superstep, __ATOMIC_RELAXED);
  BSP_RING_STORE(ring->partners_seq, (seq | 1u) + 1);
}

/* Sidecar: copies them; 0 if they were changing: retry. */
static inline int bsp_partners_read(const struct bsp_ring* ring, struct bsp_partners* out) {
  size_t i;
  uint32_t seq = BSP_RING_LOAD(ring->partners_seq);
  if (seq & 1u) return 0;
  for (i = 0; i < BSP_RING_PARTNERS; ++i) {
    out->ranks[i] = __atomic_load_n(&ring->partner_ranks[i], __ATOMIC_RELAXED);
    out->bytes[i] = __atomic_load_n(&ring->partner_bytes[i], __ATOMIC_RELAXED);
  }
  out->superstep = __atomic_load_n(&ring->partners_superstep, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&ring->partners_seq, __ATOMIC_RELAXED) == seq;
}

/* --- Why a gate was postponed ---------------------------------------------------------------------- */

/* Shim. "" clears it. */
static inline void bsp_reason_set(struct bsp_ring* ring, const char* text) {
  size_t i;
  int ended = 0;
  uint32_t seq = BSP_RING_LOAD(ring->blocked_seq);
  __atomic_store_n(&ring->blocked_seq, seq + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  for (i = 0; i < BSP_RING_TEXT; ++i) {
    char c = ended || i == BSP_RING_TEXT - 1 ? '\0' : text[i];
    if (c == '\0') ended = 1;
    __atomic_store_n(&ring->blocked_reason[i], c, __ATOMIC_RELAXED);
  }
  BSP_RING_STORE(ring->blocked_seq, seq + 2);
}

/* Sidecar: copies the reason (BSP_RING_TEXT bytes, NUL-terminated); 0 if it was changing: retry. */
static inline int bsp_reason_read(const struct bsp_ring* ring, char* out) {
  size_t i;
  uint32_t seq = BSP_RING_LOAD(ring->blocked_seq);
  if (seq & 1u) return 0;
  for (i = 0; i < BSP_RING_TEXT; ++i) out[i] = __atomic_load_n(&ring->blocked_reason[i], __ATOMIC_RELAXED);
  out[BSP_RING_TEXT - 1] = '\0';
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&ring->blocked_seq, __ATOMIC_RELAXED) == seq;
}

#endif
