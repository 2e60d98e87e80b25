add_test(NAME local_seats COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_seats_test.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_seats PROPERTIES LABELS e2e TIMEOUT 1200 RUN_SERIAL TRUE)
add_test(NAME seat_faults COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/seat_faults_test.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(seat_faults PROPERTIES LABELS e2e TIMEOUT 1200 RUN_SERIAL TRUE)
