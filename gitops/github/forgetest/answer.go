package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const documentation = "https://docs.github.com/rest"

type object = map[string]any

type answer struct {
	status int
	body   any
	link   string // the Link header
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }

func failure(status int, message string) answer {
	return answer{status: status, body: object{
		"message": message, "documentation_url": documentation, "status": strconv.Itoa(status),
	}}
}

func notFound() answer       { return failure(http.StatusNotFound, "Not Found") }
func badCredentials() answer { return failure(http.StatusUnauthorized, "Bad credentials") }

// reason is one of those that a refused write gives.
type reason struct {
	Resource string `json:"resource"`
	Field    string `json:"field,omitempty"`
	Code     string `json:"code"`
	Message  string `json:"message,omitempty"`
}

func invalid(reasons ...reason) answer {
	reply := unprocessable("Validation Failed")
	reply.body.(object)["errors"] = reasons
	return reply
}

// unprocessable lacks the status that other failures have in their body: the
// description does not have it.
func unprocessable(message string) answer {
	return answer{status: http.StatusUnprocessableEntity, body: object{"message": message, "documentation_url": documentation}}
}

// refuse says which field of a resource is wrong in words of its own.
func refuse(resource, field, message string, args ...any) answer {
	return invalid(reason{Resource: resource, Field: field, Code: "custom", Message: fmt.Sprintf(message, args...)})
}

const (
	maxText  = 65536
	maxTitle = 256

	defaultPage = 30
	maxPage     = 100
)

// tooLong refuses a text longer than limit, in characters; nil fits.
func tooLong(field string, text *string, limit int) (answer, bool) {
	if text == nil || len([]rune(*text)) <= limit {
		return answer{}, false
	}
	return refuse("Issue", field, "%s is too long (maximum is %d characters)", field, limit), true
}

// reading decodes the body of a call for who answers it.
func reading[T any](handle func(*Forge, *call, T) answer) handler {
	return func(f *Forge, c *call) answer {
		var sent T
		if err := json.Unmarshal(c.body, &sent); err != nil {
			return unprocessable("Invalid request.\n\n" + err.Error())
		}
		return handle(f, c, sent)
	}
}

// page answers with the part of a list that the query asks for.
func page[T any](f *Forge, c *call, list []T, show func(T) object) answer {
	size := queryNumber(c, "per_page", defaultPage)
	size = min(size, maxPage)
	number := queryNumber(c, "page", 1)
	last := max((len(list)+size-1)/size, 1)
	from := min((number-1)*size, len(list))
	to := min(from+size, len(list))
	reply := ok(showAll(list[from:to], show))
	reply.link = pageLinks(f, c, number, last)
	return reply
}

func queryNumber(c *call, name string, fallback int) int {
	number, err := strconv.Atoi(c.URL.Query().Get(name))
	if err != nil || number < 1 {
		return fallback
	}
	return number
}

// pageLinks is the Link header of RFC 8288 that GitHub pages with.
func pageLinks(f *Forge, c *call, number, last int) string {
	var links []string
	link := func(to int, relation string) {
		query := c.URL.Query()
		query.Set("page", strconv.Itoa(to))
		links = append(links, fmt.Sprintf("<%s%s?%s>; rel=%q", f.URL, c.URL.EscapedPath(), query.Encode(), relation))
	}
	if number > 1 {
		link(number-1, "prev")
		link(1, "first")
	}
	if number < last {
		link(number+1, "next")
		link(last, "last")
	}
	return strings.Join(links, ", ")
}
