// Package markdown writes hostile text as GitHub-flavoured Markdown without effects: it mentions
// nobody, references and closes no issue, creates no link, image, HTML or block, escapes no fence
// and hides nothing. It knows Markdown and GitHub's treatment of plain text, but no runs or
// transcripts.
//
// Each place has its function: Text for running text and table cells, HTMLLine for the inside of an element,
// Code for code spans, Fence for code blocks, Prose for a whole message, Title and Commit for a pull
// request's title and a commit message, FileName for a path, also in a terminal. All clean their text.
//
// GitHub decodes entities before it looks for mentions and references, so an entity for "@" or "#" is
// useless, but one for a zero width space after it works. A title gets the space itself. Code and commit
// messages are copied, so there a visible full-width character replaces the original.
package markdown
