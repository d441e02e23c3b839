// Package search owns finding tools by words: an index of what is known of tools that a model
// is not told of, and the two tools that look things up there. It knows no wire format.
package search
