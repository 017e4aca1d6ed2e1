foreach(part host host_program)
  npu_unit_test(${part} npu_backend_host test_compare_lib)
  target_sources(test_${part} PRIVATE host_model.c)
endforeach()
