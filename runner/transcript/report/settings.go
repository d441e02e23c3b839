package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// settingBytes is the most of one setting that the page shows, jobBytes of all of them.
const (
	settingBytes = 2_000
	jobBytes     = 40_000
)

// configured says whether there are settings to show.
func (o *overview) configured() bool { return len(o.settings()) > 0 || o.job() != "" }

func (o *overview) settingsSection() g.Node {
	if !o.configured() {
		return nil
	}
	content := g.Group{sentence("All are as they are built in.")}
	if set := o.settings(); len(set) > 0 {
		content = g.Group{sentence("What is not as it is built in:"), factList("facts", set)}
	}
	if job := o.job(); job != "" {
		content = append(content, h.Details(
			h.Summary(g.Text("All settings of the run")),
			h.Pre(h.TabIndex("0"), g.Text(job)),
		))
	}
	return section("settings", "Settings", content)
}

// settings are the keys of the job that are not as they are built in, each by its path.
func (o *overview) settings() []fact {
	var set map[string]any
	if json.Unmarshal(o.View.Started.Set, &set) != nil {
		return nil
	}
	return shownOf(settingsOf("", set))
}

func settingsOf(path string, of map[string]any) []fact {
	var all []fact
	for _, key := range slices.Sorted(maps.Keys(of)) {
		switch value := of[key].(type) {
		case map[string]any:
			if len(value) > 0 {
				all = append(all, settingsOf(path+key+".", value)...)
			}
		default:
			all = append(all, fact{Name: field(path + key), Value: shownText(settingText(value), settingBytes), Code: true})
		}
	}
	return all
}

// settingText is a value as people write it.
func settingText(value any) string {
	list, isList := value.([]any)
	if !isList {
		return fmt.Sprint(value)
	}
	if len(list) == 0 {
		return "none"
	}
	var parts []string
	for _, each := range list {
		if text, isText := each.(string); isText {
			parts = append(parts, text)
			continue
		}
		raw, _ := json.Marshal(each) // which was JSON
		parts = append(parts, string(raw))
	}
	return strings.Join(parts, ", ")
}

// job is the whole job, with what is built in.
func (o *overview) job() string {
	if len(o.View.Started.Job) == 0 || string(o.View.Started.Job) == "null" {
		return ""
	}
	return markdown.Show(markdown.Cut(indented(o.View.Started.Job), jobBytes))
}
