// Package memory owns lessons for the model, proposed by earlier runs and accepted by people: their
// selection for a task, their presentation, and the two tools to read and propose them. It does not
// know where lessons are stored.
package memory
