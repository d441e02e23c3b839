package stage

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// configs are by ABI version. What a version doesn't bring anything to is the
// one before it.
var configs = []landlock.Config{
	{},
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
	landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

// LandlockABI is the version that the kernel speaks, as far as it is known
// here. 0 means that there is no Landlock.
func LandlockABI() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return min(version, len(configs)-1)
}

const (
	readFile = ll.AccessFSExecute | ll.AccessFSReadFile
	readAll  = readFile | ll.AccessFSReadDir
	useFile  = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	anyFile  = readFile | useFile
)

// restrict confines the process for good. What the kernel knows and nothing
// grants is refused.
func restrict(l Landlock) error {
	if l.Config < 1 || l.Config >= len(configs) {
		return fmt.Errorf("ABI version %d is not known", l.Config)
	}
	c := configs[l.Config]
	if !l.DenyNet {
		c.HandledAccessNet = 0
	}
	var rules []landlock.Rule
	add := func(paths []string, folder, file landlock.AccessFSSet) {
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				continue
			}
			rights := file
			if info.IsDir() {
				rights = folder
			}
			rules = append(rules, landlock.PathAccess(rights&c.HandledAccessFS, path).IgnoreIfMissing())
		}
	}
	add(l.Read, readAll, readFile)
	add(l.Write, c.HandledAccessFS, anyFile)
	add(l.Use, useFile|ll.AccessFSReadDir, useFile)
	return c.Restrict(rules...)
}
