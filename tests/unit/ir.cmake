npu_unit_test(ir npu_ir)
npu_unit_test(ir_data npu_ir)
target_compile_definitions(test_ir_data PRIVATE SCRATCH="${CMAKE_CURRENT_BINARY_DIR}")
npu_unit_test(pass_manager npu_ir)

# A plugin as a user writes one: linked against nothing. The second claims another ABI, the third's symbol is data: both
# must be refused.
foreach(plugin plugin plugin_old plugin_data)
  add_library(test_${plugin} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/test_plugin.c)
endforeach()
target_compile_definitions(test_plugin_old PRIVATE PLUGIN_ABI=999)
target_compile_definitions(test_plugin_data PRIVATE PLUGIN_DATA)
add_dependencies(test_pass_manager test_plugin test_plugin_old test_plugin_data)
target_compile_definitions(test_pass_manager PRIVATE
  PLUGIN="$<TARGET_FILE:test_plugin>" PLUGIN_OLD="$<TARGET_FILE:test_plugin_old>"
  PLUGIN_DATA="$<TARGET_FILE:test_plugin_data>"
  SCRATCH="${CMAKE_CURRENT_BINARY_DIR}")
