// The memory that the most expensive message within a limit costs its reader: counts every byte the process allocates.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "base/net/frame.h"
#include "crds/wire.h"

namespace {

std::size_t held = 0, peak = 0;

void* counted(std::size_t size) {
  void* const memory = std::malloc(size);
  if (!memory) throw std::bad_alloc();
  held += ::malloc_usable_size(memory) + 16;  // plus the allocator's overhead
  peak = std::max(peak, held);
  return memory;
}
void uncounted(void* memory) {
  if (memory) held -= ::malloc_usable_size(memory) + 16;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { uncounted(memory); }

namespace bsp {
namespace {

struct Shape {
  const char* name;
  // The n-th piece of a header; the pieces follow each other, with commas, inside {"x":[…]} or {…}.
  std::string (*piece)(std::size_t n);
  bool fields = false;
};

const Shape kShapes[] = {
    {"numbers", [](std::size_t) { return std::string("0"); }},
    {"lists", [](std::size_t) { return std::string("[]"); }},
    {"objects", [](std::size_t) { return std::string("{}"); }},
    {"texts", [](std::size_t) { return std::string("\"\""); }},
    {"long texts", [](std::size_t) { return "\"" + std::string(32, 'a') + "\""; }},
    {"fields", [](std::size_t n) { return std::format("\"{:x}\":0", n); }, true},
    {"lists in fields", [](std::size_t n) { return std::format("\"{:x}\":[0]", n); }, true},
    {"long fields", [](std::size_t n) { return std::format("\"{:032x}\":\"{:032x}\"", n, n); }, true},
};

// As much of a shape as the limits allow.
std::string header_of(const Shape& shape, const JsonLimits& limits) {
  std::string text = shape.fields ? "{" : "{\"x\":[";
  const std::size_t per_piece = measure(shape.piece(0)).values;
  std::size_t values = 3;
  for (std::size_t n = 0; values + per_piece < limits.values; ++n, values += per_piece) {
    const std::string piece = shape.piece(n);
    if (text.size() + piece.size() + 3 > limits.bytes) break;
    if (n > 0) text += ',';
    text += piece;
  }
  return text + (shape.fields ? "}" : "]}");
}

// The peak memory while a frame with this header arrives in pieces and is read.
std::size_t cost_of(const std::string& header, const MessageLimits& limits) {
  std::string frame = net::encode_frame_head(nlohmann::json::object(), 0).substr(0, net::kFramePrefix);
  for (int i = 0; i < 4; ++i) frame[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (24 - 8 * i));
  frame += header;
  const std::size_t before = held;
  peak = held;
  {
    net::FrameReader reader(limits);
    for (std::size_t at = 0; at < frame.size(); at += 16 << 10) {
      reader.append(std::as_bytes(std::span(frame).subspan(at, std::min<std::size_t>(16 << 10, frame.size() - at))));
      auto read = reader.next();
      EXPECT_TRUE(read) << read.error().message;
      EXPECT_TRUE(!read || !*read || (**read).header.is_object());
    }
  }
  EXPECT_EQ(held, before);
  return peak - before;
}

std::size_t worst(const MessageLimits& limits, std::string& which) {
  std::size_t most = 0;
  for (const Shape& shape : kShapes) {
    const std::size_t cost = cost_of(header_of(shape, limits.json), limits);
    if (cost > most) {
      most = cost;
      which = shape.name;
    }
  }
  return most;
}

TEST(MessageMemory, AnswersAreCheapForTheOperator) {
  std::string which;
  for (const char* verb : {wire::kStatus, wire::kWatch})
    EXPECT_LT(worst(wire::answer_limits(verb), which), 512u << 10) << verb << ": " << which;
  // The largest answer; only one is read at a time, however many links there are.
  EXPECT_LT(worst(wire::answer_limits(wire::kSetReport), which), 48u << 20) << which;
  for (const char* verb : {wire::kPrepareEpoch, wire::kArmGate, wire::kKill, "alive", "any other"})
    EXPECT_LT(worst(wire::answer_limits(verb), which), 1u << 20) << verb << ": " << which;
}

TEST(MessageMemory, PeerRequestsAreCheapForASidecar) {
  std::string which;
  EXPECT_LT(worst(wire::request_limits(false), which), 2u << 20) << which;
  EXPECT_LT(worst(wire::answer_limits(wire::kReport), which), 16u << 20) << which;
}

TEST(MessageMemory, UnknownVerbsAreCheapToo) {
  std::string which;
  EXPECT_LT(worst(net::kAnyFrame, which), 128u << 20) << which;
}

TEST(MessageMemory, OversizedMessagesCostOnlyTheirText) {
  const std::string header = header_of({"objects", [](std::size_t) { return std::string("{}"); }},
                                       {.bytes = 1 << 20, .values = 1 << 30, .depth = 8});
  std::string frame = net::encode_frame_head(nlohmann::json::object(), 0).substr(0, net::kFramePrefix);
  for (int i = 0; i < 4; ++i) frame[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (24 - 8 * i));
  frame += header;
  net::FrameReader reader({.json = {.bytes = 1 << 20, .values = 1000, .depth = 8}});
  reader.append(std::as_bytes(std::span(frame)));
  peak = held;
  const std::size_t before = held;
  EXPECT_FALSE(reader.next());
  EXPECT_LT(peak - before, 4096u);
}

}  // namespace
}  // namespace bsp
