// Package search finds tools by words: an index of tools not described to the model, and the two
// tools that search it. It knows no wire format.
package search
