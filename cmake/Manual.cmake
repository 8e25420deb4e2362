# Man pages from docs/man/*.scd, where scdoc is installed.
find_program(SCDOC scdoc)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.scd)
if(SCDOC AND pages)
  set(manual)
  foreach(page ${pages})
    get_filename_component(name ${page} NAME_WLE) # npuprof-info.1
    set(output ${PROJECT_BINARY_DIR}/man/${name})
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
      COMMAND sh -c "'${SCDOC}' < '${page}' > '${output}'"
      DEPENDS ${page} VERBATIM)
    list(APPEND manual ${output})
  endforeach()
  add_custom_target(manual ALL DEPENDS ${manual})
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
