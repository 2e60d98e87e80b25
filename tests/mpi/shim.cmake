# Plain MPI programs under the preloaded shim, with real sidecars. Each program knows nothing of us.
find_package(MPI REQUIRED COMPONENTS C)
file(GLOB shim_programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/shim/programs/*.c
     ${CMAKE_CURRENT_SOURCE_DIR}/shim/programs/*.cc)
set(shim_program_targets)
foreach(source ${shim_programs})
  get_filename_component(name ${source} NAME_WE)
  add_executable(shim_${name} ${source})
  target_link_libraries(shim_${name} PRIVATE MPI::MPI_C m Threads::Threads)
  target_compile_options(shim_${name} PRIVATE -Wno-stringop-overread)  # MPI_UNWEIGHTED is no array
  list(APPEND shim_program_targets shim_${name})
endforeach()
bsp_test(shim_test SOURCES shim/shim_test.cc shim/job.cc epochs/cluster.cc ../integration/relay/fake_init.cc
         DEPS bsp_net bsp_wire bsp_init_control LABELS mpi)
add_dependencies(shim_test bsp-sidecar bspmpi lattice_boltzmann ${shim_program_targets})
