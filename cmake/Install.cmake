# What `cmake --install` puts where: the commands, libnpucc and libnpurt with headers, a CMake package and
# pkg-config files.
include(CMakePackageConfigHelpers)

# Shared libraries of this tree's static ones. libnpurt holds support, isa and the runtime; libnpucc stands on it, so that
# a program using both has every function once.
function(npu_shared_library name)
  cmake_parse_arguments(arg "" "" "PARTS;ON" ${ARGN})
  set(objects)
  foreach(part ${arg_PARTS})
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  add_library(${name}_shared SHARED ${objects})
  set_target_properties(${name}_shared PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C
    INSTALL_RPATH $ORIGIN)
  # The parts once more, after what the library stands on, for the libraries of the system they need.
  target_link_libraries(${name}_shared PUBLIC ${arg_ON} PRIVATE ${arg_PARTS})
  target_include_directories(${name}_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/npucc>)
endfunction()
npu_shared_library(npurt PARTS npurt npu_isa npu_support)
npu_shared_library(npucc ON npurt_shared
  PARTS npucc_lib npu_samples npu_frontend npu_passes npu_backend_npu npu_backend_host npu_ir)

# A pass plugin needs the headers and links nothing.
add_library(npucc_headers INTERFACE)
set_target_properties(npucc_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(npucc_headers INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/npucc>)

install(TARGETS npucc npu-opt npu-as npu-objdump npu-diff npusim RUNTIME)
install(TARGETS npucc_shared npurt_shared npucc_headers EXPORT npuccTargets LIBRARY)

set(NPU_PUBLIC_HEADERS
  support/support.h support/dtype.h support/tensorfile.h
  isa/isa.h isa/isa.def isa/vops.def isa/descfields.def isa/machine.def
  ir/ir.h ir/pass.h ir/ops.def ir/api.def
  frontend/frontend.h passes/passes.h backend/npu/npu.h backend/host/host.h
  runtime/npurt.h tools/compile.h)
foreach(header ${NPU_PUBLIC_HEADERS})
  get_filename_component(dir ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/npucc/${dir})
endforeach()

# What the commands read and what there is to read about them.
set(share_dir ${CMAKE_INSTALL_DATADIR}/npucc)
install(DIRECTORY isa/machines DESTINATION ${share_dir})
install(DIRECTORY examples/pass_template DESTINATION ${share_dir})
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(manual frontend ir isa passes runtime)
  install(FILES ${manual}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME ${manual}.md)
endforeach()

# CMake: find_package(npucc) gives npucc::npucc, npucc::npurt and npucc::headers.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/npucc)
install(EXPORT npuccTargets NAMESPACE npucc:: DESTINATION ${package_dir})
configure_package_config_file(cmake/npuccConfig.cmake.in npuccConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(npuccConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/npuccConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/npuccConfigVersion.cmake
  DESTINATION ${package_dir})

# pkg-config: the files find their prefix from where they lie, so an installed tree can be moved.
file(RELATIVE_PATH NPU_PC_TO_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
foreach(name npucc npurt)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
