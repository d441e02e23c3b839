package script_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/script"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

// Scripts of code mode and of js_repl get the same of a call.
func TestSettleConvertsResults(t *testing.T) {
	object := map[string]any{"exit_code": 1, "output": "a && b"}
	for name, test := range map[string]struct {
		result tools.Result
		want   message.Settled
	}{
		"a text":                 {tools.Result{Output: "a < b\n"}, message.Settled{Value: []byte(`"a < b\n"`)}},
		"an object":              {tools.Result{Output: "x", Object: object}, message.Settled{Value: []byte(`{"exit_code":1,"output":"a && b"}`)}},
		"a failure with facts":   {tools.Result{Output: "x", Object: object, Failed: true}, message.Settled{Value: []byte(`{"exit_code":1,"output":"a && b"}`)}},
		"a failure in words":     {tools.Result{Output: "Exit code: 1", Object: "patch rejected", Failed: true}, message.Settled{Error: "patch rejected"}},
		"a failure":              {tools.Result{Output: "no such file", Failed: true}, message.Settled{Error: "no such file"}},
		"a failure without text": {tools.Result{Failed: true}, message.Settled{Error: "the call failed"}},
		"an image":               {tools.Result{Output: "a.png", Images: []tools.Image{{MediaType: "image/png", Data: []byte("x")}}}, message.Settled{Value: []byte(`{"images":[{"image_url":"data:image/png;base64,eA=="}],"text":"a.png"}`)}},
		"what is no JSON":        {tools.Result{Object: func() {}}, message.Settled{Error: "the result can't be given to a script: json: unsupported type: func()"}},
	} {
		test.want.ID = 7
		must.Same(t, test.want, script.Settle(7, test.result), name)
	}
}
