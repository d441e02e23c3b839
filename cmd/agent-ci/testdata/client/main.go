// Client asks for an address as programs do that follow the usual variables, for scripts
// of agent-ci's tests: client METHOD ADDRESS [HEADER: VALUE]... It prints the status and
// the body of the answer, or what went wrong, and fails where the status is 400 or more.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	if err := ask(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Println("client:", err)
		os.Exit(1)
	}
}

func ask(method, address string, headers []string) error {
	request, err := http.NewRequest(method, address, nil)
	if err != nil {
		return err
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return err
	}
	fmt.Printf("%d %s\n", answer.StatusCode, body)
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s was answered with %d", method, request.URL.Path, answer.StatusCode)
	}
	return nil
}
