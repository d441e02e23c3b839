// Package workflows owns which GitHub Actions workflows a pushed branch starts, with which rights,
// and which changed files their steps run. It reads files through a Tree and runs nothing. It does
// not know what happens to a change.
package workflows
