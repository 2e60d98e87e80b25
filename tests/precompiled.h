// What nearly every GoogleTest program includes, parsed once (CMakeLists.txt).
#ifndef TESTS_PRECOMPILED_H
#define TESTS_PRECOMPILED_H

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/precompiled.h"

#endif
