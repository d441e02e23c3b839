// Package tree applies V4A patches, and other texts of files ([NewRewrite]), to a
// tree of files: all of a patch or none of it.
//
// It knows the files that a patch names and how to replace them safely; what
// becomes of a text, and which place of it a hunk means, is the business of
// package v4a. It knows nothing of git's index or history, of tools, models or
// policy: who may change which path is decided by the caller, between
// [NewPlan], which reads and computes, and [Plan.Commit], which writes.
//
// Files are reached through an [os.Root] and not through go-git's worktree, which
// names files by their paths: a link that another process makes in the middle of a
// write could lead it elsewhere. go-git meets what the patch has made of the work
// tree where package gitops reads that into an object store.
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
//   - Several sections for one file apply in order; a file moved onto itself is
//     updated in place.
//   - Absolute paths, paths that leave the root, anything below .git, links that
//     lead out, absolute ones wherever they lead, directories and devices are
//     refused; so is a file that becomes a directory in the same patch.
//   - A file that moves takes its mode along.
//   - A file need not be UTF-8.
package tree
