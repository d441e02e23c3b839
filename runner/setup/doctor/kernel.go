package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// KernelSetting is a kernel setting that affects confinement.
type KernelSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Remedy string `json:"remedy,omitempty"` // empty unless the value prevents confinement
}

// blockingSettings lists kernel settings that disable user namespaces if they have the blocking value.
var blockingSettings = []struct {
	name, blockingValue, remedy string
}{
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "AppArmor keeps ordinary users from namespaces of their own (Ubuntu 23.10 and later): sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	{"kernel.unprivileged_userns_clone", "0", "Ordinary users cannot create namespaces (Debian's setting): sudo sysctl -w kernel.unprivileged_userns_clone=1"},
	{"user.max_user_namespaces", "0", "The kernel allows no user namespaces: sudo sysctl -w user.max_user_namespaces=15000; in a container, on its host"},
}

// kernelSettings returns this kernel's settings that affect confinement.
func kernelSettings() []KernelSetting {
	all := []KernelSetting{}
	for _, known := range blockingSettings {
		raw, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(known.name, ".", "/")))
		if err != nil {
			continue
		}
		s := KernelSetting{Name: known.name, Value: strings.TrimSpace(string(raw))}
		if s.Value == known.blockingValue {
			s.Remedy = known.remedy
		}
		all = append(all, s)
	}
	if raw, err := os.ReadFile("/sys/kernel/security/lsm"); err == nil {
		s := KernelSetting{Name: "lsm", Value: strings.TrimSpace(string(raw))}
		if !strings.Contains(s.Value, "landlock") {
			s.Remedy = "Landlock is not among the security modules: add landlock to lsm= on the kernel's command line"
		}
		all = append(all, s)
	}
	return all
}
