package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// recordRequest writes what is new in a request. The settings stand in the
// first and wherever they differ.
func (c *Conversation) recordRequest(r model.Request) error {
	body, err := r.Body()
	if err != nil {
		return err
	}
	digest := sha256.Sum256(body)
	event := transcript.ModelRequest{
		Turn: c.spent.Turns, Model: r.Settings.Model, SHA256: hex.EncodeToString(digest[:]), Bytes: len(body),
		Input: r.History[r.New:],
	}
	settings, err := r.Settings.SettingsJSON()
	if err != nil {
		return err
	}
	if !bytes.Equal(settings, c.recorded) {
		event.Settings, c.recorded = settings, settings
	}
	_, err = c.Log.Append(transcript.TypeModelRequest, event)
	return err
}

func (c *Conversation) recordResponse(r *model.Response, took time.Duration) error {
	_, err := c.Log.Append(transcript.TypeModelResponse, transcript.ModelResponse{
		Turn: c.spent.Turns, ID: r.ID, Status: r.Status, Output: r.Output, Usage: usageOf(r.Usage), Seconds: took.Seconds(),
	})
	return err
}

func usageOf(u model.Usage) transcript.Usage {
	return transcript.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning}
}
