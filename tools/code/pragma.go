package code

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// pragma begins a first line with options.
const pragma = "// @exec:"

// scriptOptions are the options in a script's first line.
type scriptOptions struct {
	yield  time.Duration // how long exec waits for the script
	budget int           // tokens of output; 0 for the maximum
}

// parseOptions returns the options in the first line of a script, or the defaults. problem tells the model why the script
// cannot be run, or is "".
func parseOptions(source string) (o scriptOptions, problem string) {
	if strings.TrimSpace(source) == "" {
		return o, "exec: there is no script. Write JavaScript, without JSON or a fence around it."
	}
	first, rest, _ := strings.Cut(source, "\n")
	options, hasOptions := strings.CutPrefix(strings.TrimSpace(first), pragma)
	if !hasOptions {
		return scriptOptions{yield: execYield}, ""
	}
	var a struct {
		YieldMS   *float64 `json:"yield_time_ms"`
		MaxTokens *float64 `json:"max_output_tokens"`
	}
	if err := parseStrict(options, &a); err != nil {
		return o, fmt.Sprintf("exec: the first line has to be %s and a JSON object of yield_time_ms and max_output_tokens, such as %s {\"yield_time_ms\": 60000}: %v.", pragma, pragma, err)
	}
	for _, option := range []struct {
		name  string
		value *float64
	}{{"yield_time_ms", a.YieldMS}, {"max_output_tokens", a.MaxTokens}} {
		if option.value == nil {
			continue
		}
		isWhole := *option.value == float64(int64(*option.value))
		if !isWhole || *option.value < 1 {
			return o, fmt.Sprintf("exec: %s in the first line has to be a whole number above 0.", option.name)
		}
	}
	if strings.TrimSpace(rest) == "" {
		return o, "exec: there is no script behind the first line."
	}
	o.yield = execYield
	if a.YieldMS != nil {
		o.yield = waitTime(*a.YieldMS, execYield)
	}
	if a.MaxTokens != nil {
		o.budget = tools.AskedTokens(*a.MaxTokens)
	}
	return o, ""
}

// parseStrict decodes a text that is one JSON object into a struct. It returns an error for unknown keys.
func parseStrict(text string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return fmt.Errorf("%.40q is no object", strings.TrimSpace(text))
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fmt.Errorf("there is more behind the object")
	}
	return nil
}
