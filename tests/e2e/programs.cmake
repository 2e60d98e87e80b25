# MPI programs that check themselves while their ranks move; images/bundle.sh puts them into the image of the applications.
add_executable(moved_clocks ${CMAKE_CURRENT_SOURCE_DIR}/programs/moved_clocks.c)
add_executable(moved_guards ${CMAKE_CURRENT_SOURCE_DIR}/programs/moved_guards.c)
target_link_libraries(moved_guards PRIVATE MPI::MPI_C Threads::Threads)
add_executable(moved_windows ${CMAKE_CURRENT_SOURCE_DIR}/programs/moved_windows.c)
add_executable(moved_files ${CMAKE_CURRENT_SOURCE_DIR}/programs/moved_files.c)
add_executable(shared_files ${CMAKE_CURRENT_SOURCE_DIR}/programs/shared_files.c)
target_link_libraries(shared_files PRIVATE MPI::MPI_C)
add_executable(held_back ${CMAKE_CURRENT_SOURCE_DIR}/programs/held_back.c)
target_link_libraries(held_back PRIVATE MPI::MPI_C)
target_link_libraries(moved_windows PRIVATE MPI::MPI_C)
target_link_libraries(moved_files PRIVATE MPI::MPI_C)
target_link_libraries(moved_clocks PRIVATE MPI::MPI_C Threads::Threads)
add_custom_command(OUTPUT ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/moved_fortran
                   COMMAND env OMPI_FC=gfortran mpif90 -O2 -static-libgfortran -J ${CMAKE_CURRENT_BINARY_DIR}
                           ${CMAKE_CURRENT_SOURCE_DIR}/programs/moved_fortran.f90 -o ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/moved_fortran
                   DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/programs/moved_fortran.f90)
add_custom_target(moved_fortran ALL DEPENDS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/moved_fortran)
add_test(NAME local_programs COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_programs_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME local_check COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_check_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME local_convert COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_convert_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_check local_convert local_programs PROPERTIES LABELS e2e TIMEOUT 600 RUN_SERIAL TRUE)
