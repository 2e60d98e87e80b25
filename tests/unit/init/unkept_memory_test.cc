#include "sidecar/init/memory/unkept_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace bsp::init {
namespace {

TEST(UnkeptMemory, IsFoundInSmaps) {
  const UnkeptMemories found = unkept_in(
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nSize: 4 kB\nVmFlags: rd wr mr mw me nr wf dd dp \n"
      "7f0000001000-7f0000003000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me lo lf ac wf\n"
      "7f0000003000-7f0000004000 r-xp 00001000 08:01 7                          /a dp file\nVmFlags: rd ex mr mw me "
      "\n");
  EXPECT_EQ(found, (UnkeptMemories{{Property::kDroppable, 0x7f0000000000, 0x7f0000001000},
                                   {Property::kWipedOnFork, 0x7f0000001000, 0x7f0000003000},
                                   {Property::kLockedOnFault, 0x7f0000001000, 0x7f0000003000}}));
  EXPECT_EQ(unkept_in(""), UnkeptMemories());
}

TEST(UnkeptMemory, UnderAProtectionKeyIsSeen) {
  const std::string map = "7f0000000000-7f0000001000 ",
                    rest = " 00000000 00:00 0 \nSize: 4 kB\nProtectionKey:         ";
  EXPECT_TRUE(has_protection_key(map + "rw-p" + rest + "1\nVmFlags: rd wr \n"));
  EXPECT_FALSE(has_protection_key(map + "rw-p" + rest + "0\nVmFlags: rd wr \n"));
  EXPECT_FALSE(has_protection_key(map + "--xp" + rest + "1\nVmFlags: ex \n"));
  EXPECT_FALSE(has_protection_key(map + "rw-p 00000000 00:00 0 \nVmFlags: rd wr \n"));
}

TEST(UnkeptMemory, IsReadAsItWasWritten) {
  const UnkeptMemories memories{{Property::kDroppable, 0x1000, 0x2000}, {Property::kLockedOnFault, 0x5000, 0x9000}};
  EXPECT_EQ(decode_unkept(encode(memories)).value(), memories);
  EXPECT_EQ(decode_unkept("").value(), UnkeptMemories());
}

TEST(UnkeptMemory, OfADamagedListIsRefused) {
  for (const char* text : {"w", "\n", "x1000-2000\n", "w1000-2000", "w2000-1000\n", "w1000-1001\n", "1000-2000\n",
                           "w1000-2000\n\n", "dw1000-2000\n"})
    EXPECT_FALSE(decode_unkept(text)) << text;
}

}  // namespace
}  // namespace bsp::init
