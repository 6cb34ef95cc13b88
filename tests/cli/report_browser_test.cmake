# The pages of `sluice report` in a browser: they are drawn to their last line without a word on its console and without a request to anything
# else, what a pointer meets is explained, and no name of the model becomes an element.
if(NOT CHROMIUM)
  message("SKIPPED: no browser (Debian: chromium)")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

# Names that would be markup, in the place of others of their length
execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/plain.onnx --divide 32 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND sh -c "LC_ALL=C sed 's,conv1_1.relu,</script><b>,g; s,conv2_1,<i>\"\\&\">,g' plain.onnx > hostile.onnx"
  WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
set(model "<img src=x>{{data}}.sluice")
sluice(0 convert hostile.onnx -o ${model} --quiet)
sluice(0 plan ${model} --scope library --json)
json(budget minimum_budget_bytes)
sluice(0 plan ${model} --scope library --budget ${budget} --json)
json(steps steps)
sluice(0 report ${model} --scope library --budget ${budget} -o measured.html)
sluice(0 report ${model} --scope library --budget ${budget} --no-run -o planned.html)

# browse(NAME): sets `dom` to what NAME.html has become, `console` to the lines of its console, `requests` to the log's lines on what it asked
# the network for (what a browser asks for by itself has no page as its initiator).
macro(browse name)
  execute_process(COMMAND ${CHROMIUM} --headless --no-sandbox --disable-gpu --user-data-dir=${WORK_DIR}/browser --disable-background-networking
      --disable-component-update "--host-resolver-rules=MAP * ~NOTFOUND" --enable-logging=stderr --log-net-log=${WORK_DIR}/net.json --dump-dom ${name}.html
    WORKING_DIRECTORY ${WORK_DIR} OUTPUT_VARIABLE dom ERROR_VARIABLE err RESULT_VARIABLE status TIMEOUT 120)
  string(REGEX MATCHALL "[^\n]*CONSOLE[^\n]*" console "${err}")
  file(STRINGS ${WORK_DIR}/net.json requests REGEX "\"initiator\":\"null\"")
endmacro()

# dom_of(NAME): the same of a page that is drawn to its end, says nothing and asks for nothing.
macro(dom_of name)
  browse(${name})
  if(NOT status EQUAL 0 OR NOT dom MATCHES "data-drawn=\"yes\"")
    message(FATAL_ERROR "${name}.html is not drawn to its end (${status}): ${err}")
  endif()
  if(console OR requests)
    message(FATAL_ERROR "${name}.html says on the console: ${console}; asks for: ${requests}")
  endif()
endmacro()

# What judges them sees a page that says something and one that asks for something.
file(WRITE ${WORK_DIR}/wrong.html [[<!doctype html><body><img src="http://sluice.example/x.png"><script>absent();</script></body>]])
browse(wrong)
if(NOT console MATCHES "absent is not defined" OR NOT requests)
  message(FATAL_ERROR "a page with an error and a request passes: ${console}; ${requests}")
endif()

foreach(name measured planned)
  dom_of(${name})
  string(REGEX REPLACE "<script.*</script>" "" dom "${dom}")
  if(dom MATCHES "<img|<i>|<b>[^0-9u]" OR NOT dom MATCHES "&lt;i&gt;")
    message(FATAL_ERROR "${name}.html: a name became markup, or is not there")
  endif()
  foreach(class buffer "step planned" "load planned" curve)
    expect_match("${dom}" "class=\"${class}\"")
  endforeach()
  if(name STREQUAL "measured")
    expect_match("${dom}" "class=\"step measured\"")
  endif()
  string(REGEX MATCHALL "class=\"step planned\"" drawn "${dom}")
  list(LENGTH drawn drawn)
  if(NOT drawn EQUAL steps)
    message(FATAL_ERROR "${drawn} of ${steps} steps are drawn")
  endif()
endforeach()

# A pointer over each block of the memory map, and away: what the page says of it, collected by a script behind the page's own
file(READ ${WORK_DIR}/measured.html page)
string(REPLACE "</body>" [[
<script>
const said = [...document.querySelectorAll(".buffer")].map(block => {
  block.dispatchEvent(new PointerEvent("pointermove", { clientX: 9, clientY: 9 }));
  const shown = getComputedStyle(tip).display !== "none" ? tip.textContent : "";
  block.dispatchEvent(new PointerEvent("pointerleave"));
  return getComputedStyle(tip).display === "none" ? shown : "";
});
const share = pattern => said.filter(words => pattern.test(words)).length;
document.body.dataset.hover = `of ${said.length}: ${share(/^.+\n(input|output|activation|weight|derived|workspace|state|sums), [0-9,]+ bytes \([0-9.]+ MiB\) at [0-9,]+\n/)} sized,
  ${share(/\nnode .+ \(.+\)/)} noded, ${share(/\nlives (from step [0-9]+ to [0-9]+: .+ ms to .+ ms|for the whole run)/)} living, ${share(/\nload [0-9]+: needed by step .*\n(Gate: |It is read once)/)} gated`;
</script></body>]] hovered "${page}")
if(hovered STREQUAL page)
  message(FATAL_ERROR "measured.html has no </body>")
endif()
file(WRITE ${WORK_DIR}/hovered.html "${hovered}")
dom_of(hovered)
if(NOT dom MATCHES "data-hover=\"of ([0-9]+): ([0-9]+) sized,[ \n]*([0-9]+) noded, ([0-9]+) living, ([0-9]+) gated")
  message(FATAL_ERROR "a pointer over the memory map is not answered")
endif()
set(blocks ${CMAKE_MATCH_1})
set(gated ${CMAKE_MATCH_5})
if(blocks LESS 20 OR NOT CMAKE_MATCH_2 EQUAL blocks OR NOT CMAKE_MATCH_4 EQUAL blocks OR CMAKE_MATCH_3 LESS 10)
  message(FATAL_ERROR "of ${blocks} blocks ${CMAKE_MATCH_2} tell their bytes, ${CMAKE_MATCH_3} their node, ${CMAKE_MATCH_4} their life")
endif()
if(gated LESS 2)
  message(FATAL_ERROR "${gated} blocks explain their gate")
endif()
