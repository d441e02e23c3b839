// Package memory owns what a model is told of lessons, which earlier runs proposed and people took
// in: which of them fit a task, in which words they are told, and the two tools by which it
// reads them and proposes others. It refuses to know where lessons are kept.
package memory
