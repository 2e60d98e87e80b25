# What decisions are worth over complete runs (closed_loop.h), compared with Charm++'s strategies.
add_executable(bench_decisions decisions_bench.cc)
target_link_libraries(bench_decisions PRIVATE bsp_decide bsp_sim_yardsticks)
