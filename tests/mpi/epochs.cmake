# MPI epochs over the sidecars' PMIx servers: a plain rank that opens and closes sessions, without shim and bsp-init.
find_package(MPI REQUIRED COMPONENTS C)
add_executable(epochs_rank epochs/rank.c $<TARGET_OBJECTS:bsp_nodelay>)
target_link_libraries(epochs_rank PRIVATE MPI::MPI_C bsp_pmix_client ${CMAKE_DL_LIBS})
bsp_test(epochs_test SOURCES epochs/epochs_test.cc epochs/cluster.cc ../integration/relay/fake_init.cc
         DEPS bsp_net bsp_wire bsp_init_control LABELS mpi)
add_dependencies(epochs_test bsp-sidecar epochs_rank)
add_executable(hostile_client epochs/hostile_client.c)
target_link_libraries(hostile_client PRIVATE bsp_pmix_client)
bsp_test(hostile_program_test SOURCES epochs/hostile_program_test.cc epochs/cluster.cc ../integration/relay/fake_init.cc
         DEPS bsp_net bsp_wire bsp_init_control LABELS mpi)
add_dependencies(hostile_program_test bsp-sidecar hostile_client)
