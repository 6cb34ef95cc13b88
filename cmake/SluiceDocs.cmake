# `sluice_docs`: pages of the public headers, by doxygen, in docs/ of the build folder; no such target where doxygen is not installed. A
# warning is an error. The guides in docs/ are read as they lie: doxygen does not follow Markdown's links to headings and to other READMEs.
find_package(Doxygen QUIET)
if(DOXYGEN_FOUND)
  set(DOXYGEN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/docs)
  set(DOXYGEN_PROJECT_BRIEF "${PROJECT_DESCRIPTION}")
  set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
  set(DOXYGEN_EXTRACT_ALL YES)
  set(DOXYGEN_GENERATE_LATEX NO)
  set(DOXYGEN_QUIET YES)
  set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
  # It takes the specialisation of std::hash for a member of a class that it has not seen.
  set(DOXYGEN_INPUT_FILTER "sed s/std::hash.*{/HashOfId{/")
  set(DOXYGEN_STRIP_FROM_PATH ${PROJECT_SOURCE_DIR}/include)
  doxygen_add_docs(sluice_docs include/sluice WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Pages of the headers")
endif()
