add_test(NAME local_shared_files COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_shared_files_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME local_checkpoints COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/local_checkpoints_test.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(local_checkpoints local_shared_files PROPERTIES LABELS e2e TIMEOUT 900 RUN_SERIAL TRUE)
