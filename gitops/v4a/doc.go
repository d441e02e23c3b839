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
// its final newline. Several "@@" lines above a hunk have to be there, as in the SDKs
// since August 2026.
//
// On purpose, and other than there: Unicode punctuation is folded here too; a
// CR alone ends a line, mixed endings stay mixed, and a byte order mark belongs
// to no line; a hunk may not reach back into the one before; nothing that an
// "*** End of File" stands above is dropped; and a diff that holds an envelope's
// lines alone is refused, not taken for an empty one.
//
// # Matching
//
// The lines that a hunk expects are looked for below the hunk before it, by package
// find: the same bytes; the same without trailing blanks; without blanks at both ends;
// and so with Unicode dashes, quotes and spaces folded to ASCII. The first of these
// ways that fits anywhere counts. A line that matched loosely keeps the file's bytes.
// New lines take the line ending that the file uses first; LF, CRLF and CR may be
// mixed. A byte order mark and bytes that are not UTF-8 stay as they are. So does a
// last line without an ending, unless the patch replaces it or adds below it.
//
// # Several places
//
// A hunk that fits several places is applied
//
//   - where all others are out of the question, since the hunk below it fits nowhere
//     below them;
//   - at the line that line numbers after "@@" give, or at the place nearest to it;
//   - at the first place, if an "@@" line names something above it.
//
// Else it is refused. A note names the other places, unless order settles it. It also names
// places where the hunk fits in a looser way only or with one more line in it, and those
// above the hunk before. Line numbers may be wrong by just as much as two places are apart.
//
// The decision follows from the replay of make bench. Of the hunks without an "@@" line
// that several places fit, 7 of 10 do not belong in the first one: the model has less to
// put right after a refusal. Where an "@@" line is there, the first place is mostly right.
//
// # Differences from Codex, each on purpose
//
//   - A hunk without an "@@" line that fits several places is refused.
//   - An "@@" line that is nowhere below the hunk before, but above it, names what the
//     hunk is in, if the hunk fits one place below or the line is the only one of its
//     kind.
//   - Line numbers after "@@" choose between places.
//   - Added lines under an "@@ line" go below that line, not to the end of the file.
//   - "@@" lines may be stacked; each one narrows the place found by the one before.
//   - A byte order mark need not be repeated in the patch to match a first line.
//   - Text that follows "*** End Patch" inside the patch is refused, unless it is
//     that marker once more.
package v4a
