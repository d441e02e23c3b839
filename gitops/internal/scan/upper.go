package scan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// changedFolder returns the upper folder of a layer, if only the names in it may differ from the
// index. It returns nil if all names must be scanned. That includes a repository in which git
// treats two spellings of a name as one: a changed name does not identify an index entry then.
func (s *Scan) changedFolder() *os.Root {
	if s.settings.IgnoreCase || s.settings.Precompose {
		return nil
	}
	return mergedUpper(s.tree.Upper)
}

// openUpperSubfolder opens the upper layer's folder called name. It returns nil if the whole folder must be
// scanned. The caller closes the result.
func openUpperSubfolder(upper *os.Root, name string) *os.Root {
	if upper == nil {
		return nil
	}
	below, err := regularfile.OpenFolder(upper, name)
	if err != nil {
		return nil
	}
	if mergedUpper(below) == nil {
		below.Close()
		return nil
	}
	return below
}

func closeUpper(upper *os.Root) {
	if upper != nil {
		upper.Close()
	}
}

// mergedUpper returns upper if its names are exactly the differences from the lower folder.
// Otherwise it returns nil, for example for an opaque folder.
func mergedUpper(upper *os.Root) *os.Root {
	if upper == nil {
		return nil
	}
	f, err := upper.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	if !hasOnlyHarmlessMarks(int(f.Fd())) {
		return nil
	}
	return upper
}

// harmlessMarks lists the overlayfs attributes that do not affect which names a folder shows.
var harmlessMarks = map[string]bool{"origin": true, "impure": true, "uuid": true, "nlink": true, "upper": true, "protattr": true}

// hasOnlyHarmlessMarks reports whether all overlayfs attributes of a folder are harmless. The attribute
// "opaque" hides the whole lower folder, and unknown ones may do anything.
func hasOnlyHarmlessMarks(fd int) bool {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil {
		return false
	}
	list := make([]byte, size)
	if size > 0 {
		if size, err = unix.Flistxattr(fd, list); err != nil {
			return false
		}
	}
	for name := range strings.SplitSeq(string(list[:size]), "\x00") {
		_, mark, ofOverlay := strings.Cut(name, ".overlay.")
		isHarmless := strings.HasPrefix(name, "user.overlay.") && harmlessMarks[mark]
		if ofOverlay && !isHarmless {
			return false
		}
	}
	return true
}

// listChanged lists a folder of a layer like list. changed has all names in the upper folder, names
// only those that the merged folder still shows.
func (s *Scan) listChanged(ctx context.Context, dir *os.Root, at folderRange) (names []listedName, changed []string, err error) {
	upper, err := s.listAll(ctx, at.upper, at)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range upper {
		changed = append(changed, n.inGit)
		info, err := dir.Lstat(n.onDisk)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // overlayfs marks a deletion with it
		case err != nil:
			return nil, nil, fmt.Errorf("look at %q: %w", at.path+n.inGit, err)
		}
		n.Lstat = LstatOf(info)
		names = append(names, n)
	}
	return names, changed, nil
}

// entryRange is a range of index entries, from lo up to but without hi.
type entryRange struct{ lo, hi int }

// changedRanges returns the ranges of a folder's index entries that may have changed. changed lists the
// changed names of a layer.
func (s *Scan) changedRanges(at folderRange, changed []string) []entryRange {
	if at.upper == nil {
		return []entryRange{{at.lo, at.hi}}
	}
	var list []entryRange
	for _, name := range changed {
		if lo, hi := s.index.EntriesOf(at.path+name, at.lo, at.hi); lo < hi {
			list = append(list, entryRange{lo, hi})
		}
		if lo, hi := s.index.EntriesBelow(at.path+name+"/", at.lo, at.hi); lo < hi {
			list = append(list, entryRange{lo, hi})
		}
	}
	return list
}
