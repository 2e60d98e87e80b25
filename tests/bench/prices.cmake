# What Auto's objectives cost, on worlds with prices.
add_executable(bench_prices prices_bench.cc)
target_link_libraries(bench_prices PRIVATE bsp_decide)
