// Package tree applies V4A patches, and other new texts of files ([NewRewrite]), to a tree of
// files, completely or not at all. Package v4a finds the places of hunks; this package replaces
// files safely. It knows nothing of git's index and history, tools, models or policy: the caller
// decides about paths between [NewPlan], which reads, and [Plan.Commit], which writes.
//
// It accesses files through an [os.Root] instead of go-git's worktree, which uses path names: a link
// created during a write could redirect it. go-git sees the patched files when package gitops reads them
// into an object store.
//
// # Paths
//
// A path may go through symbolic links inside the tree. Deleting or moving a link affects the link,
// everything else its target. [Plan.Changes] has the resolved paths. [Plan.Commit] writes only to those,
// and fails for a link created in between. Any element that a file system could take for ".git" is
// refused.
//
// # Files
//
// Files are replaced, not overwritten. The new file gets the old one's mode, and its owner if permitted.
// Other hard links and extended attributes stay with the old file. Files above [MaxFileSize], or above
// 256 MiB together, are refused: a plan holds changed and deleted files in memory for its diff.
//
// A failed write is undone as long as the tree permits renames and removals. If it no longer does, such
// as a tree turned read-only, the [*CommitError] lists each file in another state, the place of its old
// content, and leftovers. A write of another program between the last check and the rename is lost.
//
// # Deliberate differences from Codex
//
//   - A patch applies completely or not at all.
//   - Several sections for one file apply in order; a file moved onto itself is updated in place.
//   - Refused: absolute paths, paths out of the root or below .git, links out of the root, absolute
//     links, directories, devices, and a file that becomes a directory in the same patch.
//   - A moved file keeps its mode.
//   - A file need not be UTF-8.
package tree
