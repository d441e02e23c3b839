package job

// Hook is a program that is asked at a point of the run.
type Hook struct {
	On       string   `json:"on"`  // one of hookEvents
	Run      []string `json:"run"` // argv
	Tools    []string `json:"tools"`
	Argv     []string `json:"argv"`
	Timeout  Duration `json:"timeout"`
	OnError  string   `json:"on_error"` // fail, continue
	MustFire bool     `json:"must_fire"`
	Compat   string   `json:"compat"`  // "", claude, codex
	Trusted  string   `json:"trusted"` // "", operator
}

// mostHooks is how many a job may have.
const mostHooks = 64

// hookEvents are the points of a run at which hooks are asked.
var hookEvents = []string{
	"run_start", "tool_definition", "shell_env", "pre_tool", "post_tool", "pre_patch", "pre_compact",
	"subagent_start", "subagent_stop", "stop", "pre_publish", "run_end",
}

// fitHooks checks what no key of a hook can tell alone.
func (d *decoder) fitHooks() {}
