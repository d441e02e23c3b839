// Package objects owns git's objects: it finds them loose and in packs, hashes
// what it reads of folders that others write to, and writes blobs, trees and
// commits to a folder of its own. It reads, edits and compares trees, writes packs
// and takes apart those that strangers wrote.
//
// It is told the git folders. It knows no reference, no configuration, no work
// tree and no git program.
package objects
