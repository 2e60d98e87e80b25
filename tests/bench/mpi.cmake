# The costs of epochs and of the shim: plain MPI programs under real sidecars, without pods.
find_package(MPI REQUIRED COMPONENTS C)
add_executable(mpi_patterns ${CMAKE_CURRENT_SOURCE_DIR}/programs/mpi_patterns.c)
# Also makes the calls of a compiled Fortran program; needs no Fortran compiler.
target_link_libraries(mpi_patterns PRIVATE ${BSP_MPI_FORTRAN_LIBRARY} MPI::MPI_C)
# Uses the jobs of tests/mpi, which are written as tests: a failed expectation is printed.
add_library(bench_mpi_job STATIC mpi_job.cc ../mpi/shim/job.cc ../mpi/epochs/cluster.cc ../integration/relay/fake_init.cc)
target_link_libraries(bench_mpi_job PUBLIC bsp_net bsp_wire bsp_init_control GTest::gtest)
target_compile_definitions(bench_mpi_job PUBLIC BSP_BINARY_DIR="${CMAKE_BINARY_DIR}")
foreach(subject epoch shim)
  add_executable(bench_${subject} ${subject}_bench.cc)
  target_link_libraries(bench_${subject} PRIVATE bench_mpi_job)
  add_dependencies(bench_${subject} mpi_patterns bsp-sidecar bspmpi lattice_boltzmann)
endforeach()
