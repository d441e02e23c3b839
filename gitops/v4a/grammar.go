package v4a

import _ "embed"

// Grammar is the envelope's format for a model whose freeform output is held to
// a Lark grammar. [Parse] reads every text of it, and more: the tolerances are
// for models that write without it.
const Grammar = `start: "*** Begin Patch" LF section+ "*** End Patch" LF?

section: added | deleted | updated
added: "*** Add File: " path LF added_line+
deleted: "*** Delete File: " path LF
updated: "*** Update File: " path LF moved? first_hunk hunk*
moved: "*** Move to: " path LF

first_hunk: place* hunk_line+ end_of_file?
hunk: place+ hunk_line+ end_of_file?
place: "@@" LF | "@@ " /.+/ LF
hunk_line: (" " | "-" | "+") /.*/ LF
end_of_file: "*** End of File" LF
added_line: "+" /.*/ LF

path: /\S.*/

%import common.LF
`

//go:embed instructions.md
var instructions string

// Instructions tells a model that gets the patch tool as a function, and so no
// grammar, how to write a patch in its envelope.
func Instructions() string { return instructions }
