# Decision time of each heuristic (operator/decide).
find_package(benchmark REQUIRED)
add_executable(bench_decide decide_bench.cc)
target_link_libraries(bench_decide PRIVATE bsp_decide benchmark::benchmark)
