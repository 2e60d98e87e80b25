# Complete jobs in the test cluster (tests/cluster). Skipped if Kubernetes isn't compiled: ./dev cluster up and ./dev test --kubernetes do that
# and need Go; no other test needs it. The cluster is started and the chart installed once for all these tests, and removed afterwards.
# They run after every other test (tests/cluster/CMakeLists.txt), in the order in which they are registered. Where Kubernetes is compiled,
# every run has the smoke test; the suites (label suite) run with --kubernetes.
set(cost 100)
function(kubernetes_test name timeout)
  add_test(NAME kubernetes.${name} COMMAND python3 -B ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(kubernetes.${name} PROPERTIES LABELS kubernetes TIMEOUT ${timeout} RUN_SERIAL TRUE SKIP_RETURN_CODE 77 COST ${cost})
  math(EXPR cost "${cost} - 1")
  set(cost ${cost} PARENT_SCOPE)
endfunction()
set(here ${CMAKE_CURRENT_SOURCE_DIR})
# The chart's policies need an API server, kubectl and Helm only, and no cluster.
add_test(NAME chart_policies COMMAND ${PROJECT_SOURCE_DIR}/tests/unit/kube/apiserver.sh ${CMAKE_BINARY_DIR}/chart_policies
                                     python3 -B ${here}/chart_policies_test.py)
set_tests_properties(chart_policies PROPERTIES LABELS integration TIMEOUT 900 SKIP_RETURN_CODE 77)
add_test(NAME chart_alerts COMMAND python3 -B ${here}/chart_alerts_test.py)
set_tests_properties(chart_alerts PROPERTIES LABELS integration TIMEOUT 300 SKIP_RETURN_CODE 77)
kubernetes_test(up 900 ${here}/kubernetes_setup.py up)
# Installs a release of its own, so it comes before the tests' operator. Without ./dev release VERSION both are skipped.
kubernetes_test(release 1200 ${here}/kubernetes_release_test.py)
add_test(NAME release_install COMMAND python3 -B ${here}/release_install_test.py)
set_tests_properties(release_install PROPERTIES LABELS "e2e;suite" TIMEOUT 900 SKIP_RETURN_CODE 77)
foreach(step install uninstall down)
  kubernetes_test(${step} 900 ${here}/kubernetes_setup.py ${step})
endforeach()
add_test(NAME cluster.today COMMAND python3 -B ${here}/today_test.py ${CMAKE_BINARY_DIR})
set_tests_properties(cluster.today PROPERTIES LABELS "unit;machine")
set_tests_properties(kubernetes.up PROPERTIES FIXTURES_SETUP kubernetes_cluster)
set_tests_properties(kubernetes.down PROPERTIES FIXTURES_CLEANUP kubernetes_cluster)
set_tests_properties(kubernetes.release PROPERTIES LABELS "kubernetes;suite" FIXTURES_REQUIRED kubernetes_cluster)
set_tests_properties(kubernetes.install PROPERTIES FIXTURES_REQUIRED kubernetes_cluster FIXTURES_SETUP kubernetes_operator)
set_tests_properties(kubernetes.uninstall PROPERTIES FIXTURES_REQUIRED kubernetes_cluster FIXTURES_CLEANUP kubernetes_operator)
kubernetes_test(smoke 600 ${here}/kubernetes_smoke_test.py)
# name, timeout in seconds, script and its argument.
set(suites
    "manifests 600 manifests"
    "run.Runs 900 run Runs" "run.ByHand 900 run ByHand" "run.Life 900 run Life" "run.Failures 900 run Failures"
    "run.Limits 900 run Limits" "run.Liveness 900 run Liveness" "run.Chart 900 run Chart"
    "drain 900 drain" "resize 900 resize"
    "access.Network 900 access Network" "access.Rights 900 access Rights" "access.Admission 600 access Admission" "access.Certificates 900 access Certificates"
    "admin.Screen 600 admin Screen" "admin.Metrics 600 admin Metrics"
    "checkpoints 1200 checkpoints" "bucket 1200 bucket" "restored 1200 restored" "seats 900 seats" "eviction 600 eviction" "eviction_requests 1800 eviction_requests" "kueue 600 kueue" "gang 600 gang" "readme 900 readme" "plugin 600 plugin"
    "faults 1500 faults")
foreach(suite ${suites})
  separate_arguments(words UNIX_COMMAND ${suite})
  list(POP_FRONT words name timeout script)
  list(APPEND names ${name})
  kubernetes_test(${name} ${timeout} ${here}/kubernetes_${script}_test.py ${words})
  set_tests_properties(kubernetes.${name} PROPERTIES LABELS "kubernetes;suite")
endforeach()
foreach(name smoke ${names})
  set_tests_properties(kubernetes.${name} PROPERTIES FIXTURES_REQUIRED "kubernetes_cluster;kubernetes_operator")
endforeach()
