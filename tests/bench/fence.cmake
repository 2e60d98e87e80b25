# What a fence costs many sidecars, without programs and without a network.
add_executable(bench_fence ${CMAKE_CURRENT_SOURCE_DIR}/fence_bench.cc)
target_link_libraries(bench_fence PRIVATE bsp_pmix)
