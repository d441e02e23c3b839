// Package v4a handles V4A patches as text. V4A is the edit format that OpenAI trains its models on.
// The package parses patches, finds the place of each hunk, computes the new text, and explains to
// the model why a hunk does not fit. It opens no files and judges no paths. Package tree applies
// patches to files.
//
// # Dialects
//
// [Parse] parses the envelope ("*** Begin Patch" … "*** End Patch") with the tolerances of Codex's
// applier: blanks around markers and headers, a heredoc around the patch, a first hunk without "@@",
// empty lines as empty context, CRLF, "*** Environment ID:" before the first section. [ParseDiff] parses
// the bare diff of the Responses API's apply_patch_call like OpenAI's Agents SDKs: a missing anchor is
// ignored, a created file ends with the diff, and an updated file keeps or lacks its final newline as
// before. Several "@@" lines above a hunk must all exist, as in the SDKs since August 2026.
//
// Deliberate differences: Unicode punctuation is folded here too; a lone CR ends a line, mixed endings
// stay mixed, and a byte order mark belongs to no line; a hunk may not overlap the one before; lines
// below "*** End of File" are kept; a diff with only an envelope's lines is refused, not empty.
//
// # Matching
//
// Package find searches the expected lines below the previous hunk: the same bytes; without trailing
// blanks; without blanks at both ends; and then with Unicode dashes, quotes and spaces folded to ASCII.
// The first way with a match counts. A loosely matched line keeps the file's bytes. New lines take the
// line ending that the file uses first; LF, CRLF and CR may be mixed. A byte order mark and invalid
// UTF-8 stay. So does a last line without an ending, unless the patch replaces it or adds below it.
//
// # Several places
//
// A hunk with several matches is applied
//
//   - if the next hunk excludes all other places, because it fits nowhere below them;
//   - at the line number after "@@", or the place nearest to it;
//   - at the first place, if an "@@" line names something above it.
//
// Otherwise it is refused. A note lists the other places, unless the order decides. It also lists
// places with a looser match or one more line, and places above the previous hunk. Line numbers may be
// wrong by the distance of two places.
//
// The replay of make bench supports this. Of the hunks without an "@@" line and several matches, 7 of
// 10 do not belong in the first place, so a refusal costs the model less. With an "@@" line the first
// place is mostly right.
//
// # Deliberate differences from Codex
//
//   - A hunk without an "@@" line and several matches is refused.
//   - An "@@" line found only above the previous hunk names the context of this one, if the hunk has a
//     unique place below or the line is unique.
//   - Line numbers after "@@" choose between places.
//   - Lines added under an "@@ line" go below that line, not to the end of the file.
//   - "@@" lines may be stacked; each one narrows the place found by the one before.
//   - A patch need not repeat a byte order mark to match a first line.
//   - Text after "*** End Patch" inside the patch is refused, unless it repeats that marker.
package v4a
