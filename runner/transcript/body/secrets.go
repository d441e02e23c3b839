package body

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// secrets tells which credentials commands used, and where they were refused.
func secrets(all []transcript.Secret) section {
	s := section{
		head: "\n## Credentials\n\nCommands have placeholders; the proxy puts the values into requests.\n\n| Credential | By | Host | Requests |\n|---|---|---|---|\n",
		most: 50, share: 4_000, more: "line",
	}
	for _, secret := range all {
		for _, u := range secret.Uses {
			s.rows = append(s.rows, secretRow(secret.Name, u.By, u.Target, u.Count()))
		}
	}
	for _, secret := range all { // which are as many as commands like, and come last
		for _, n := range secret.Refused {
			s.rows = append(s.rows, secretRow(secret.Name, n.By, n.Target, bad+"refused: "+text(n.Reason)+example(n.Request)))
		}
	}
	return s
}

// example is one of the requests that were refused alike; empty for none.
func example(request string) string {
	if request == "" {
		return ""
	}
	return " For example " + cell(request)
}

func secretRow(name, by, target, what string) string {
	return fmt.Sprintf("| %s | %s | %s | %s |\n", cell(name), text(by), cell(target), what)
}
