# A running job's load on the API server: the shell over an API server in memory, with answering sidecars.
add_executable(bench_api ${CMAKE_CURRENT_SOURCE_DIR}/api_bench.cc)
target_link_libraries(bench_api PRIVATE fake_ranks bsp_yaml)
target_compile_definitions(bench_api PRIVATE BSP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
