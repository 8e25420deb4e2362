# Compiler options for our own code: np_options is linked by every target.
add_library(np_options INTERFACE)
target_include_directories(np_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(np_options INTERFACE _GNU_SOURCE NPUPROF_VERSION="${PROJECT_VERSION}")
target_compile_options(np_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wvla -Wwrite-strings -Wold-style-definition
  -Werror -fno-common -fvisibility=hidden
  -include ${PROJECT_SOURCE_DIR}/src/base/banned.h)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  target_compile_options(np_options INTERFACE -Wno-gnu-zero-variadic-macro-arguments -Wno-gnu-statement-expression)
endif()
# Behind np_options, for tests: cmocka's macros convert freely.
add_library(np_test_options INTERFACE)
target_compile_options(np_test_options INTERFACE -Wno-conversion -Wno-sign-conversion -Wno-pedantic)

find_package(Threads REQUIRED)
target_link_libraries(np_options INTERFACE Threads::Threads m)

if(NPUPROF_SANITIZE)
  add_compile_options(-fsanitize=${NPUPROF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${NPUPROF_SANITIZE})
else()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
  endif()
endif()
