// Package editformat handles the edit formats of models without tools, introduced by Aider. It
// parses edits, requests to read, commands and plans in an answer. It applies edits to texts. It
// opens no files, runs nothing and judges no paths.
//
// # Answers
//
// [Parse] accepts whole elements only: a SEARCH/REPLACE block with three markers, a closed fence. An
// unfinished one is a problem. Any other fence is an example; so is a block in a text fence, unless its
// path is inside, or the path above is a text file. A fence around fences of its own length may end
// elsewhere than it seems, so requests behind it are a problem.
//
// The path is in a line above a fence or block, in the first line of a fence, or in place of its
// language. "#", "**", backticks and a colon around it are ignored. A word above the fence of a whole
// file must name an existing file. A block without a path belongs to the previous block's file, or to
// the only known file that it fits.
//
// Markers of a block have 5 to 9 characters. Similar lines of another length belong to the file. A
// block with two readings is refused.
//
// # Places
//
// [Apply] searches the lines of a block in the result of the blocks before, with package find: the same
// bytes; without blanks at line ends; indented differently by a constant. Then it tries the same without
// blank lines at the block's ends, and the pieces between "..." lines common to both sides. A hunk may
// lack the blank before its context lines. A match must be unique. Aider, in contrast, takes the first
// match, drops context lines, and appends lines without a place to the file. Line endings, a byte order
// mark and a final newline stay; a hunk may change the last.
//
// A whole file is refused if one of its lines stands for omitted ones, or a fence inside may have been
// its end. Its path has no blanks.
package editformat
