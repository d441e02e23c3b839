package grants

import (
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// MountsBelow returns the mounts inside a folder. An overlay of the folder would not show them. It
// returns nil if they are unknown.
func MountsBelow(folder string) (mounts []string) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		const mountPoint = 4 // proc_pid_mountinfo(5)
		if len(fields) <= mountPoint {
			continue
		}
		path := mountEscapes.Replace(fields[mountPoint])
		if inside, is := pathname.Below(folder, path); is && inside != "." {
			mounts = append(mounts, path)
		}
	}
	return mounts
}

// mountEscapes reverts the kernel's escapes of white space in paths.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
