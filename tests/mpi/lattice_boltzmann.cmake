# lattice_boltzmann under mpirun: any number of ranks gives the sequential program's field, bit for bit.
foreach(ranks 1 2 3 5)
  bsp_program_test(lattice_boltzmann.${ranks}_ranks_equal_sequential mpi
                   ${CMAKE_CURRENT_SOURCE_DIR}/mpirun.sh ${ranks} $<TARGET_FILE:lattice_boltzmann> --width 67
                   --height 33 --supersteps 60 --substeps 2 --work-factor 0=2,1=1.5 --ballast 2 --check)
  set_tests_properties(lattice_boltzmann.${ranks}_ranks_equal_sequential PROPERTIES
    PASS_REGULAR_EXPRESSION "lattice_boltzmann: OK field crc=0edfcb6cbc25f0a9, 60 supersteps, ${ranks} ranks?, equal")
endforeach()

# Complete command lines: output and exit status, for valid and invalid arguments.
bsp_program_test(lattice_boltzmann.command_line mpi
                 ${CMAKE_CURRENT_SOURCE_DIR}/lattice_boltzmann_test.sh $<TARGET_FILE:lattice_boltzmann>)
