# Plain, unmodified MPI programs under the preloaded shim, with real sidecars.
find_package(MPI REQUIRED COMPONENTS C)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(ignored_arguments ${CMAKE_CURRENT_BINARY_DIR}/ignored_arguments)
file(MAKE_DIRECTORY ${ignored_arguments})
add_custom_command(
  OUTPUT ${ignored_arguments}/ignored_arguments.gen.h
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/shim/ignored_arguments.py
          ${ignored_arguments}/ignored_arguments.gen.h
  DEPENDS shim/ignored_arguments.py ${PROJECT_SOURCE_DIR}/sidecar/shim/generate.py
  COMMENT "Listing the collectives that ignore arguments")
find_file(BSP_MPI_H mpi.h PATHS ${MPI_C_INCLUDE_DIRS} NO_DEFAULT_PATH REQUIRED)
set(every_procedure ${CMAKE_CURRENT_BINARY_DIR}/every_procedure)
file(MAKE_DIRECTORY ${every_procedure})
add_custom_command(
  OUTPUT ${every_procedure}/every_procedure.gen.h
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/shim/every_procedure.py ${BSP_MPI_H}
          ${PROJECT_SOURCE_DIR}/sidecar/shim/api/mpi_api.txt ${every_procedure}/every_procedure.gen.h
  DEPENDS shim/every_procedure.py ${PROJECT_SOURCE_DIR}/sidecar/shim/generate.py
          ${PROJECT_SOURCE_DIR}/sidecar/shim/api/mpi_api.txt ${BSP_MPI_H}
  COMMENT "Generating calls of every MPI procedure")
# In the rooms of the shim, and whole applications.
file(GLOB shim_programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/shim/programs/*/*.c
     ${CMAKE_CURRENT_SOURCE_DIR}/shim/programs/*/*.cc)
set(shim_program_targets)
foreach(source ${shim_programs})
  get_filename_component(name ${source} NAME_WE)
  add_executable(shim_${name} ${source})
  target_include_directories(shim_${name} PRIVATE shim/programs)
  target_link_libraries(shim_${name} PRIVATE MPI::MPI_C m Threads::Threads)
  target_compile_options(shim_${name} PRIVATE -Wno-stringop-overread -Wno-stringop-overflow)  # MPI_UNWEIGHTED isn't an array
  list(APPEND shim_program_targets shim_${name})
endforeach()
# The shim and MPI must find what these replace of the C library.
set_target_properties(shim_blocked shim_blocked_files shim_same_files shim_set_clock shim_lost_pointer shim_timers shim_unreadable shim_listening PROPERTIES ENABLE_EXPORTS ON)
target_sources(shim_ignored PRIVATE ${ignored_arguments}/ignored_arguments.gen.h)
target_include_directories(shim_ignored PRIVATE ${ignored_arguments})
target_sources(shim_every_procedure PRIVATE ${every_procedure}/every_procedure.gen.h)
target_include_directories(shim_every_procedure PRIVATE ${every_procedure})
target_sources(shim_random_objects PRIVATE shim/programs/objects/random_objects/made.c shim/programs/objects/random_objects/requests.c
               shim/programs/objects/random_objects/storage.c)
