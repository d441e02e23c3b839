// Package v4a owns V4A patches, the edit format that OpenAI's models are trained
// on, as text: what a patch says, which lines of a text its hunks mean, what
// becomes of the text, and why a hunk fits nowhere, in words that teach the model.
//
// It opens no files and judges no paths. What a patch does to a tree of files is
// the business of package tree.
//
// # Dialects
//
// [Parse] reads the envelope ("*** Begin Patch" … "*** End Patch") with the
// tolerances of Codex's own applier: blanks around markers and headers, a
// heredoc around the whole, a first hunk without "@@", empty lines as empty
// context, CRLF, "*** Environment ID:" before the first section. [ParseDiff]
// reads the bare diff of the Responses API's apply_patch_call as OpenAI's
// Agents SDKs apply it: an anchor that is not found is passed over, a created
// file ends where the diff ends, and an updated file keeps or keeps lacking
// its final newline. In both, "@@" lines with line numbers are read over.
//
// On purpose, and other than there: Unicode punctuation is folded here too; a
// CR alone ends a line, mixed endings stay mixed, and a byte order mark belongs
// to no line; a hunk may not reach back into the one before; nothing that an
// "*** End of File" stands above is dropped; and a diff that holds an envelope's
// lines alone is refused, not taken for an empty one.
//
// # Matching
//
// The lines that a hunk expects are looked for below the hunk before it, in
// four passes over the rest of the file, the first hit winning: the same
// bytes; the same without trailing blanks; without blanks at both ends; and so
// with Unicode dashes, quotes and spaces folded to ASCII. A line that matched
// loosely keeps the file's bytes. New lines take the line ending that the file
// uses first; LF, CRLF and CR may be mixed. A byte order mark and bytes that
// are not UTF-8 stay as they are.
//
// # Differences from Codex, each on purpose
//
//   - An "@@ line" that is nowhere below the hunk before, but in one place above it,
//     names what the hunk is in, where nothing between the two can be meant.
//   - Line numbers after "@@" are read over where a hunk fits one place alone. A
//     note tells of both.
//   - Added lines under an "@@ line" go below that line, not to the end of the file.
//   - "@@" lines may be stacked; each one narrows the place found by the one before.
//   - A byte order mark need not be repeated in the patch to match a first line.
//   - Text that follows "*** End Patch" inside the patch is refused, unless it is
//     that marker once more.
package v4a
