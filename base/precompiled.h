// What nearly every file of the libraries includes, parsed once (CMakeLists.txt). Each file still includes what it
// uses: without this header (-D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON) everything compiles just so, only slower.
#ifndef BASE_PRECOMPILED_H
#define BASE_PRECOMPILED_H

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <format>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#endif
