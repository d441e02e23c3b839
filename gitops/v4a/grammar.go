package v4a

import _ "embed"

// Grammar is the Lark grammar of a patch in its envelope, for models whose output a grammar can
// constrain. [Parse] also accepts deviations from it, by other models.
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

// Instructions explains the envelope to a model whose patch tool is a function without a grammar.
func Instructions() string { return instructions }
