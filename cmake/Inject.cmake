# What runs inside the user's process, see docs/formats/inject.md: a library for LD_PRELOAD
# and a Python package. Both are carried by the program itself (src/collect/inject_files.c),
# so that one file is all that a host needs.

# Sanitizers stay out: it is loaded into programs that have none.
file(GLOB preload CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/inject/preload/*.c)
add_library(npuprof_collectives SHARED ${preload})
target_include_directories(npuprof_collectives PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(npuprof_collectives PRIVATE _GNU_SOURCE NPUPROF_VERSION="${PROJECT_VERSION}")
target_compile_options(npuprof_collectives PRIVATE -O2 -Wall -Wextra -Wconversion -Wshadow -Werror
  -fvisibility=hidden -fexceptions -ftls-model=initial-exec -fno-sanitize=all -U_FORTIFY_SOURCE -fno-lto)
target_link_options(npuprof_collectives PRIVATE -fno-sanitize=all -Wl,-z,defs)
target_link_libraries(npuprof_collectives PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
install(TARGETS npuprof_collectives LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/npuprof)

set(root ${PROJECT_SOURCE_DIR}/inject/python)
file(GLOB_RECURSE modules RELATIVE ${root} CONFIGURE_DEPENDS ${root}/*.py)
list(SORT modules)
set(list "NP_INJECT_FILE(library, \"libnpuprof_collectives.so\", NP_INJECT_LIBRARY)\n")
set(depends npuprof_collectives)
foreach(module ${modules})
  string(MAKE_C_IDENTIFIER ${module} symbol)
  string(APPEND list "NP_INJECT_FILE(${symbol}, \"${module}\", \"${root}/${module}\")\n")
  list(APPEND depends ${root}/${module})
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/inject_files.inc CONTENT "${list}")
set_source_files_properties(src/collect/inject_files.c PROPERTIES
  COMPILE_DEFINITIONS "NP_INJECT_LIBRARY=\"$<TARGET_FILE:npuprof_collectives>\""
  COMPILE_OPTIONS -fno-lto
  OBJECT_DEPENDS "${depends}")
