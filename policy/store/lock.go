package store

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Lock locks an open file or folder without waiting, until this process and its children have closed it. held reports
// that another process has the lock; then err is EWOULDBLOCK.
func Lock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}

// Await repeats try until nobody else holds the lock, and returns the error of the last try. If ctx ends
// first, that is the error of a failed try.
func Await(ctx context.Context, try func() (held bool, err error)) error {
	const interval = 10 * time.Millisecond
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		held, err := try()
		if !held {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-look.C:
		}
	}
}
