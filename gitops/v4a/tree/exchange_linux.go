package tree

import "golang.org/x/sys/unix"

func (d rootDir) Exchange(name, other string) error {
	dir, err := d.Root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Renameat2(int(dir.Fd()), name, int(dir.Fd()), other, unix.RENAME_EXCHANGE)
}
