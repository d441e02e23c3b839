package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// recordRequest encodes a request and records what is new in it: the items since the last event, and the
// settings if they changed.
func (c *Conversation) recordRequest(r *model.Request) (err error) {
	changed, err := c.encodeSettings(r.Settings)
	if err != nil {
		return err
	}
	if r.Encoded, err = model.EncodeFor(c.Model, c.recordedSettings, r.History); err != nil {
		return err
	}
	event := transcript.ModelRequest{
		Turn: c.spent.Turns, Model: r.Settings.Model, SHA256: fmt.Sprintf("%x", sha256.Sum256(r.Encoded)), Bytes: len(r.Encoded),
		Input: rawitem.WithImageDigests(r.History[c.loggedItems:]), Internal: r.Settings.WordsOnly,
	}
	c.loggedItems = len(r.History)
	if changed {
		event.Settings = c.recordedSettings
	}
	_, err = c.Log.Append(transcript.TypeModelRequest, event)
	return err
}

// encodeSettings sets recordedSettings to the settings s in JSON. changed is false if they equal the settings recorded
// last.
func (c *Conversation) encodeSettings(s model.Settings) (changed bool, err error) {
	if c.recordedSettings != nil && reflect.DeepEqual(s, c.lastSettings) {
		return false, nil
	}
	settings, err := s.SettingsJSON()
	if err != nil {
		return false, err
	}
	changed = !bytes.Equal(settings, c.recordedSettings)
	c.lastSettings, c.recordedSettings = s, settings
	return changed, nil
}

// recordResponse records an answer. wordsOnly means that the request asked for text only.
func (c *Conversation) recordResponse(r *model.Response, took time.Duration, wordsOnly bool) error {
	_, err := c.Log.Append(transcript.TypeModelResponse, transcript.ModelResponse{
		Turn: c.spent.Turns, ID: r.ID, Status: r.Status, Output: r.Output, Usage: transcript.Usage(r.Usage), Seconds: took.Seconds(), Internal: wordsOnly,
	})
	return err
}

// usageOf returns a failed answer's usage, or nil if there is none.
func usageOf(f *model.Failure) *transcript.Usage {
	if f.Usage.Total() == 0 {
		return nil
	}
	return new(transcript.Usage(f.Usage))
}

// RecordRetried counts the usage of a failed request and records it, before the request is repeated after wait.
func (c *Conversation) RecordRetried(f *model.Failure, wait time.Duration) error {
	c.addUsage(f.Usage)
	if err := c.recordRetry(f, wait); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

// recordRetry records that the run continues after a failed request. Either the request is repeated after
// wait, or the run continues from the kept part of the interrupted answer.
func (c *Conversation) recordRetry(f *model.Failure, wait time.Duration) error {
	_, err := c.Log.Append(transcript.TypeModelRetry, transcript.ModelRetry{
		Turn: c.spent.Turns, Attempt: max(f.Attempts, 1), Error: f.Error(), Wait: wait.Seconds(), Data: string(f.Data), Usage: usageOf(f),
	})
	return err
}

// Started records that a call starts, and returns when that is on disk. It implements tools.Observer.
func (c *Conversation) Started(s tools.Started) error {
	_, err := c.Log.Append(transcript.TypeToolStarted, transcript.ToolStarted{
		Turn: s.Call.Turn, Number: s.Call.Number, Caller: s.Call.Caller, CallID: s.Call.ID, Tool: s.Tool, Input: s.Call.Input, Offered: s.Offered, Mutates: s.Mutates,
		EffectiveInput: s.ConvertedInput, Refused: s.Refused, InText: s.Call.Form == tools.Written,
	})
	if err == nil {
		err = c.Log.Sync() // for all calls: a command may change files even if its tool does not mutate
	}
	return err
}

// Finished records the result of a call. It implements tools.Observer.
func (c *Conversation) Finished(f tools.Finished) {
	event := transcript.ToolFinished{
		Turn: f.Call.Turn, Number: f.Call.Number, Caller: f.Call.Caller, CallID: f.Call.ID, Tool: f.Tool, Failed: f.Result.Failed, Output: f.Result.Output,
		Truncated: f.Uncut.Truncated, File: f.Uncut.File, Bytes: f.Uncut.Bytes, Seconds: f.Duration.Seconds(), Detail: f.Result.Detail,
		NotRun: !f.Ran, RewrittenInput: f.GateInput,
	}
	if f.Call.Caller > 0 && f.IsExternal { // a replay gives it to the script again
		event.ScriptValue = f.Result.Object
	}
	_, _ = c.Log.Append(transcript.TypeToolFinished, event) // the next Append fails too, and ends the run
	if broken, isPanic := errors.AsType[*tools.Panic](f.Fault); isPanic {
		c.Warn("tool_panic", "%s crashed: %v\n%s", f.Tool, broken.Value, broken.Stack)
	}
	if f.Uncut.Err != nil {
		c.Warn("output_not_kept", "The whole output of call %s could not be kept: %v", f.Call.ID, f.Uncut.Err)
	}
}
