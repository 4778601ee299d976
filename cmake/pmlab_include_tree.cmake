# The include path of pmlab: headers are written as <pmlab/FOLDER/NAME.hpp> from the build tree and from an install
# alike, so the build tree gets a folder `pmlab` that links to the source folders. No folder named `cache` or `base`
# ever lands on anybody's include path.
set(PMLAB_HEADER_FOLDERS base media sync indexes cache hybrid strings)
set(PMLAB_TOOL_FOLDERS erased workload pibench simulator verify bench microbench pool cli)
set(PMLAB_INCLUDE_TREE ${CMAKE_CURRENT_BINARY_DIR}/include)

file(MAKE_DIRECTORY ${PMLAB_INCLUDE_TREE}/pmlab)
foreach(folder IN LISTS PMLAB_HEADER_FOLDERS PMLAB_TOOL_FOLDERS)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${PMLAB_INCLUDE_TREE}/pmlab/${folder} SYMBOLIC)
endforeach()
