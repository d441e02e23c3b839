package attempts

import (
	"os"

	"golang.org/x/sys/unix"
)

// cacheAttempts attack a cache folder: commands' changes must stay their own, and hidden files
// hidden.
func cacheAttempts() []Attempt {
	return []Attempt{
		{Name: "add to a folder of caches through agent-ci's root", Do: func(w World) error {
			return create(of(w.Victim, "root"+w.cache("planted")))
		}},
		{Name: "add to a folder of caches through the supervisor's root", Do: func(w World) error {
			return create(of(w.Supervisor, "root"+w.cache("planted2")))
		}},
		{Name: "write a kept baseline through agent-ci's root", Do: func(w World) error { return write(of(w.Victim, "root"+w.Baseline())) }},
		{Name: "write a kept baseline through the supervisor's root", Do: func(w World) error { return write(of(w.Supervisor, "root"+w.Baseline())) }},
		{Name: "hard link a file of a folder of caches and write it", Do: func(w World) error {
			return w.tryThroughLink(os.Link, w.cache("entry"), "hard-cache", write)
		}},
		{Name: "read a hidden file of a folder of caches", Do: func(w World) error { return readSecret(w.HiddenCache()) }},
		{Name: "move a hidden file of a folder of caches", Do: func(w World) error { return moveAway(w.HiddenCache()) }},
		{Name: "move the folder of a hidden file in a folder of caches", Do: func(w World) error { return moveAway(w.cache("deep")) }},
		{Name: "write a hidden file of a folder of caches", Do: func(w World) error { return write(w.HiddenCache()) }},
		{Name: "move a folder of caches", Do: func(w World) error { return moveAway(w.Cache) }},
		{Name: "take what lies over a folder of caches away", Do: func(w World) error { return unix.Unmount(w.Cache, unix.MNT_DETACH) }, Unproven: true},
		{Name: "take what lies over a hidden file of a folder of caches away", Do: func(w World) error {
			return unix.Unmount(w.HiddenCache(), unix.MNT_DETACH)
		}, Unproven: true},
	}
}
