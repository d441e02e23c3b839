// Command tabulate makes runner/agent/model/catalog/catalog.tsv, the program's table of models and
// prices, from models-dev.tsv beside this file. Given models.dev's api.json, it first makes
// models-dev.tsv from that. It uses no network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Paths of the two tables in the repository.
const (
	sourceFile  = "runner/agent/model/catalog/internal/tabulate/models-dev.tsv"
	catalogFile = "runner/agent/model/catalog/catalog.tsv"
)

func main() {
	root := flag.String("root", ".", "the repository's `folder`")
	api := flag.String("api", "", "models.dev's api.json, as a `file`; empty: models-dev.tsv stays as it is")
	commit := flag.String("commit", "", "the `commit` of models.dev that api.json was made from")
	date := flag.String("date", "", "the `day` of that commit, as YYYY-MM-DD")
	flag.Parse()
	if err := run(*root, *api, source{*commit, *date}); err != nil {
		fmt.Fprintln(os.Stderr, "tabulate:", err)
		os.Exit(1)
	}
}

// run writes catalog.tsv below the folder root. If api is not "", it first writes models-dev.tsv from that file.
func run(root, api string, from source) error {
	if api != "" {
		if err := importAPI(api, filepath.Join(root, sourceFile), from); err != nil {
			return err
		}
	}
	raw, err := os.ReadFile(filepath.Join(root, sourceFile))
	if err != nil {
		return err
	}
	table, err := catalogOf(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", sourceFile, err)
	}
	return os.WriteFile(filepath.Join(root, catalogFile), table, 0o644)
}

// importAPI writes the facts of an api.json to the file at path.
func importAPI(api, path string, from source) error {
	if from.commit == "" || from.date == "" {
		return errors.New("-api takes -commit and -date: each row says where it is from")
	}
	raw, err := os.ReadFile(api)
	if err != nil {
		return err
	}
	table, err := tableOf(raw, from)
	if err != nil {
		return fmt.Errorf("%s: %w", api, err)
	}
	return os.WriteFile(path, table, 0o644)
}
