// Package assembly owns a working agent. It builds the agent from a conversation, a model, tools,
// hooks, skills and lessons, passes it the runner's messages, passes its questions to people, and
// resumes and ends it. It does not know how work is verified and published.
package assembly
