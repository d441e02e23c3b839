package objects

import "fmt"

// TooLargeError is a blob over the limit that was asked for. Who knows its path
// fills that in.
type TooLargeError struct {
	Path        string
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%q of the base commit has %d bytes, over the limit of %d", e.Path, e.Size, e.Limit)
}

// DamagedError is an object that is not there, can't be read, or is not what its
// id says.
type DamagedError struct {
	ID  string
	Err error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the repository is damaged: %s; `git fsck` lists what is, and a new clone has it right", e.What())
}

// What names the object and what is wrong with it.
func (e *DamagedError) What() string { return fmt.Sprintf("object %s: %v", e.ID, e.Err) }

func (e *DamagedError) Unwrap() error { return e.Err }

// PackError is a pack that does not hold what WritePack writes.
type PackError struct {
	Reason string
}

func (e *PackError) Error() string { return "the pack is refused: " + e.Reason }
