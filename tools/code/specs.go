package code

import (
	"encoding/json"

	"github.com/agent-ci/agent-ci/tools"
)

// grammar accepts an optional line of options and any script.
const grammar = `start: options? script
options: OPTIONS NEWLINE
script: SCRIPT
OPTIONS: /[ \t]*\/\/ @exec:[^\r\n]*/
NEWLINE: /\r?\n/
SCRIPT: /[\s\S]+/
`

// usage tells the model how to write scripts.
const usage = `Runs a script in JavaScript that calls tools. Write the script itself: no JSON, no quotes, no Markdown fence around it.

How to use it:
- All tools are methods of tools: const r = await tools.exec_command({ cmd: "ls" }). A call gives a promise. One that fails rejects with a string that says why: catch it where you can go on.
- Make calls that don't need each other side by side, with Promise.all; calls that change files still run one by one, in the order in which they were made. Do loops, filters and counts here rather than in one call after the other.
- You see only what the script shows, by text(value) and image(dataUrl): show the part that matters.
- The script is a module with await at its top. It is fresh each time: keep what a later script needs by store(key, value) and get it by load(key). Await all calls, since the end of the script ends those that are under way.
- There is no Node, no file system, no network, no console and no import: what reaches outside are the tools.
- A script that takes longer than 30 s goes on as a cell, whose ID you are told: get the rest with wait. A first line such as // @exec: {"yield_time_ms": 60000, "max_output_tokens": 2000} says how long to wait for it and how much of its output to return (10000 tokens, or fewer).

Beside tools there are:
declare function text(value: unknown): void; // shows a text; what is no string as JSON
declare function image(value: string | { image_url: string } | { type: "image"; data: string; mimeType: string }): void; // shows an image: a data URL, or an object that has one
declare function notify(value: unknown): void; // shows a text with the next output
declare function store(key: string, value: unknown): void; // keeps JSON for later scripts: 64 KiB a value, 1 MiB in all
declare function load(key: string): any; // what was stored, or undefined
declare function setTimeout(callback: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearTimeout(id: number): void;
declare function yield_control(): void; // lets you see the output so far, while the script goes on
declare function exit(): never; // ends the script
declare const ALL_TOOLS: { name: string; description: string }[]; // every method of tools

`

const (
	fewDeferred = "Some tools are not declared below: find them in ALL_TOOLS by their descriptions, which have their declarations.\n\n"
	// maxDeclared bounds the declarations that the model gets, in bytes. Further tools are declared
	// without description and types.
	maxDeclared = 96 << 10
)

// execSpec returns the spec of exec. declared has the methods by which scripts call tools.
func execSpec(declared string, hasDeferred bool) tools.Spec {
	description := usage
	if hasDeferred {
		description += fewDeferred
	}
	return tools.Spec{Name: "exec", Description: description + "declare const tools: {\n" + declared + "};\n", Grammar: grammar}
}

var waitSpec = tools.Spec{
	Name:        "wait",
	Description: `Goes on with a script of exec that was still running: waits for it, and returns what it showed since, or ends it.`,
	Parameters: json.RawMessage(`{"type":"object","properties":{` + `"cell_id":{"type":"string",` + waitProperties +
		`},"required":["cell_id"],"additionalProperties":false}`),
	Accepts: json.RawMessage(`{"type":"object","properties":{` + `"cell_id":{"type":["string","number"],` + waitProperties +
		`},"required":["cell_id"],"additionalProperties":false}`),
}

const waitProperties = `"description":"Cell ID that exec gave."},` +
	`"yield_time_ms":{"type":"number","description":"How long to wait, in milliseconds, by default 10000."},` +
	`"max_tokens":{"type":"number","description":"Most tokens of output to return: 10000, the default, or fewer."},` +
	`"terminate":{"type":"boolean","description":"Whether to end the script. Defaults to false."}`
