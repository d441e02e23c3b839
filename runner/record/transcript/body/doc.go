// Package body owns what people read of a run as Markdown: the body of its pull
// request with the comments that go on with it (Compose), the summary of its job
// (Outline), a whole document (Document), a title. It reads a View and nothing
// else, and refuses to know where the text goes.
package body
