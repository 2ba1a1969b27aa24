package service

import "github.com/headgate/headgate/service/internal/config"

// Check reads the files as Run does, and returns what they say. The error joins all faults.
func Check(files []string, e *Environment) (string, error) {
	s := server{o: Options{Files: files, Environment: e}}
	if e != nil {
		s.env = e.settings
	}
	return config.Check(files, s.loadOptions())
}

// Schema returns the JSON Schema of the file of rules.
func Schema() []byte { return config.Schema }
