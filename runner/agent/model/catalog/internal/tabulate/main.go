// Command tabulate makes runner/agent/model/catalog/catalog.json, the program's table of models and
// prices, from models.dev's api.json. It uses no network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// catalogFile is the path of the table in the repository.
const catalogFile = "runner/agent/model/catalog/catalog.json"

func main() {
	root := flag.String("root", ".", "the repository's `folder`")
	api := flag.String("api", "", "models.dev's api.json, as a `file`")
	commit := flag.String("commit", "", "the `commit` of models.dev that api.json was made from")
	date := flag.String("date", "", "the `day` of that commit, as YYYY-MM-DD")
	flag.Parse()
	if err := run(*root, *api, source{*commit, *date}); err != nil {
		fmt.Fprintln(os.Stderr, "tabulate:", err)
		os.Exit(1)
	}
}

// run writes the table of an api.json to the folder root.
func run(root, api string, from source) error {
	if from.commit == "" || from.date == "" {
		return errors.New("-api takes -commit and -date: each row says where it is from")
	}
	raw, err := os.ReadFile(api)
	if err != nil {
		return err
	}
	rows, err := rowsOf(raw, from)
	if err != nil {
		return fmt.Errorf("%s: %w", api, err)
	}
	table, err := encode(rows)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, catalogFile), table, 0o644)
}
