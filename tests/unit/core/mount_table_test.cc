#include "base/core/mount_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bsp {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(MountTable, HasPlaceRightsAndKindInTheOrderOfMounting) {
  const auto mounts = mounts_in(
      "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "26 25 0:5 / /with\\040space\\134 ro,nosuid - nfs4 server:/x rw\n"
      "27 25 0:6 / /optional rw master:1 propagate_from:2 - tmpfs tmpfs rw\n");
  ASSERT_THAT(mounts, SizeIs(3));
  EXPECT_EQ(mounts[0].path, "/");
  EXPECT_TRUE(mounts[0].writable);
  EXPECT_EQ(mounts[1].path, "/with space\\");
  EXPECT_FALSE(mounts[1].writable) << "this mount's right, not the file system's";
  EXPECT_EQ(mounts[1].type, "nfs4");
  EXPECT_EQ(mounts[2].type, "tmpfs");
}

TEST(MountTable, LeavesOutWhatIsNoMount) {
  EXPECT_THAT(mounts_in(""), IsEmpty());
  EXPECT_THAT(mounts_in("25 1 8:1 / /half\n\n25"), IsEmpty());
  const auto mounts = mounts_in("25 1 8:1 / /a\\9zz\\04 rw\n");
  ASSERT_THAT(mounts, SizeIs(1));
  EXPECT_EQ(mounts[0].path, "/a\\9zz\\04") << "no escapes";
  EXPECT_EQ(mounts[0].type, "");
}

}  // namespace
}  // namespace bsp
