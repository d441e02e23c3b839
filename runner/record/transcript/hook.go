package transcript

import "slices"

// Hooks lists the hooks of a run in order of their calls.
type Hooks struct {
	Hooks []HookActive `json:"hooks"`
}

// HookActive is a hook of a run.
type HookActive struct {
	Name     string   `json:"name"` // of the operator's file: operator/NAME
	On       string   `json:"on"`
	Run      []string `json:"run"`
	SHA256   string   `json:"sha256"` // of its settings and of the files that its words name
	Tools    []string `json:"tools,omitempty"`
	Argv     []string `json:"argv,omitempty"`
	Trusted  bool     `json:"trusted,omitempty"`
	MustFire bool     `json:"must_fire,omitempty"`
	OnError  string   `json:"on_error,omitempty"`
}

// HookUse is the use of a hook in a run.
type HookUse struct {
	Name     string  `json:"name"`
	On       string  `json:"on"`
	SHA256   string  `json:"sha256"`
	Trusted  bool    `json:"trusted,omitempty"`
	MustFire bool    `json:"must_fire,omitempty"`
	Calls    int     `json:"calls"`
	Denials  int     `json:"denials"`
	Errors   int     `json:"errors"`
	Longest  float64 `json:"longest_seconds"`
}

// Count adds an answer.
func (u *HookUse) Count(d Hook) {
	u.Calls++
	u.Longest = max(u.Longest, d.Seconds)
	switch d.Decision {
	case HookDeny:
		u.Denials++
	case HookFailed:
		u.Errors++
	}
}

// NewHookUses returns unused hooks with the counts of earlier lives of the run.
func NewHookUses(active []HookActive, was []HookUse) []HookUse {
	uses := make([]HookUse, 0, len(active))
	for _, h := range active {
		use := HookUse{Name: h.Name, On: h.On, SHA256: h.SHA256, Trusted: h.Trusted, MustFire: h.MustFire}
		if i := slices.IndexFunc(was, func(u HookUse) bool { return u.Name == h.Name }); i >= 0 {
			use.Calls, use.Denials, use.Errors, use.Longest = was[i].Calls, was[i].Denials, was[i].Errors, was[i].Longest
		}
		uses = append(uses, use)
	}
	return uses
}

func (f *fold) hooks(_ Event, d Hooks) { f.view.Hooks = NewHookUses(d.Hooks, f.view.Hooks) }

func (f *fold) hook(_ Event, d Hook) {
	if i := slices.IndexFunc(f.view.Hooks, func(u HookUse) bool { return u.Name == d.Name }); i >= 0 {
		f.view.Hooks[i].Count(d)
	}
}
