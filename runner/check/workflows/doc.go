// Package workflows owns which workflows of GitHub Actions a pushed branch starts, with which rights, and which
// files of a change their steps run. It reads files through a Tree and runs nothing. It refuses to know what
// becomes of a change.
package workflows