set_target_properties(shim_random_objects PROPERTIES UNITY_BUILD OFF)
# A C program that makes the calls of a compiled Fortran program; needs no Fortran compiler.
find_library(BSP_MPI_FORTRAN_LIBRARY mpi_mpifh HINTS ${MPI_C_LIB_DIRS} /usr/lib/x86_64-linux-gnu/openmpi/lib REQUIRED)
add_executable(shim_mpif shim/fortran/mpif.c)
target_link_libraries(shim_mpif PRIVATE ${BSP_MPI_FORTRAN_LIBRARY} MPI::MPI_C)
# Real Fortran programs, for each of the three bindings, if there is a compiler.
find_program(BSP_GFORTRAN gfortran)
if(BSP_GFORTRAN)
  file(GLOB mpi_modules /usr/lib/*/fortran/gfortran-mod-*/openmpi /usr/lib/*/openmpi/lib)
  list(TRANSFORM mpi_modules PREPEND -I)
  foreach(binding MPIF USE F08)
    set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/shim_fortran_${binding})
    add_custom_command(
      OUTPUT ${program}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/fortran_${binding}
      COMMAND ${BSP_GFORTRAN} -O1 -fallow-argument-mismatch -DWITH_${binding} -J${CMAKE_CURRENT_BINARY_DIR}/fortran_${binding}
              "-I$<JOIN:${MPI_C_INCLUDE_DIRS},;-I>" ${mpi_modules} ${CMAKE_CURRENT_SOURCE_DIR}/shim/fortran/bindings.F90
              -static-libgfortran -o ${program} -lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh -lmpi
      DEPENDS shim/fortran/bindings.F90
      COMMAND_EXPAND_LISTS)
    add_custom_target(shim_fortran_${binding} DEPENDS ${program})
    list(APPEND shim_program_targets shim_fortran_${binding})
  endforeach()
else()
  message(STATUS "No gfortran: tests/mpi doesn't run Fortran programs, only what a compiler would make of one")
endif()
# A program that must be refused: it uses another MPI, with a library of that name.
add_library(shim_other_mpi_library SHARED shim/refused/other_mpi_library.c)
set_target_properties(shim_other_mpi_library PROPERTIES LIBRARY_OUTPUT_NAME mpi VERSION 12 SOVERSION 12
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/other_mpi)
add_executable(shim_other_mpi shim/refused/other_mpi.c)
target_link_libraries(shim_other_mpi PRIVATE shim_other_mpi_library)
# A tool that a user preloads beside the shim.
add_library(shim_tool SHARED shim/tool/tool.c)
target_link_libraries(shim_tool PRIVATE MPI::MPI_C)
# What paces a program of some length.
add_library(shim_pace SHARED shim/pace/pace.c)
target_include_directories(shim_pace SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
# Programs that open MPI with dlopen, one of them linked with it, and what they open beside it.
add_executable(shim_opened shim/opened/opened.c)
target_include_directories(shim_opened SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
add_executable(shim_linked shim/opened/opened.c)
target_link_options(shim_linked PRIVATE -Wl,--no-as-needed)
target_link_libraries(shim_linked PRIVATE MPI::MPI_C)
add_library(shim_plugin MODULE shim/opened/plugin.c)
target_link_libraries(shim_plugin PRIVATE MPI::MPI_C)
add_executable(shim_deep shim/opened/deep.c)
target_link_options(shim_deep PRIVATE -rdynamic -Wl,-z,lazy)
target_link_libraries(shim_deep PRIVATE ${CMAKE_DL_LIBS})
add_library(shim_deep_plugin MODULE shim/opened/deep_plugin.c)
target_link_options(shim_deep_plugin PRIVATE -Wl,-z,lazy)
target_link_libraries(shim_deep_plugin PRIVATE MPI::MPI_C)
# A program with a library that outlasts it.
add_library(shim_outlasting_library SHARED shim/outlasting/library.cc)
target_link_libraries(shim_outlasting_library PRIVATE MPI::MPI_C)
add_executable(shim_outlasting shim/outlasting/program.c)
target_link_libraries(shim_outlasting PRIVATE shim_outlasting_library MPI::MPI_C)
list(APPEND shim_program_targets shim_mpif shim_other_mpi shim_tool shim_pace shim_opened shim_linked shim_plugin shim_deep shim_deep_plugin shim_outlasting)

file(GLOB shim_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/shim/*_test.cc)
bsp_test(shim_test SOURCES ${shim_tests} shim/job.cc epochs/cluster.cc ../integration/relay/fake_init.cc
         DEPS bsp_net bsp_wire bsp_init_control LABELS mpi)
add_dependencies(shim_test bsp-sidecar bspmpi bspmpi_tsan lattice_boltzmann ${shim_program_targets})

# Images may have an older C library than the one that the shim was built with.
if(NOT BSP_SANITIZE)
  add_test(NAME shim.loads_with_glibc_2.35
           COMMAND sh -c "! objdump -T $<TARGET_FILE:bspmpi> | grep -E 'GLIBC_2\.(3[6-9]|[4-9][0-9])'")
  set_tests_properties(shim.loads_with_glibc_2.35 PROPERTIES LABELS mpi)
endif()

# Runs programs of other suites (conformance/run.py); no test of its own.
add_executable(through_epochs EXCLUDE_FROM_ALL conformance/through_epochs.cc shim/job.cc epochs/cluster.cc ../integration/relay/fake_init.cc)
target_link_libraries(through_epochs PRIVATE bsp_net bsp_wire bsp_init_control GTest::gmock)
target_compile_definitions(through_epochs PRIVATE BSP_BINARY_DIR="${CMAKE_BINARY_DIR}" BSP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
add_dependencies(through_epochs bsp-sidecar bspmpi)
