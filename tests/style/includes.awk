# The include rules of the folders, and what libraries must not do. Reads every source file; FOLDER is set on the command
# line before the files of a folder. Exits 1 after naming each breach.

function complain(text) {
  print FILENAME ":" FNR ": " text > "/dev/stderr"
  failed = 1
}

function may_include(folder, header, target) {
  # backend/host takes from the ISA the definition of the special functions and the operations they are written in.
  if (folder == "backend/host" && (header == "isa/isa.h" || header == "isa/vops.def")) return 1
  return index(" " allowed[folder] " ", " " target " ") > 0
}

BEGIN {
  allowed["support"] = "support"
  allowed["isa"] = "isa support"
  allowed["ir"] = "ir support"
  allowed["frontend"] = "frontend ir support"
  allowed["passes"] = "passes ir isa support"
  allowed["backend/npu"] = "backend/npu ir isa support"
  allowed["backend/host"] = "backend/host ir support"
  allowed["runtime"] = "runtime isa support"
  allowed["tools"] = "tools passes backend/npu backend/host frontend ir isa runtime support"
  # A call: the name is not the end of a longer one, nor a member.
  memory = "(^|[^_a-zA-Z0-9>.])(malloc|calloc|realloc|free|strdup|strndup|asprintf) *[(]"
  output = "(^|[^_a-zA-Z0-9>.])(exit|_exit|printf|puts|perror) *[(]"
}

FNR == 1 { files[FOLDER]++ }

/^ *# *include *"/ {
  split($0, part, "\"")
  header = part[2]
  target = FOLDER # a bare name is a file of the same folder
  if (match(header, /\/[^\/]*$/)) target = substr(header, 1, RSTART - 1)
  if (!may_include(FOLDER, header, target)) complain(FOLDER "/ must not include " header)
  if (header ~ /_internal\.h$/ && target != FOLDER) complain(header " belongs to " target "/ alone")
}

/^ *# *include *<llvm/ {
  if (FOLDER != "backend/host" && FOLDER != "runtime") complain("LLVM is for backend/host and runtime only")
  if ($0 !~ /<llvm-c\// && $0 !~ /<llvm\/Config\/llvm-config.h>/) complain("only LLVM's C interface (llvm-c/)")
}

FOLDER != "support" && $0 ~ memory { complain("memory comes from support/ (mem_alloc, arenas)") }
FOLDER != "tools" && $0 ~ output { complain("a library neither exits nor prints") }

END {
  for (folder in allowed)
    if (!files[folder]) {
      print folder ": no sources found; the rule checks nothing" > "/dev/stderr"
      failed = 1
    }
  exit failed
}
