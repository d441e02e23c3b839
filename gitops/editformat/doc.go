// Package editformat owns the edit formats of models that write text and call no
// tools, those that Aider made known: what of an answer is an edit, a wish to
// read, a command or a plan, and what becomes of the texts of files.
//
// It opens no files, runs nothing and judges no paths.
package editformat
