# bsp-operator as users run it; serial, because each test needs the machine's two cores.
foreach(suite Runs Endings BadInput)
  add_test(NAME local_run.${suite}
           COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_run_test.py ${suite}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(local_run.${suite} PROPERTIES LABELS e2e TIMEOUT 900 RUN_SERIAL TRUE)
endforeach()
add_test(NAME local_readme COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_readme_test.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_readme PROPERTIES LABELS e2e TIMEOUT 600 RUN_SERIAL TRUE)
add_test(NAME local_applications COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_applications_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_applications PROPERTIES LABELS e2e TIMEOUT 900 RUN_SERIAL TRUE)
add_test(NAME failure_matrix COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/failure_matrix_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(failure_matrix PROPERTIES LABELS e2e TIMEOUT 1200 RUN_SERIAL TRUE)
add_test(NAME local_benchmark COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_benchmark_test.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_benchmark PROPERTIES LABELS e2e TIMEOUT 600 RUN_SERIAL TRUE)
add_test(NAME local_resize COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_resize_test.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_resize PROPERTIES LABELS e2e TIMEOUT 900 RUN_SERIAL TRUE)
