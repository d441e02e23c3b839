package sandbox

import (
	"context"
	"errors"
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
