// Package lessons owns the file in which a repository keeps lessons: what may stand in it, what is
// wrong with it and where, what counts as evidence, and how entries are added behind those that are
// there. It refuses to know git, runs and who reads the lessons.
package lessons
