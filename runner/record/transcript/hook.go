package transcript

import "slices"

// Hooks is an event with the run's hooks, in the order of their calls.
type Hooks struct {
	Hooks []ActiveHook `json:"hooks"`
}

// ActiveHook is a hook of a run.
type ActiveHook struct {
	Name     string   `json:"name"` // operator/NAME for a hook of the operator
	Event    string   `json:"on"`
	Run      []string `json:"run"`
	SHA256   string   `json:"sha256"` // of its settings and of the files that its command names
	Tools    []string `json:"tools,omitempty"`
	Argv     []string `json:"argv,omitempty"`
	Trusted  bool     `json:"trusted,omitempty"`
	MustFire bool     `json:"must_fire,omitempty"`
	OnError  string   `json:"on_error,omitempty"`
}

// HookUse counts how a hook was used in a run.
type HookUse struct {
	Name     string  `json:"name"`
	Event    string  `json:"on"`
	SHA256   string  `json:"sha256"`
	Trusted  bool    `json:"trusted,omitempty"`
	MustFire bool    `json:"must_fire,omitempty"`
	Calls    int     `json:"calls"`
	Denials  int     `json:"denials"`
	Errors   int     `json:"errors"`
	Longest  float64 `json:"longest_seconds"`
}

// countAnswer counts an answer of the hook.
func (u *HookUse) countAnswer(d HookAnswer) {
	u.Calls++
	u.Longest = max(u.Longest, d.Seconds)
	switch d.Decision {
	case HookDeny:
		u.Denials++
	case HookFailed:
		u.Errors++
	}
}

// newHookUses returns the uses of active hooks. Hooks that were used before a resume keep their
// counts.
func newHookUses(active []ActiveHook, earlier []HookUse) []HookUse {
	uses := make([]HookUse, 0, len(active))
	for _, h := range active {
		var use HookUse
		if i := slices.IndexFunc(earlier, func(u HookUse) bool { return u.Name == h.Name }); i >= 0 {
			use = earlier[i]
		}
		use.Name, use.Event, use.SHA256, use.Trusted, use.MustFire = h.Name, h.Event, h.SHA256, h.Trusted, h.MustFire
		uses = append(uses, use)
	}
	return uses
}

// hook counts an answer of a hook.
func (f *Folder) hook(d HookAnswer) {
	if i := slices.IndexFunc(f.view.Hooks, func(u HookUse) bool { return u.Name == d.Name }); i >= 0 {
		f.view.Hooks[i].countAnswer(d)
	}
}
