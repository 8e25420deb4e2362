# src/report/embed.c copies these files into the binary by the assembler's .incbin.
set_source_files_properties(src/report/embed.c PROPERTIES
  COMPILE_DEFINITIONS "NP_ROOT=\"${PROJECT_SOURCE_DIR}/\""
  COMPILE_OPTIONS -fno-lto
  OBJECT_DEPENDS "${PROJECT_SOURCE_DIR}/po/zh_CN.po;${PROJECT_SOURCE_DIR}/src/report/html_bundle.js;${PROJECT_SOURCE_DIR}/src/report/html_bundle.css")
# … and src/advice/rules.c the thresholds.
set_source_files_properties(src/advice/rules.c PROPERTIES
  COMPILE_DEFINITIONS "NP_ROOT=\"${PROJECT_SOURCE_DIR}/\""
  COMPILE_OPTIONS -fno-lto
  OBJECT_DEPENDS "${PROJECT_SOURCE_DIR}/rules/advice.json")
