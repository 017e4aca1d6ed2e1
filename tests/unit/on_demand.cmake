npu_unit_test(on_demand npu_samples npu_frontend npu_ir npu_support)
pkg_check_modules(MINIZIP REQUIRED IMPORTED_TARGET minizip)
target_link_libraries(test_on_demand PRIVATE PkgConfig::MINIZIP)
