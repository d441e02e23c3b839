// Package v4a parses V4A patches, the edit format that OpenAI's models are
// trained on, and applies them to a work tree: all of a patch or none of it.
//
// It knows the format, the files that a patch names and how to replace them
// safely. It knows nothing of git's index or history, of tools, models or
// policy: who may change which path is decided by the caller, between
// [NewPlan], which reads and computes, and [Plan.Commit], which writes.
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
// its final newline.
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
// # Paths
//
// A path may lead through symbolic links as long as they stay inside the tree;
// deleting or moving a link is about the link, all else about the file that it
// leads to. [Plan.Changes] has the paths without links, and [Plan.Commit]
// writes to those and no others: a link that appears in between is an error,
// not a way. Anything that a file system could take for ".git" is refused in
// every element of a path.
//
// # Files
//
// Files are replaced, not written into. The new one has the mode of the old
// one, and its owner where that may be given; other hard links and extended
// attributes stay with the old one. Files above [MaxFileSize], and more of them
// than [MaxTotalSize], are refused: a plan holds what it changes, and what it
// deletes, to show it.
//
// A write that fails is undone as long as the tree lets files be renamed and
// removed. Where it does not any more, as when it turns read-only in the middle,
// the [*CommitError] names each file that is not as it was, where its old
// content is, and what lies about. Between the last look at a file and its
// renaming there is a moment in which another program's write is lost.
//
// # Differences from Codex, each on purpose
//
//   - A patch applies as a whole or not at all.
//   - Added lines under an "@@ line" go below that line, not to the end of the file.
//   - "@@" lines may be stacked; each one narrows the place found by the one before.
//   - Several sections for one file apply in order; a file moved onto itself is
//     updated in place.
//   - A byte order mark need not be repeated in the patch to match a first line.
//   - Absolute paths, paths that leave the root, anything below .git, links that
//     lead out, absolute ones wherever they lead, directories and devices are
//     refused; so is text that follows "*** End Patch" inside the patch, unless
//     it is that marker once more, and a file that becomes a directory in the
//     same patch.
//   - A file that moves takes its mode along.
//   - A file need not be UTF-8.
package v4a
