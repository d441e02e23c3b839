//go:build !linux

package tree

import "errors"

func (rootDir) Exchange(string, string) error { return errors.ErrUnsupported }
