package forgetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// describedRequests describes the requests of GitHub's REST API (OpenAPI 3.0, version 23.0.2) by
// route: the parameters of the query, and the fields and types of each form of the body.
//
//go:embed spec/requests.json
var describedRequests []byte

type describedRequest struct {
	Query  []string
	Bodies []struct {
		Fields   map[string][]string
		Required []string
	}
}

// descriptions holds the described requests by route.
type descriptions map[string]describedRequest

var requestsByRoute = sync.OnceValue(func() descriptions {
	var all descriptions
	if err := json.Unmarshal(describedRequests, &all); err != nil {
		panic(err)
	}
	return all
})

// note records in what way a request does not fit the description. The caller holds the lock of the
// forge.
func (f *Forge) note(route string, c *call) {
	for _, wrong := range requestsByRoute().findProblems(route, c.Request, c.body) {
		f.undescribed = append(f.undescribed, route+": "+wrong)
	}
}

// Wrong lists what does not fit GitHub's description in a request to the REST API. The path is as
// on api.github.com. It is for tests with a server of their own.
func Wrong(r *http.Request, body []byte) []string {
	all := requestsByRoute()
	var mux http.ServeMux
	for route := range all {
		mux.Handle(route, http.NotFoundHandler())
	}
	_, route := mux.Handler(r)
	return all.findProblems(route, r, body)
}

// findProblems lists what does not fit the description of a route in a request.
func (d descriptions) findProblems(route string, r *http.Request, body []byte) []string {
	described, known := d[route]
	if !known {
		return []string{"there is no such call"}
	}
	var wrong []string
	for name := range r.URL.Query() {
		if !slices.Contains(described.Query, name) {
			wrong = append(wrong, "there is no parameter "+name)
		}
	}
	if len(described.Bodies) > 0 {
		if why := described.wrongBody(body); why != "" {
			wrong = append(wrong, why)
		}
	}
	return wrong
}

// answerUnknown records an API call that the forge does not know, and answers "not found".
func answerUnknown(f *Forge, c *call) answer {
	if path, ofAPI := strings.CutPrefix(c.URL.Path, restPrefix); ofAPI {
		f.undescribed = append(f.undescribed, fmt.Sprintf("%s %s: the forge knows no such call", c.Method, path))
	}
	return notFound()
}

// wrongBody returns why a body fits none of the described forms, or "".
func (d describedRequest) wrongBody(raw []byte) string {
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return "the body is no object: " + err.Error()
	}
	var reasons []string
	for _, form := range d.Bodies {
		reason := ""
		for _, name := range form.Required {
			if _, there := body[name]; !there {
				reason = "the body lacks " + name
			}
		}
		for _, name := range slices.Sorted(maps.Keys(body)) {
			types, there := form.Fields[name]
			if !there {
				reason = "the body has no field " + name
			} else if !slices.ContainsFunc(types, func(kind string) bool { return isOfType(body[name], kind) }) {
				reason = fmt.Sprintf("the body's %s is none of %s", name, strings.Join(types, ", "))
			}
		}
		if reason == "" {
			return ""
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, "; ")
}

// isOfType reports whether a decoded JSON value has a type of JSON Schema.
func isOfType(value any, kind string) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case []any:
		return kind == "array"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	}
	return kind == "object"
}
