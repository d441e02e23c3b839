// Package lessons owns a repository's file of lessons: its syntax, its problems and their
// positions, valid evidence, and appending entries. It does not know git, runs or the readers of
// lessons.
package lessons
