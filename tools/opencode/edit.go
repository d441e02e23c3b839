package opencode

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// KnownFiles contains the SHA-256 digest of each file's content that the model has last read or written. The zero
// value is empty.
type KnownFiles struct {
	mu      sync.Mutex
	digests map[string][sha256.Size]byte // by resolvedPath
}

// resolvedPath returns a file's path with links resolved, as far as possible. It only serves to recognise a file,
// whose content must match as well.
func resolvedPath(dir tools.Folder, name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir.Path, name)
	}
	if inside, err := dir.Resolve(name); err == nil {
		return inside
	}
	if inside, isBelow := dir.Below(name); isBelow {
		return inside
	}
	return filepath.Clean(name)
}

// record stores the digest of the content that the model has read or written.
func (s *KnownFiles) record(dir tools.Folder, name string, sum [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digests == nil {
		s.digests = map[string][sha256.Size]byte{}
	}
	s.digests[resolvedPath(dir, name)] = sum
}

// whyNotKnown returns the reason, for the model, that it does not know the file's current text. It returns "" if
// the model knows it.
func (s *KnownFiles) whyNotKnown(dir tools.Folder, name, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch sum, isRecorded := s.digests[resolvedPath(dir, name)]; {
	case !isRecorded:
		return fmt.Sprintf("read %s first: nothing is changed in a file that was not read in this run", name)
	case sum != sha256.Sum256([]byte(text)):
		return fmt.Sprintf("%s has changed since it was read; read it again, and make the edit for what it holds now", name)
	}
	return ""
}

// editor changes files known to the model.
type editor struct {
	patcher *patch.Patcher
	dir     tools.Folder
	seen    *KnownFiles
}

// change replaces the text of a file for a tool. The function newTextOf receives the file's text, or nil for a
// missing file. It returns the new text with a message for the model, or an error, which refuses the call.
func (e editor) change(ctx context.Context, tool, name string, newTextOf func(old *string) (newText, message string, err error)) (tools.Result, error) {
	var newText, message string
	result, err := e.patcher.Rewrite(ctx, []string{name}, func(old tree.Texts) (_ tree.Texts, err error) {
		if newText, message, err = newTextOf(old[name]); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return tree.Texts{name: &newText}, err
	})
	if err != nil {
		return tools.Result{}, err
	}
	if result.Failed {
		result.Output = tool + ": " + result.Output
		return result, nil
	}
	e.seen.record(e.dir, name, sha256.Sum256([]byte(newText)))
	if result.Output != "" {
		message += "\n" + strings.TrimSuffix(result.Output, "\n")
	}
	result.Output = message
	return result, nil
}

var editSpec = tools.Spec{
	Name: "edit",
	Description: "Replaces a text in a file that was read before. oldString has to stand there exactly, with its indentation, at one place alone; give enough of the lines around it. " +
		"Line numbers that read shows are no part of it. An empty oldString makes a new file of newString.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"filePath":{"type":"string","description":"Path of the file, absolute or relative to the working directory."},` +
		`"oldString":{"type":"string","description":"The text to replace."},` +
		`"newString":{"type":"string","description":"The text in its place, which has to be another one."},` +
		`"replaceAll":{"type":"boolean","description":"Whether to replace it wherever it stands. Defaults to false."}` +
		`},"required":["filePath","oldString","newString"],"additionalProperties":false}`),
}

type editArguments struct {
	Path string `json:"filePath"`
	Old  string `json:"oldString"`
	New  string `json:"newString"`
	All  bool   `json:"replaceAll"`
}

// editTool returns the tool edit.
func editTool(e editor) tools.Tool {
	tool := files.Tool(editSpec, func(ctx context.Context, a editArguments) (tools.Result, error) {
		if a.Old == a.New {
			return tools.Refuse("edit: oldString and newString are the same: nothing would change"), nil
		}
		return e.change(ctx, editSpec.Name, a.Path, func(old *string) (string, string, error) { return e.edit(a, old) })
	})
	tool.Mutates = true
	return tool
}

// edit returns the text of a file after an edit, and a message for the model. old is nil for a missing file. The
// error is for the model.
func (e editor) edit(a editArguments, old *string) (newText, message string, err error) {
	switch {
	case old == nil && a.Old == "":
		return a.New, "Edit applied successfully.", nil
	case old == nil:
		return "", "", errors.New("there is no such file; an empty oldString makes it")
	case a.Old == "" && strings.TrimPrefix(*old, byteOrderMark) != "":
		return "", "", errors.New("the file is there already, and not empty; give the text to replace as oldString, or replace all of it by write")
	}
	if reason := e.seen.whyNotKnown(e.dir, a.Path, *old); reason != "" {
		return "", "", errors.New(reason)
	}
	if a.Old == "" {
		return *old + a.New, "Edit applied successfully.", nil
	}
	newText, note, err := replacement{a.Old, a.New, a.All}.apply(*old)
	if message = "Edit applied successfully."; note != "" {
		message += "\nNote: " + note + "."
	}
	return newText, message, err
}

var writeSpec = tools.Spec{
	Name:        "write",
	Description: "Writes a file, over what it holds. A file that is there has to be read before; edit changes a part of one.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"filePath":{"type":"string","description":"Path of the file, absolute or relative to the working directory."},` +
		`"content":{"type":"string","description":"All that the file is to hold."}` +
		`},"required":["filePath","content"],"additionalProperties":false}`),
}

type writeArguments struct {
	Path    string `json:"filePath"`
	Content string `json:"content"`
}

// writeTool returns the tool write. An existing file keeps its byte order mark and kind of line ends.
func writeTool(e editor) tools.Tool {
	tool := files.Tool(writeSpec, func(ctx context.Context, a writeArguments) (tools.Result, error) {
		return e.change(ctx, writeSpec.Name, a.Path, func(old *string) (string, string, error) {
			if old == nil {
				return a.Content, "Wrote file successfully.", nil
			}
			if reason := e.seen.whyNotKnown(e.dir, a.Path, *old); reason != "" {
				return "", "", errors.New(reason)
			}
			return keepFileFormat(a.Content, *old), "Wrote file successfully.", nil
		})
	})
	tool.Mutates = true
	return tool
}

// keepFileFormat returns text with the byte order mark of the file's old text. If all lines of the old text end in
// CRLF, the returned ones do too, unless text contains carriage returns itself.
func keepFileFormat(text, old string) string {
	newlines := strings.Count(old, "\n")
	isAllCRLF := newlines > 0 && strings.Count(old, crlf) == newlines
	if isAllCRLF && !strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\n", crlf)
	}
	if strings.HasPrefix(old, byteOrderMark) && !strings.HasPrefix(text, byteOrderMark) {
		text = byteOrderMark + text
	}
	return text
}
