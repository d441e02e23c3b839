// Package editformat owns the edit formats of models that write text and call no
// tools, those that Aider made known: what of an answer is an edit, a wish to
// read, a command or a plan, and what becomes of the texts of files.
//
// It opens no files, runs nothing and judges no paths.
//
// # Answers
//
// [Parse] takes only what is whole: a SEARCH/REPLACE block with its three markers, a
// fence that is closed. What begins and does not end is told as a problem. What
// stands in another fence is an example, a block in one of text too, unless its path
// stands in that, or the path of a file of text above it. A fence with fences of its own that are no shorter
// may end elsewhere than it seems: what is asked for behind it is a problem. A path stands on a line of its own above a fence or block,
// in the first line of a fence, or in place of its language; "#", "**", backticks and
// a colon around it are of no account. A word above the fence of a whole file is the
// name of one that is there. A block without a path is of the file of the
// block before, or else of the only known file that it fits.
//
// The markers of a block have 5 to 9 characters. Lines of the file that look like
// them are its own where the markers of the block are of another length; where both
// ways to read it make a block, it is refused.
//
// # Places
//
// [Apply] looks for the lines of a block in the text that the blocks before it leave, by
// package find: the same bytes; the same without blanks at the ends of lines; the same further in or
// out, all by as much. After that the same without the blank lines at the ends of
// the block, and pieces between lines "...", which both sides have. A hunk may lack
// the blank in front of its lines that stay. Whatever fits must be in one place only:
// other than Aider, which takes the first one, drops lines of context and adds to the
// end of a file what has no place. Line endings, a byte order mark and a final newline
// stay as they are; a hunk may say otherwise of the last.
//
// A whole file is refused where a line of it stands for others, and where a fence in
// it may have been taken for its end. Its path has no blanks.
package editformat
