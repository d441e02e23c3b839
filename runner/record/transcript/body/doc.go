// Package body renders a run as Markdown: the body and comments of its pull request (Compose), the
// job summary (Outline), a whole document (Document), and a title. It only reads a View and does
// not know the destination.
package body
