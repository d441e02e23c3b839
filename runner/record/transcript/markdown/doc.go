// Package markdown writes hostile text into GitHub-flavoured Markdown so that
// it is read as text and does nothing: it mentions nobody, refers to and closes
// no issue, becomes no link, image, HTML or block of its own, leaves no fence
// and hides nothing. It knows Markdown and what GitHub makes of plain text; it
// knows nothing of runs and transcripts.
//
// Each place that takes text has its function: Text for running text and table
// cells, HTML for the inside of an element, Code for code spans,
// Fence for blocks of code, Prose for a whole message, Title and Commit for the
// title of a pull request and a commit's message, FileName for a path, also in a
// terminal. All of them clean their text themselves.
//
// GitHub decodes entities before it looks for mentions and references, so that
// an entity for "@" or "#" is of no use; an entity for a zero width space after
// it is. A title gets the space itself. In code and in commits, which are copied, a
// character gives way to its full width twin, which can be seen.
package markdown
