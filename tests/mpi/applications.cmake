# The applications under mpirun: any number of ranks gives the sequential program's result, even more ranks than there is work.
# Also their command lines, and runs under the shim through epochs.
function(equals_sequential program result ranks)
  string(MAKE_C_IDENTIFIER "${ARGN}" name)
  set(name ${program}.${ranks}_ranks_equal_sequential${name})
  bsp_program_test(${name} mpi ${CMAKE_CURRENT_SOURCE_DIR}/mpirun.sh ${ranks} $<TARGET_FILE:${program}> ${ARGN} --verify)
  set_tests_properties(${name} PROPERTIES
    PASS_REGULAR_EXPRESSION "${program}: OK ${result}.*, ${ranks} ranks?.*, equal to the sequential program")
endfunction()

foreach(ranks 1 2 3 5)
  equals_sequential(smith_waterman "matrix crc=40dd6ccc7d9f0b92" ${ranks} --rows 203 --columns 157 --blocks 11)
  equals_sequential(smith_waterman "matrix crc=f36a9fea3e505c21" ${ranks} --rows 97 --columns 203 --gap logarithmic)
  equals_sequential(lu "factors crc=7f00cf3b7d3154e7" ${ranks} --order 131 --block 7)
  equals_sequential(fractal "code crc=f9e99c631c61c766" ${ranks} --width 131 --height 93 --range 4)
endforeach()
equals_sequential(smith_waterman "matrix crc=8e112d421c8a6dc4" 5 --rows 3 --columns 2)
equals_sequential(smith_waterman "matrix crc=72c7ff08e14e0769" 4 --rows 60 --columns 40 --blocks 100)
foreach(ranks 4 6)
  equals_sequential(lu "factors crc=70626f37176cecd9" ${ranks} --order 64 --block 1)
endforeach()
equals_sequential(lu "factors crc=fd569bb3d48fc7f6" 5 --order 3 --block 2)
equals_sequential(lu "factors crc=8416e4cb91d8ef98" 4 --order 50 --block 100)
equals_sequential(fractal "code crc=df1cb99fbd267625" 5 --width 9 --height 7 --range 3)
equals_sequential(fractal "code crc=32d4c35c08574e09" 4 --width 64 --height 20 --range 16 --flat 0)

foreach(program smith_waterman lu fractal)
  bsp_program_test(${program}.command_line mpi ${CMAKE_CURRENT_SOURCE_DIR}/${program}_test.sh $<TARGET_FILE:${program}>)
endforeach()

bsp_test(application_epochs_test SOURCES applications/epochs_test.cc shim/job.cc epochs/cluster.cc
         ../integration/relay/fake_init.cc DEPS bsp_net bsp_wire bsp_init_control LABELS mpi)
add_dependencies(application_epochs_test bsp-sidecar bspmpi shim_pace smith_waterman lu fractal)
