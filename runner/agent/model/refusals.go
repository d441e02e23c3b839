package model

import (
	"net/http"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// sealedRefusal matches errors about unreadable or missing earlier items: reasoning of another
// account, region or key, unstored items, thought signatures.
var sealedRefusal = lazyregexp.New(`(?i)encrypted[_ ]content|could not be decrypted|item with id \S+ not found|items are not persisted|` +
	`provided without its required|thought[_ ]?signature|invalid .?signature.? in .?thinking`)

// RefusesSealed reports whether the endpoint cannot read earlier items that a provider has encrypted or stored.
func (f *Failure) RefusesSealed() bool {
	switch f.Kind {
	case InvalidRequest, ServerError:
		return f.Code == SealedCode || sealedRefusal().MatchString(f.Message)
	}
	return false
}

// SealedCode is the API's code for items that it cannot decrypt.
const SealedCode = "invalid_encrypted_content"

// namespacesRefusal matches refusals of namespaces. Endpoints name the unknown field or its place.
var namespacesRefusal = lazyregexp.New(`(?i)namespace|\btools?(?:\[\d+\]|\.\d+)\.(?:type|tools|function)\b|` +
	`(?:unknown|invalid|unsupported|unexpected|unrecognized)\b.{0,10}\btool\b.{0,10}\btype\b`)

// toolsRefusal matches refusals of all tools.
var toolsRefusal = lazyregexp.New(`(?i)(?:not|n't) support (?:the use of )?(?:tools?|tool use|tool call(?:s|ing)|functions?|function call(?:s|ing))\b|found that support tool use|` +
	`\btools? (?:use|call(?:s|ing)|choice|param)\b.{0,20}\b(?:not supported|requires?|not enabled)\b|\btools['"]?.{0,20}\b(?:not (?:supported|allowed|permitted)|unsupported)\b|` +
	`(?:unknown|unrecognized|unsupported|unexpected) (?:parameter|field|property|argument|name)\W{1,4}tools\b`)

// RefusesTools reports whether the endpoint accepts no tools at all.
func (f *Failure) RefusesTools() bool {
	switch f.Kind {
	case InvalidRequest, NotFound, ServerError:
		return f.Status >= http.StatusBadRequest && toolsRefusal().MatchString(f.Message)
	}
	return false
}

// RefusesNamespaces reports whether the endpoint accepts no namespaces of tools.
func (f *Failure) RefusesNamespaces() bool {
	return f.isInvalidRequest() && namespacesRefusal().MatchString(f.Message)
}

// isInvalidRequest reports whether the endpoint refused the form of the request.
func (f *Failure) isInvalidRequest() bool {
	return f.Kind == InvalidRequest && (f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity)
}

// toolItemsRefusal matches refusals of input items with tools. Endpoints name the unknown field or its place.
var toolItemsRefusal = lazyregexp.New(`(?i)additional_tools|namespace|reasoning\.context|all_turns|\binput(?:\[[01]\]|\.[01]\b)|` +
	`(?:unknown|invalid|unsupported|unexpected|unrecognized)\b.{0,20}\b(?:item|input)\b.{0,10}\btype\b`)

// RefusesToolsInInput reports whether the endpoint refuses tools and instructions as input items.
func (f *Failure) RefusesToolsInInput() bool {
	return f.isInvalidRequest() && toolItemsRefusal().MatchString(f.Message)
}
