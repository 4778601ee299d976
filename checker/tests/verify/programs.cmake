# Programs with pools of their own: `pmlab verify --program`. Each holds defects as published ones, chosen by
# PMLAB_DEFECT.
enable_language(C)

# Runs that give no verdict.
add_executable(program_misuse programs/misuse.c)
add_executable(program_misuse_static programs/misuse.c)
foreach(program IN ITEMS program_misuse program_misuse_static)
  target_link_libraries(${program} PRIVATE pmlab::programs Threads::Threads ${CMAKE_DL_LIBS})
endforeach()
target_link_options(program_misuse_static PRIVATE -static)
target_compile_options(program_misuse_static PRIVATE -Wno-all)
add_test(NAME verify.program_input
         COMMAND ${PMLAB_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/program_input_test.py
                 $<TARGET_FILE:pmlab_simulated_program> $<TARGET_FILE:program_misuse> $<TARGET_FILE:program_misuse_static>)
set_tests_properties(verify.program_input PROPERTIES TIMEOUT 180 COST 10 LABELS verify ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)

# The others need libpmemobj.
if(NOT TARGET pmlab::pmem)
  return()
endif()

function(pmlab_verified_program name source)
  add_executable(program_${name} programs/${source})
  target_link_libraries(program_${name} PRIVATE pmlab::pmem)
  # Reports name source lines.
  target_compile_options(program_${name} PRIVATE -g -O1 -Wall -Wextra)
endfunction()

# NAME SOURCE AFTER DEFECTS: from the mark AFTER on, its defects are found, and it is clean without them.
function(pmlab_program_test name source after defects)
  pmlab_verified_program(${name} ${source})
  add_test(NAME verify.program.${name}
           COMMAND ${PMLAB_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/program_test.py $<TARGET_FILE:pmlab_simulated_program>
                   $<TARGET_FILE:program_${name}> ${after} ${defects} ${ARGN})
  set_tests_properties(verify.program.${name} PROPERTIES TIMEOUT 400 COST 10 LABELS verify
                                                         ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()

pmlab_program_test(sorted_nodes sorted_nodes.c created 3)
pmlab_program_test(hash_in_transactions hash_in_transactions.c created 2)
pmlab_program_test(hash_without_transactions hash_without_transactions.c "pool made" 4)
pmlab_program_test(named_array named_array.c "pool made" 2)
pmlab_program_test(slots slots.c "inserted 0" 2)
if(TARGET pmlab::with_libpmemobj-cpp)
  pmlab_program_test(queue queue.cpp created 2)
  target_link_libraries(program_queue PRIVATE pmlab::with_libpmemobj-cpp)
endif()
pmlab_program_test(transactions_of_size transactions_of_size.c created 0)

# pmlab's own medium: allocation, publication and the creation of a pool, inside libpmemobj.
pmlab_program_test(pmem_medium pmem_medium.cpp "roots made" 2 creation)
