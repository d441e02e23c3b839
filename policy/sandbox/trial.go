package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// omittedLayers lists the layers that a level does not use.
var omittedLayers = map[Level][]string{LevelNamespaces: {"landlock"}, LevelLandlock: {"namespaces"}}

// Trial is the result of trying one confinement.
type Trial struct {
	Level   Level    `json:"level"`
	Works   bool     `json:"works"`
	Layers  []string `json:"layers"`
	Missing string   `json:"missing,omitempty"` // what the kernel refused
}

// Trials tries every level, strongest first, with o's folders. A machine may support one level and
// refuse a weaker one. It runs no command.
func Trials(ctx context.Context, o Options) []Trial {
	var all []Trial
	for _, level := range []Level{LevelFull, LevelNamespaces, LevelLandlock} {
		o.disabledLayers, o.Require = omittedLayers[level], level
		t := Trial{Level: level, Layers: []string{}}
		box, err := Open(ctx, o)
		var unavailable *UnavailableError
		switch {
		case errors.As(err, &unavailable):
			t.Missing = strings.Join(unavailable.Missing, "; ")
			if t.Missing == "" {
				t.Missing = "it reaches " + string(unavailable.Reached) + " only"
			}
		case err != nil:
			t.Missing = err.Error()
		default:
			t.Works, t.Layers = true, box.Layers()
			_ = box.Close() // nothing was started in it
		}
		all = append(all, t)
	}
	return all
}

// Setting is a kernel setting that affects confinement.
type Setting struct {
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

// Settings returns this kernel's settings that affect confinement.
func Settings() []Setting {
	all := []Setting{}
	for _, known := range blockingSettings {
		raw, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(known.name, ".", "/")))
		if err != nil {
			continue
		}
		s := Setting{Name: known.name, Value: strings.TrimSpace(string(raw))}
		if s.Value == known.blockingValue {
			s.Remedy = known.remedy
		}
		all = append(all, s)
	}
	if raw, err := os.ReadFile("/sys/kernel/security/lsm"); err == nil {
		s := Setting{Name: "lsm", Value: strings.TrimSpace(string(raw))}
		if !strings.Contains(s.Value, "landlock") {
			s.Remedy = "Landlock is not among the security modules: add landlock to lsm= on the kernel's command line"
		}
		all = append(all, s)
	}
	return all
}
