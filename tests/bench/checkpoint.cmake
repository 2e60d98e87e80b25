# A move's dump, stream and restore against raw criu, in real containers (tests/integration's harness).
if(TARGET checkpoint_harness)
  add_executable(bench_checkpoint ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_bench.cc)
  target_link_libraries(bench_checkpoint PRIVATE checkpoint_harness GTest::gtest)
  add_dependencies(bench_checkpoint checkpoint_files)
endif()
